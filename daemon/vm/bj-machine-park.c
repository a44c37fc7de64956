/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-machine"

#include "bj-machine-park.h"

#include "bj-digest.h"
#include "bj-domain-xml.h"
#include "bj-error.h"
#include "bj-fault.h"
#include "bj-fd.h"
#include "bj-machine-private.h"
#include "bj-monitor.h"
#include "bj-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define GROUP "park"
#define UNPLUG_SECONDS 30
#define UNPLUG_PAUSE_US 20000

/* What park.ini says; it is written last and makes the folder a parked machine. */
typedef struct
{
  char *machine; /* QEMU's machine type, with its version */
  char *digest;
} BjPark;

static void
park_clear (BjPark *park)
{
  g_free (park->machine);
  g_free (park->digest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjPark, park_clear)

static gboolean
sync_path (const char *path, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

  return (fd >= 0 && fsync (fd) == 0) || bj_fd_set_io_error (error, errno, "Writing %s", path);
}

/* Unplugging needs the guest: it runs meanwhile. */
static gboolean
has_device (virDomainPtr domain, const char *id, gboolean *found, GError **error)
{
  JsonObject *arguments = json_object_new ();
  g_autoptr(JsonNode) answer = NULL;
  JsonArray *devices;

  json_object_set_string_member (arguments, "path", "/machine/peripheral");
  answer = bj_monitor_call (domain, "qom-list", arguments, -1, error);
  if (answer == NULL || !JSON_NODE_HOLDS_ARRAY (answer))
    return answer != NULL && bj_error_set (error, BJ_ERROR_FAILED, "QEMU's list of devices is malformed");
  devices = json_node_get_array (answer);
  *found = FALSE;
  for (guint i = 0; i < json_array_get_length (devices); i++)
    {
      JsonNode *device = json_array_get_element (devices, i);

      if (JSON_NODE_HOLDS_OBJECT (device)
          && g_strcmp0 (json_object_get_string_member_with_default (json_node_get_object (device), "name", ""), id) == 0)
        *found = TRUE;
    }
  return TRUE;
}

static gboolean
wait_until_unplugged (BjMachine *self, virDomainPtr domain, const char *id, GCancellable *cancellable, GError **error)
{
  gint64 deadline = g_get_monotonic_time () + UNPLUG_SECONDS * G_USEC_PER_SEC;
  gboolean found = TRUE;

  while (g_get_monotonic_time () < deadline)
    {
      if (g_cancellable_set_error_if_cancelled (cancellable, error) || !has_device (domain, id, &found, error))
        return FALSE;
      if (!found)
        return TRUE;
      g_usleep (UNPLUG_PAUSE_US);
    }
  return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest of %s did not let go of the device %s", self->spec->id, id);
}

/* The share's server lives until the guest has let go of it: requests that are under way want an answer. */
static gboolean
unplug_share (BjMachine *self, virDomainPtr domain, GCancellable *cancellable, GError **error)
{
  if (!self->share_plugged)
    return TRUE;
  if (virDomainDetachDeviceAlias (domain, BJ_DOMAIN_SHARE_ALIAS, VIR_DOMAIN_AFFECT_LIVE) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Unplugging the share of %s", self->spec->id);
  return wait_until_unplugged (self, domain, BJ_DOMAIN_SHARE_ALIAS, cancellable, error)
         && bj_machine_detach_share (self, error);
}

static gboolean
unplug_nic (BjMachine *self, virDomainPtr domain, GCancellable *cancellable, GError **error)
{
  JsonObject *device = json_object_new ();
  JsonObject *netdev = json_object_new ();
  gboolean ok;

  json_object_set_string_member (device, "id", BJ_DOMAIN_NIC);
  json_object_set_string_member (netdev, "id", BJ_DOMAIN_NETDEV);
  ok = !self->nic_plugged
       || (bj_monitor_do (domain, "device_del", json_object_ref (device), error)
           && wait_until_unplugged (self, domain, BJ_DOMAIN_NIC, cancellable, error)
           && bj_monitor_do (domain, "netdev_del", json_object_ref (netdev), error));
  json_object_unref (device);
  json_object_unref (netdev);
  self->nic_plugged = self->nic_plugged && !ok;
  return ok;
}

static gboolean
unplug_all (BjMachine *self, virDomainPtr domain, const char *mount_point, guint *users, GCancellable *cancellable,
            GError **error)
{
  if (!bj_machine_resume (self, error))
    return FALSE;
  if (self->share_plugged && mount_point != NULL)
    {
      self->unmounted = TRUE;
      if (!bj_machine_unmount_share (self, mount_point, users, cancellable, error))
        return FALSE;
    }
  return unplug_share (self, domain, cancellable, error) && unplug_nic (self, domain, cancellable, error)
         && bj_machine_pause (self, error);
}

/* Returns: (transfer full): "pc-q35-7.2", so that a newer QEMU knows what it has to be */
static char *
dup_machine_type (virDomainPtr domain)
{
  char *xml = virDomainGetXMLDesc (domain, 0);
  const char *at = xml != NULL ? strstr (xml, " machine='") : NULL;
  char *type = NULL;

  if (at != NULL)
    {
      at += strlen (" machine='");
      type = g_strndup (at, strcspn (at, "'"));
    }
  free (xml);
  return type;
}

static gboolean
write_description (BjMachine *self, const char *dir, const BjPark *park, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = g_build_filename (dir, "park.ini", NULL);

  g_key_file_set_string (file, GROUP, "machine", park->machine);
  g_key_file_set_string (file, GROUP, "state", park->digest);
  g_key_file_set_integer (file, GROUP, "memory-mib", (int) self->spec->memory_mib);
  g_key_file_set_integer (file, GROUP, "cpus", (int) self->spec->cpus);
  return g_key_file_save_to_file (file, path, error) && sync_path (path, error) && sync_path (dir, error);
}

static gboolean
save (BjMachine *self, virDomainPtr domain, const char *dir, guint64 *bytes, GCancellable *cancellable, GError **error)
{
  g_autofree char *state = g_build_filename (dir, "state", NULL);
  g_autofree char *overlay = bj_machine_dup_path (self, "overlay.qcow2");
  g_auto(BjPark) park = { .machine = dup_machine_type (domain) };
  g_auto(BjFd) fd = open (state, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  struct stat info;

  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", state);
  if (park.machine == NULL)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Looking at the machine %s", self->spec->id);
  if (!bj_monitor_save_machine (domain, fd, cancellable, error))
    return FALSE;
  if (fsync (fd) < 0 || fstat (fd, &info) < 0)
    return bj_fd_set_io_error (error, errno, "Writing %s", state);
  *bytes = (guint64) info.st_size;
  park.digest = bj_digest_file (state, NULL, NULL, cancellable, error);
  return park.digest != NULL && sync_path (overlay, error)
         && write_description (self, dir, &park, error);
}

gboolean
bj_machine_park (BjMachine *self, const char *dir, const char *mount_point, BjParkFacts *facts, GCancellable *cancellable,
                 GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);
  g_autoptr(GError) leftover = NULL;

  *facts = (BjParkFacts) { 0 };
  if (domain == NULL)
    return FALSE;
  bj_machine_forget_park (dir);
  if (mkdir (dir, 0700) < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", dir);
  if (!unplug_all (self, domain, mount_point, &facts->users, cancellable, error)
      || !save (self, domain, dir, &facts->bytes, cancellable, error))
    {
      bj_machine_forget_park (dir);
      if (!bj_machine_pause (self, &leftover))
        g_message ("%s", leftover->message);
      return FALSE;
    }
  bj_fault_point ("park", "saved");
  if (!bj_machine_end_domain (self, &leftover))
    g_warning ("The parked machine %s still runs: %s", self->spec->id, leftover->message);
  return TRUE;
}

gboolean
bj_machine_is_parked (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "park.ini", NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

void
bj_machine_forget_park (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "park.ini", NULL);
  g_autoptr(GError) error = NULL;

  unlink (path); /* first: what is left is no parked machine */
  if (!bj_remove_tree (dir, &error))
    g_message ("%s stays: %s", dir, error->message);
}

static gboolean
read_description (BjMachine *self, const char *dir, BjPark *park, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = g_build_filename (dir, "park.ini", NULL);

  if (g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, NULL))
    {
      park->machine = g_key_file_get_string (file, GROUP, "machine", NULL);
      park->digest = g_key_file_get_string (file, GROUP, "state", NULL);
    }
  if (park->machine == NULL || park->digest == NULL || !g_key_file_has_key (file, GROUP, "cpus", NULL))
    return bj_error_set (error, BJ_ERROR_INVALID, "%s is damaged", path);
  if (g_key_file_get_integer (file, GROUP, "memory-mib", NULL) != (int) self->spec->memory_mib
      || g_key_file_get_integer (file, GROUP, "cpus", NULL) != (int) self->spec->cpus)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s is of a machine with other memory or processors", path);
  return TRUE;
}

static gboolean
check_state (const char *state, const BjPark *park, GCancellable *cancellable, GError **error)
{
  g_autofree char *found = bj_digest_file (state, NULL, NULL, cancellable, error);

  if (found == NULL)
    return FALSE;
  return g_str_equal (found, park->digest)
         || bj_error_set (error, BJ_ERROR_INVALID, "%s is damaged: its content is not what it was", state);
}

static gboolean
load (BjMachine *self, const char *state, GCancellable *cancellable, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);
  g_auto(BjFd) fd = open (state, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

  if (domain == NULL)
    return FALSE;
  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Opening %s", state);
  return bj_monitor_load_machine (domain, fd, cancellable, error);
}

gboolean
bj_machine_unpark (BjMachine *self, const char *dir, GCancellable *cancellable, GError **error)
{
  g_autofree char *state = g_build_filename (dir, "state", NULL);
  g_auto(BjPark) park = { 0 };
  g_autoptr(GError) leftover = NULL;

  if (!bj_machine_end_domain (self, error) || !read_description (self, dir, &park, error)
      || !check_state (state, &park, cancellable, error))
    return FALSE;
  self->unmounted = TRUE;
  if (bj_machine_create_incoming (self, park.machine, cancellable, error) && load (self, state, cancellable, error))
    return TRUE;
  g_prefix_error (error, "Bringing back the machine %s: ", self->spec->id);
  if (!bj_machine_end_domain (self, &leftover))
    g_warning ("%s", leftover->message);
  return FALSE;
}
