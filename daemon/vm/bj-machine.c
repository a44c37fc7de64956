/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine.h"

#include "bj-domain-xml.h"
#include "bj-engine-private.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-guest-private.h"
#include "bj-machine-private.h"
#include "bj-monitor.h"
#include "bj-overlay.h"
#include "bj-run-dir.h"
#include "bj-screenshot.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define READY_POLL_US 20000
/* A second name of its template's disk, in a clone's folder: the template may go before the clone, and an adopted or parked machine
 * finds here what its overlay stands on. */
#define BACKING "backing.qcow2"

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
  copy->template = spec->template != NULL ? bj_template_ref (spec->template) : NULL;
  copy->ram = spec->ram != NULL ? bj_ram_ref (spec->ram) : NULL;
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
  g_clear_pointer (&spec->template, bj_template_unref);
  g_clear_pointer (&spec->ram, bj_ram_unref);
  g_free (spec);
}

static void
announce_gone (BjMachine *self)
{
  GDestroyNotify gone = g_steal_pointer (&self->gone);

  if (gone != NULL)
    gone (self->gone_data);
}

static void
bj_machine_finalize (GObject *object)
{
  BjMachine *self = BJ_MACHINE (object);

  announce_gone (self);
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

const char *
bj_machine_get_id (BjMachine *self)
{
  return self->spec->id;
}

const BjMachineSpec *
bj_machine_get_spec (BjMachine *self)
{
  return self->spec;
}

void
bj_machine_on_gone (BjMachine *self, GDestroyNotify gone, gpointer user_data)
{
  announce_gone (self);
  self->gone = gone;
  self->gone_data = user_data;
}

void
bj_machine_take_over (BjMachine *self, BjMachine *from)
{
  gpointer data = g_steal_pointer (&from->gone_data);

  bj_machine_on_gone (self, g_steal_pointer (&from->gone), data);
}

gpointer
bj_machine_get_holding (BjMachine *self)
{
  return self->gone_data;
}

gboolean
bj_machine_has_share (BjMachine *self)
{
  return self->share_plugged;
}

void
bj_machine_adapt (BjMachine *self, const BjMachineSpec *spec)
{
  g_return_if_fail (self->spec->memory_mib == spec->memory_mib && self->spec->cpus == spec->cpus);
  g_return_if_fail (self->spec->share || !spec->share);
  g_free (self->spec->hostname);
  g_free (self->spec->data_disk);
  g_strfreev (self->spec->resolvers);
  self->spec->hostname = g_strdup (spec->hostname);
  self->spec->data_disk = g_strdup (spec->data_disk);
  self->spec->resolvers = g_strdupv (spec->resolvers);
  self->spec->network = spec->network;
}

BjGuest *
bj_machine_get_guest (BjMachine *self)
{
  return self->guest;
}

char *
bj_machine_dup_path (BjMachine *self, const char *name)
{
  return g_build_filename (self->spec->run_dir, name, NULL);
}

static char *
dup_disk (BjMachine *self)
{
  return self->spec->writable_base ? g_strdup (self->spec->base) : bj_machine_dup_path (self, "overlay.qcow2");
}

static char *
dup_name (BjMachine *self)
{
  return g_strconcat (BJ_DOMAIN_PREFIX, self->spec->id, NULL);
}

virDomainPtr
bj_machine_ref_domain (BjMachine *self, GError **error)
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
  const char *original = spec->template != NULL ? bj_template_get_disk (spec->template) : NULL;
  g_autofree char *backing = bj_machine_dup_path (self, BACKING);
  g_autofree char *disk = dup_disk (self);

  if (!check_spec (spec, error) || g_cancellable_set_error_if_cancelled (cancellable, error)
      || (spec->template != NULL && !bj_template_is_unchanged (spec->template, error))
      || !bj_run_dir_create (spec->run_dir, bj_machine_get_uid (self), error))
    return FALSE;
  if (original != NULL && link (original, backing) < 0)
    return bj_fd_set_io_error (error, errno, "Keeping the template's disk %s", original);
  return spec->writable_base
         || bj_overlay_create (disk, original != NULL ? backing : spec->base, bj_machine_get_uid (self), cancellable, error);
}

/* virtiofsd reads and writes the guest's memory, so with a share it cannot be QEMU's private view of the template's.
 * Returns: (transfer full) (nullable): %NULL: QEMU makes its own, or @error is set */
static BjRam *
get_ram (BjMachine *self, GError **error)
{
  const BjMachineSpec *spec = self->spec;

  if (spec->template == NULL && spec->ram != NULL)
    return bj_ram_ref (spec->ram);
  if (spec->template == NULL)
    return spec->share ? bj_ram_new (spec->memory_mib, error) : NULL;
  if (spec->share)
    return bj_ram_copy (bj_template_get_ram (spec->template), error);
  return bj_ram_ref (bj_template_get_ram (spec->template));
}

/* @incoming_type: (nullable): it waits for a whole machine of this type */
static virDomainPtr
create_domain (BjMachine *self, const char *ram, const char *incoming_type, GError **error)
{
  const BjMachineSpec *spec = self->spec;
  g_autofree char *backing = bj_machine_dup_path (self, BACKING);
  gboolean is_clone = g_file_test (backing, G_FILE_TEST_EXISTS);
  const char *chain[] = { is_clone ? backing : spec->base, is_clone ? spec->base : NULL, NULL };
  virConnectPtr connection = bj_engine_get_connection (self->engine, error);
  g_autofree char *disk = dup_disk (self);
  const BjDomainFiles files = { .disk = disk, .chain = spec->writable_base ? NULL : chain, .ram = ram,
                                .kernel = spec->template != NULL ? bj_template_get_kernel (spec->template) : NULL,
                                .ram_private = spec->template != NULL && !spec->share,
                                .machine = incoming_type,
                                .incoming = spec->template != NULL || incoming_type != NULL };
  g_autofree char *xml = bj_domain_xml_build (spec, &files, bj_engine_get_accelerator (self->engine));
  virDomainPtr domain;

  if (connection == NULL)
    return NULL;
  domain = virDomainCreateXML (connection, xml, VIR_DOMAIN_START_PAUSED);
  if (domain == NULL)
    bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Starting the machine %s", spec->id);
  return domain;
}

static gboolean
load_state (BjMachine *self, GCancellable *cancellable, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);
  g_auto(BjFd) state = domain != NULL ? bj_template_open_state (self->spec->template, error) : -1;

  if (state < 0)
    return FALSE;
  if (bj_monitor_load_state (domain, state, cancellable, error))
    return TRUE;
  g_prefix_error (error, "Cloning the machine %s: ", self->spec->id);
  return FALSE;
}

static gboolean
create (BjMachine *self, const char *incoming_type, GCancellable *cancellable, GError **error)
{
  g_autoptr(GError) local = NULL;
  g_autoptr(BjRam) ram = NULL;
  g_autoptr(BjRamLoan) loan = NULL;
  virDomainPtr domain;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  ram = get_ram (self, &local);
  if (ram != NULL)
    loan = bj_ram_lend (ram, bj_machine_get_uid (self), &local);
  if (local != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  domain = create_domain (self, loan != NULL ? bj_ram_loan_get_path (loan) : NULL, incoming_type, error);
  if (domain != NULL)
    take_domain (self, domain);
  return domain != NULL;
}

gboolean
bj_machine_create (BjMachine *self, GCancellable *cancellable, GError **error)
{
  return create (self, NULL, cancellable, error)
         && (self->spec->template == NULL || load_state (self, cancellable, error));
}

gboolean
bj_machine_create_incoming (BjMachine *self, const char *type, GCancellable *cancellable, GError **error)
{
  return create (self, type, cancellable, error);
}

gboolean
bj_machine_run (BjMachine *self, GError **error)
{
  return (!self->spec->network || self->nic_plugged || bj_machine_plug_nic (self, error))
         && (self->spec->data_disk == NULL || bj_machine_plug_data_disk (self, error)) && bj_machine_resume (self, error);
}

gboolean
bj_machine_start (BjMachine *self, GCancellable *cancellable, GError **error)
{
  return bj_machine_create (self, cancellable, error) && bj_machine_run (self, error);
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
  self->share_plugged = self->spec->share;
  self->nic_plugged = self->spec->network;
  return TRUE;
}

BjMachineState
bj_machine_get_state (BjMachine *self)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, NULL);
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

gboolean
bj_machine_pause (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  if (bj_machine_get_state (self) != BJ_MACHINE_STATE_PAUSED && virDomainSuspend (domain) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Pausing the machine %s", self->spec->id);
  return TRUE;
}

gboolean
bj_machine_resume (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  if (bj_machine_get_state (self) != BJ_MACHINE_STATE_RUNNING && virDomainResume (domain) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Resuming the machine %s", self->spec->id);
  return TRUE;
}

gboolean
bj_machine_save_state (BjMachine *self, int fd, GCancellable *cancellable, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);

  if (self->spec->template != NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "The machine %s is a clone: a template is made of one that was booted",
                         self->spec->id);
  return domain != NULL && bj_machine_pause (self, error) && bj_monitor_save_state (domain, fd, cancellable, error);
}

GBytes *
bj_machine_screenshot (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);

  return domain ? bj_screenshot_take (domain, error) : NULL;
}

gboolean
bj_machine_end_domain (BjMachine *self, GError **error)
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
  g_autofree char *socket = bj_machine_dup_path (self, "virtiofsd.sock");
  BjShare *share;

  g_mutex_lock (&self->lock);
  share = g_steal_pointer (&self->share);
  g_mutex_unlock (&self->lock);
  if (!bj_share_stop (share, socket, error) || !bj_machine_end_domain (self, error))
    return FALSE;
  bj_engine_forget_log (self->engine, self->spec->id);
  if (!bj_run_dir_remove (self->spec->run_dir, error))
    return FALSE;
  announce_gone (self);
  return TRUE;
}
