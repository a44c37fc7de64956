/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine.h"

#include "bj-domain-xml.h"
#include "bj-engine-private.h"
#include "bj-error.h"
#include "bj-guest-private.h"
#include "bj-libvirt.h"
#include "bj-overlay.h"
#include "bj-run-dir.h"
#include "bj-screenshot.h"
#include "bj-share.h"

#include <errno.h>
#include <libvirt/libvirt-qemu.h>
#include <string.h>

#define READY_POLL_US 20000
#define SETUP_SECONDS 60
#define MOUNT_SECONDS 30

struct _BjMachine
{
  GObject parent_instance;

  BjEngine *engine;    /* (owned) */
  BjMachineSpec *spec; /* (owned) */
  BjGuest *guest;      /* (owned) */
  GMutex lock;         /* guards the two below */
  virDomainPtr domain; /* (owned) (nullable) */
  BjShare *share;      /* (owned) (nullable): %NULL also for a share that an earlier daemon started */
};

G_DEFINE_FINAL_TYPE (BjMachine, bj_machine, G_TYPE_OBJECT)

BjMachineSpec *
bj_machine_spec_copy (const BjMachineSpec *spec)
{
  BjMachineSpec *copy = g_memdup2 (spec, sizeof *spec);

  copy->id = g_strdup (spec->id);
  copy->run_dir = g_strdup (spec->run_dir);
  copy->base = g_strdup (spec->base);
  copy->kernel = g_strdup (spec->kernel);
  copy->initrd = g_strdup (spec->initrd);
  copy->cmdline = g_strdup (spec->cmdline);
  copy->hostname = g_strdup (spec->hostname);
  copy->resolvers = g_strdupv (spec->resolvers);
  copy->data_disk = g_strdup (spec->data_disk);
  return copy;
}

void
bj_machine_spec_free (BjMachineSpec *spec)
{
  g_free (spec->id);
  g_free (spec->run_dir);
  g_free (spec->base);
  g_free (spec->kernel);
  g_free (spec->initrd);
  g_free (spec->cmdline);
  g_free (spec->hostname);
  g_strfreev (spec->resolvers);
  g_free (spec->data_disk);
  g_free (spec);
}

static void
bj_machine_finalize (GObject *object)
{
  BjMachine *self = BJ_MACHINE (object);

  bj_guest_unref (self->guest);
  g_clear_pointer (&self->domain, virDomainFree);
  g_clear_pointer (&self->share, bj_share_free);
  bj_machine_spec_free (self->spec);
  g_object_unref (self->engine);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (bj_machine_parent_class)->finalize (object);
}

static void
bj_machine_class_init (BjMachineClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_machine_finalize;
}

static void
bj_machine_init (BjMachine *self)
{
  g_mutex_init (&self->lock);
}

BjMachine *
bj_machine_new (BjEngine *engine, const BjMachineSpec *spec)
{
  BjMachine *self = g_object_new (BJ_TYPE_MACHINE, NULL);

  self->engine = g_object_ref (engine);
  self->spec = bj_machine_spec_copy (spec);
  self->guest = bj_guest_new (spec->run_dir);
  return self;
}

uid_t
bj_machine_get_uid (BjMachine *self)
{
  return BJ_MACHINE_UID_BASE + self->spec->slot;
}

BjGuest *
bj_machine_get_guest (BjMachine *self)
{
  return self->guest;
}

static char *
dup_path (BjMachine *self, const char *name)
{
  return g_build_filename (self->spec->run_dir, name, NULL);
}

static char *
dup_disk (BjMachine *self)
{
  return self->spec->writable_base ? g_strdup (self->spec->base) : dup_path (self, "overlay.qcow2");
}

static char *
dup_name (BjMachine *self)
{
  return g_strconcat (BJ_DOMAIN_PREFIX, self->spec->id, NULL);
}

/* Returns: (transfer full): the domain, or %NULL with an error */
static virDomainPtr
ref_domain (BjMachine *self, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->domain != NULL)
    virDomainRef (self->domain);
  else
    bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine %s is gone: it is not started", self->spec->id);
  return self->domain;
}

/* @domain: (transfer full) (nullable) */
static void
take_domain (BjMachine *self, virDomainPtr domain)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_clear_pointer (&self->domain, virDomainFree);
  self->domain = domain;
  bj_guest_set_domain (self->guest, domain);
}

static gboolean
check_spec (const BjMachineSpec *spec, GError **error)
{
  if (spec->id == NULL || *spec->id == '\0' || strlen (spec->id) > 16
      || strspn (spec->id, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen (spec->id))
    return bj_error_set (error, BJ_ERROR_INVALID, "A machine's id has 1 to 16 characters of a-z, 0-9 and -");
  if (spec->slot >= BJ_MACHINE_SLOTS || spec->cpus == 0 || spec->memory_mib < 64)
    return bj_error_set (error, BJ_ERROR_INVALID, "The machine %s needs a slot, a processor and 64 MiB", spec->id);
  /* sun_path has 108 bytes. */
  if (strlen (spec->run_dir) + strlen ("/virtiofsd.sock") >= 108)
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "The path %s is too long for a socket: choose a shorter state folder", spec->run_dir);
  return TRUE;
}

gboolean
bj_machine_prepare (BjMachine *self, GCancellable *cancellable, GError **error)
{
  const BjMachineSpec *spec = self->spec;
  g_autofree char *disk = dup_disk (self);

  if (!check_spec (spec, error) || g_cancellable_set_error_if_cancelled (cancellable, error)
      || !bj_run_dir_create (spec->run_dir, bj_machine_get_uid (self), error))
    return FALSE;
  return spec->writable_base || bj_overlay_create (disk, spec->base, bj_machine_get_uid (self), cancellable, error);
}

gboolean
bj_machine_start (BjMachine *self, GCancellable *cancellable, GError **error)
{
  virConnectPtr connection = bj_engine_get_connection (self->engine, error);
  g_autofree char *disk = dup_disk (self);
  g_autofree char *xml = bj_domain_xml_build (self->spec, disk, bj_engine_get_accelerator (self->engine));
  virDomainPtr domain;

  if (connection == NULL || g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  domain = virDomainCreateXML (connection, xml, 0);
  if (domain == NULL)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Starting the machine %s", self->spec->id);
  take_domain (self, domain);
  return TRUE;
}

gboolean
bj_machine_adopt (BjMachine *self, GError **error)
{
  virConnectPtr connection = bj_engine_get_connection (self->engine, error);
  g_autofree char *name = dup_name (self);
  virDomainPtr domain;

  if (connection == NULL)
    return FALSE;
  domain = virDomainLookupByName (connection, name);
  if (domain == NULL)
    return bj_libvirt_set_error (error, BJ_ERROR_NOT_FOUND, "The machine %s does not run any more", self->spec->id);
  take_domain (self, domain);
  return TRUE;
}

BjMachineState
bj_machine_get_state (BjMachine *self)
{
  g_autoptr(virDomain) domain = ref_domain (self, NULL);
  int state = VIR_DOMAIN_NOSTATE;
  int reason = 0;

  if (domain == NULL || virDomainGetState (domain, &state, &reason, 0) < 0)
    return BJ_MACHINE_STATE_ABSENT;
  if (state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED)
    return BJ_MACHINE_STATE_RUNNING;
  if (state != VIR_DOMAIN_PAUSED)
    return BJ_MACHINE_STATE_ABSENT;
  return reason == VIR_DOMAIN_PAUSED_IOERROR ? BJ_MACHINE_STATE_NO_SPACE : BJ_MACHINE_STATE_PAUSED;
}

gboolean
bj_machine_wait_ready (BjMachine *self, guint deadline_s, GCancellable *cancellable, GError **error)
{
  gint64 deadline = g_get_monotonic_time () + (gint64) deadline_s * G_USEC_PER_SEC;

  for (;;)
    {
      g_autoptr(GError) local = NULL;

      if (bj_guest_hello (self->guest, cancellable, &local))
        return TRUE;
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      if (bj_machine_get_state (self) == BJ_MACHINE_STATE_ABSENT)
        return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine %s ended while it was starting",
                             self->spec->id);
      if (g_get_monotonic_time () > deadline)
        return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest was not ready after %u seconds: %s",
                             deadline_s, local->message);
      g_usleep (READY_POLL_US);
    }
}

/* $1 hostname, $2 machine-id, $3 resolv.conf or empty. The clock was set by the hello that found it ready. */
static const char setup_script[] =
    "set -e\n"
    "echo \"$1\" >/etc/hostname\n"
    "echo \"$1\" >/proc/sys/kernel/hostname\n"
    "echo \"127.0.0.1 localhost $1\" >/etc/hosts\n"
    "rm -f /etc/machine-id\n"
    "echo \"$2\" >/etc/machine-id\n"
    "if [ -n \"$3\" ]; then rm -f /etc/resolv.conf; echo \"$3\" >/etc/resolv.conf; fi\n";

static char *
build_resolv_conf (GStrv resolvers)
{
  g_autoptr(GString) text = g_string_new (NULL);

  for (guint i = 0; resolvers != NULL && resolvers[i] != NULL; i++)
    g_string_append_printf (text, "%snameserver %s", i > 0 ? "\n" : "", resolvers[i]);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* Runs a small script of ours; its failure is an error. */
static gboolean
run_script (BjMachine *self, const char *const *argv, guint timeout_s, const char *what, GCancellable *cancellable,
            GError **error)
{
  const BjExec exec = { .argv = argv, .cwd = "/", .timeout_s = timeout_s, .cap = 4096 };
  g_auto(BjExecResult) result = { 0 };
  g_autofree char *raw = NULL;
  g_autofree char *text = NULL;

  if (!bj_guest_exec (self->guest, &exec, &result, cancellable, error))
    {
      g_prefix_error (error, "%s: ", what);
      return FALSE;
    }
  if (result.exit == 0)
    return TRUE;
  raw = g_strndup (g_bytes_get_data (result.err, NULL), g_bytes_get_size (result.err));
  text = bj_libvirt_clean_text (raw);
  return bj_error_set (error, BJ_ERROR_FAILED, "%s failed in the guest%s: %s", what,
                       result.timed_out ? " (timed out)" : "", text);
}

gboolean
bj_machine_setup (BjMachine *self, GCancellable *cancellable, GError **error)
{
  g_autofree char *resolv = build_resolv_conf (self->spec->resolvers);
  g_autofree char *machine_id = g_uuid_string_random ();
  const char *argv[] = { "/bin/sh", "-c", setup_script, "sh", self->spec->hostname, machine_id, resolv, NULL };
  char *end = machine_id;

  for (const char *c = machine_id; *c != '\0'; c++)
    if (*c != '-')
      *end++ = *c;
  *end = '\0';
  return run_script (self, argv, SETUP_SECONDS, "Setting up the machine", cancellable, error);
}

static gboolean
attach_device (BjMachine *self, const char *xml, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  if (virDomainAttachDeviceFlags (domain, xml, VIR_DOMAIN_AFFECT_LIVE) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Plugging the share into the machine %s", self->spec->id);
  return TRUE;
}

/* $1 mount point, $2 tag; the device may need a moment to appear */
static const char mount_script[] =
    "mkdir -p \"$1\" || exit 1\n"
    "i=0\n"
    "until mount -t virtiofs \"$2\" \"$1\" 2>/run/belljar/mount.err; do\n"
    "  i=$((i+1)); [ $i -ge 100 ] && { cat /run/belljar/mount.err >&2; exit 1; }; sleep 0.05\n"
    "done\n";

static gboolean
mount_share (BjMachine *self, const char *mount_point, GCancellable *cancellable, GError **error)
{
  const char *argv[] = { "/bin/sh", "-c", mount_script, "sh", mount_point, BJ_DOMAIN_SHARE_TAG, NULL };

  return run_script (self, argv, MOUNT_SECONDS, "Mounting the share", cancellable, error);
}

gboolean
bj_machine_attach_share (BjMachine *self, int dir_fd, uid_t uid, gid_t gid, const char *mount_point,
                         GCancellable *cancellable, GError **error)
{
  g_autofree char *socket = dup_path (self, "virtiofsd.sock");
  g_autofree char *log = dup_path (self, "virtiofsd.log");
  g_autofree char *xml = bj_domain_xml_build_share (socket);
  const BjShareSpec spec = { .dir_fd = dir_fd, .uid = uid, .gid = gid, .slot = self->spec->slot, .socket = socket,
                             .log = log, .machine_uid = bj_machine_get_uid (self) };
  BjShare *share;

  if (!self->spec->share)
    return bj_error_set (error, BJ_ERROR_INVALID, "The machine %s was made without shared memory", self->spec->id);
  share = bj_share_start (&spec, cancellable, error);
  if (share == NULL)
    return FALSE;
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->share, bj_share_free);
  self->share = share;
  g_mutex_unlock (&self->lock);
  if (attach_device (self, xml, error) && mount_share (self, mount_point, cancellable, error))
    return TRUE;
  bj_machine_detach_share (self, NULL);
  return FALSE;
}

gboolean
bj_machine_detach_share (BjMachine *self, GError **error)
{
  g_autofree char *socket = dup_path (self, "virtiofsd.sock");
  g_autofree char *xml = bj_domain_xml_build_share (socket);
  g_autoptr(virDomain) domain = ref_domain (self, NULL);
  BjShare *share;

  g_mutex_lock (&self->lock);
  share = g_steal_pointer (&self->share);
  g_mutex_unlock (&self->lock);
  /* Unplugging needs the guest's consent, so what counts is that the server ends: no request is served after that. */
  if (!bj_share_stop (share, socket, error))
    return FALSE;
  if (domain != NULL && virDomainDetachDeviceFlags (domain, xml, VIR_DOMAIN_AFFECT_LIVE) < 0)
    g_debug ("Unplugging the share of %s: the guest will find it dead", self->spec->id);
  return TRUE;
}

gboolean
bj_machine_pause (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  if (bj_machine_get_state (self) != BJ_MACHINE_STATE_PAUSED && virDomainSuspend (domain) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Pausing the machine %s", self->spec->id);
  return TRUE;
}

gboolean
bj_machine_resume (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  if (bj_machine_get_state (self) != BJ_MACHINE_STATE_RUNNING && virDomainResume (domain) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Resuming the machine %s", self->spec->id);
  return TRUE;
}

gboolean
bj_machine_set_link (BjMachine *self, gboolean up, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self, error);
  g_autofree char *command = g_strdup_printf ("{\"execute\":\"set_link\",\"arguments\":{\"name\":\"" BJ_DOMAIN_NIC
                                              "\",\"up\":%s}}", up ? "true" : "false");
  char *reply = NULL;
  gboolean ok;

  if (domain == NULL)
    return FALSE;
  if (!self->spec->network)
    return !up || bj_error_set (error, BJ_ERROR_INVALID, "The machine %s was made without a network", self->spec->id);
  if (virDomainQemuMonitorCommand (domain, command, &reply, 0) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Switching the network of the machine %s", self->spec->id);
  ok = strstr (reply, "\"error\"") == NULL;
  free (reply);
  return ok || bj_error_set (error, BJ_ERROR_FAILED, "QEMU did not switch the network of %s", self->spec->id);
}

GBytes *
bj_machine_screenshot (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self, error);

  return domain ? bj_screenshot_take (domain, error) : NULL;
}

static gboolean
end_domain (BjMachine *self, GError **error)
{
  virConnectPtr connection = bj_engine_get_connection (self->engine, error);
  g_autofree char *name = dup_name (self);
  g_autoptr(virDomain) domain = NULL;

  if (connection == NULL)
    return FALSE;
  domain = virDomainLookupByName (connection, name);
  if (domain != NULL && virDomainDestroy (domain) < 0 && virDomainIsActive (domain) == 1)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Ending the machine %s", self->spec->id);
  take_domain (self, NULL);
  return TRUE;
}

gboolean
bj_machine_destroy (BjMachine *self, GError **error)
{
  g_autofree char *socket = dup_path (self, "virtiofsd.sock");
  BjShare *share;

  g_mutex_lock (&self->lock);
  share = g_steal_pointer (&self->share);
  g_mutex_unlock (&self->lock);
  if (!bj_share_stop (share, socket, error) || !end_domain (self, error))
    return FALSE;
  bj_engine_forget_log (self->engine, self->spec->id);
  return bj_run_dir_remove (self->spec->run_dir, error);
}
