/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-engine-private.h"

#include "bj-accelerator.h"
#include "bj-domain-xml.h"
#include "bj-engine-boot.h"
#include "bj-engine-probes.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-libvirt.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <pwd.h>
#include <sys/stat.h>
#include <signal.h>
#include <string.h>

struct _BjEngine
{
  GObject parent_instance;

  char *uri;
  char *root_dir;
  BjAccelerator wish;
  BjAccelerator accelerator;
  char *reason; /* (owned) (nullable) */
  GMutex lock;  /* guards connection */
  virConnectPtr connection;
};

G_DEFINE_FINAL_TYPE (BjEngine, bj_engine, G_TYPE_OBJECT)

/*
 * QEMU starts as root and becomes the domain's own uid (its DAC label) before it touches a file; libvirt itself changes no
 * owner. "none" leaves only the DAC driver, which libvirt adds by itself. Probing QEMU's abilities as root takes 4 s once,
 * as another uid it took 48 s.
 */
static const char qemu_conf[] = "# Written by belljard at each start.\n"
                                "user = \"root\"\n"
                                "group = \"root\"\n"
                                "dynamic_ownership = 0\n"
                                "remember_owner = 0\n"
                                "security_driver = \"none\"\n"
                                "seccomp_sandbox = 1\n"
                                "stdio_handler = \"file\"\n"
                                "cgroup_controllers = []\n"
                                "namespaces = []\n"
                                "max_core = 0\n";

const char *
bj_accelerator_to_string (BjAccelerator accelerator)
{
  static const char *const names[] = { "auto", "kvm", "tcg" };

  return names[accelerator];
}

static void
bj_engine_finalize (GObject *object)
{
  BjEngine *self = BJ_ENGINE (object);

  bj_engine_close (self);
  g_free (self->uri);
  g_free (self->root_dir);
  g_free (self->reason);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (bj_engine_parent_class)->finalize (object);
}

static void
bj_engine_class_init (BjEngineClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_engine_finalize;
}

static void
bj_engine_init (BjEngine *self)
{
  g_mutex_init (&self->lock);
}

/* libvirt prints to standard error what it also returns as an error. */
static void
ignore_error (void *data, virErrorPtr error)
{
}

/* Once per process, before any connection: libvirt has one event loop, and no way to end its thread. */
static gpointer
run_events (gpointer data)
{
  for (;;)
    if (virEventRunDefaultImpl () < 0)
      g_usleep (100000);
  return NULL;
}

static gpointer
prepare_libvirt (gpointer data)
{
  /* A reader of a stream that goes away is an error of that stream. */
  signal (SIGPIPE, SIG_IGN);
  virSetErrorFunc (NULL, ignore_error);
  if (virInitialize () < 0 || virEventRegisterDefaultImpl () < 0)
    return GINT_TO_POINTER (FALSE);
  g_thread_unref (g_thread_new ("libvirt-events", run_events, NULL));
  return GINT_TO_POINTER (TRUE);
}

BjEngine *
bj_engine_new (const char *uri, const char *root_dir, BjAccelerator accelerator)
{
  BjEngine *self = g_object_new (BJ_TYPE_ENGINE, NULL);

  /* Only errors: its warnings repeat for each domain that it has arguments of our own. Read when libvirt initializes. */
  g_setenv ("LIBVIRT_DEBUG", "4", FALSE);
  self->root_dir = g_canonicalize_filename (root_dir, NULL);
  self->uri = uri ? g_strdup (uri) : g_strdup_printf ("qemu:///embed?root=%s", self->root_dir);
  self->wish = accelerator;
  return self;
}

static gboolean
is_embedded (BjEngine *self)
{
  return g_str_has_prefix (self->uri, "qemu:///embed");
}

/* A machine's uid passes through to its monitor's folder, whatever our umask; libvirt makes and owns the rest. */
static gboolean
make_passable (BjEngine *self, GError **error)
{
  static const char *const folders[] = { "", "lib", "lib/qemu", "lib/qemu/ram" };

  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *path = g_build_filename (self->root_dir, folders[i], NULL);

      if (g_mkdir_with_parents (path, 0711) < 0 || chmod (path, 0711) < 0)
        return bj_fd_set_io_error (error, errno, "Making the engine's folder %s", path);
    }
  return TRUE;
}

static gboolean
prepare_root (BjEngine *self, GError **error)
{
  g_autofree char *etc = g_build_filename (self->root_dir, "etc", NULL);
  g_autofree char *conf = g_build_filename (etc, "qemu.conf", NULL);

  if (is_embedded (self) && geteuid () != 0)
    return bj_error_set (error, BJ_ERROR_DENIED,
                         "The embedded engine gives each machine a uid of its own, so belljard has to run as root");
  if (!make_passable (self, error))
    return FALSE;
  if (g_mkdir_with_parents (etc, 0711) < 0)
    return bj_fd_set_io_error (error, errno, "Making the engine's folder %s", etc);
  if (!is_embedded (self))
    return TRUE;
  if (getpwnam ("libvirt-qemu") == NULL)
    return bj_error_set (error, BJ_ERROR_FAILED,
                         "libvirt's QEMU driver needs the system user libvirt-qemu: install libvirt-daemon-system, or "
                         "run: adduser --system --group --no-create-home --home /var/lib/libvirt libvirt-qemu");
  return g_file_set_contents_full (conf, qemu_conf, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error);
}

static gboolean
connect_libvirt (BjEngine *self, GError **error)
{
  static GOnce once = G_ONCE_INIT;
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->connection != NULL)
    return TRUE;
  if (!GPOINTER_TO_INT (g_once (&once, prepare_libvirt, NULL)))
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Preparing libvirt");
  self->connection = virConnectOpen (self->uri);
  if (self->connection == NULL)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Opening the engine %s", self->uri);
  return TRUE;
}

gboolean
bj_engine_open (BjEngine *self, GCancellable *cancellable, GError **error)
{
  g_autofree char *cache = g_build_filename (self->root_dir, "accelerator", NULL);

  if (!prepare_root (self, error))
    return FALSE;
  if (is_embedded (self))
    {
      bj_engine_end_probes (self->root_dir);
      if (!bj_engine_forget_dead (self->root_dir, error))
        return FALSE;
    }
  g_clear_pointer (&self->reason, g_free);
  self->accelerator = bj_accelerator_choose (self->wish, cache, &self->reason, cancellable, error);
  return self->accelerator != BJ_ACCELERATOR_AUTO && connect_libvirt (self, error);
}

void
bj_engine_close (BjEngine *self)
{
  g_mutex_lock (&self->lock);
  if (self->connection != NULL)
    virConnectClose (self->connection);
  self->connection = NULL;
  g_mutex_unlock (&self->lock);
}

virConnectPtr
bj_engine_get_connection (BjEngine *self, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->connection == NULL)
    bj_error_set (error, BJ_ERROR_FAILED, "The engine %s is not open", self->uri);
  return self->connection;
}

void
bj_engine_forget_log (BjEngine *self, const char *id)
{
  g_autofree char *name = g_strconcat (BJ_DOMAIN_PREFIX, id, ".log", NULL);
  g_autofree char *path = g_build_filename (self->root_dir, "log", "qemu", name, NULL);

  if (is_embedded (self) && g_unlink (path) < 0 && errno != ENOENT)
    g_warning ("Removing %s: %s", path, g_strerror (errno));
}

const char *
bj_engine_get_uri (BjEngine *self)
{
  return self->uri;
}

BjAccelerator
bj_engine_get_accelerator (BjEngine *self)
{
  return self->accelerator;
}

const char *
bj_engine_get_accelerator_reason (BjEngine *self)
{
  return self->reason ? self->reason : "The engine is not open yet";
}

GStrv
bj_engine_list_machines (BjEngine *self, GError **error)
{
  virConnectPtr connection = bj_engine_get_connection (self, error);
  g_autoptr(GStrvBuilder) ids = g_strv_builder_new ();
  virDomainPtr *domains = NULL;
  int n;

  if (connection == NULL)
    return NULL;
  n = virConnectListAllDomains (connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
  if (n < 0)
    {
      bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Listing machines");
      return NULL;
    }
  for (int i = 0; i < n; i++)
    {
      const char *name = virDomainGetName (domains[i]);

      if (g_str_has_prefix (name, BJ_DOMAIN_PREFIX))
        g_strv_builder_add (ids, name + strlen (BJ_DOMAIN_PREFIX));
      virDomainFree (domains[i]);
    }
  free (domains);
  return g_strv_builder_end (ids);
}
