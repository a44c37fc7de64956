/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine-private.h"

/* What is plugged into a machine while it is paused or runs: network card, tree, share. */

#include "bj-domain-xml.h"
#include "bj-error.h"
#include "bj-monitor.h"

#include <string.h>

#define PLUG_TRIES 100
#define PLUG_PAUSE_US 100000

char *
bj_machine_dup_mac (BjMachine *self)
{
  return g_strdup_printf ("52:54:00:be:%02x:%02x", self->spec->slot >> 8 & 0xff, self->spec->slot & 0xff);
}

/* libvirt cannot say ipv6=off, and with IPv6 slirp opens the host's loopback a second time, at fec0::2. */
static gboolean
add_user_network (virDomainPtr domain, GError **error)
{
  JsonObject *netdev = json_object_new ();

  json_object_set_string_member (netdev, "type", "user");
  json_object_set_string_member (netdev, "id", BJ_DOMAIN_NETDEV);
  json_object_set_boolean_member (netdev, "ipv6", FALSE);
  return bj_monitor_do (domain, "netdev_add", netdev, error);
}

gboolean
bj_machine_plug_nic (BjMachine *self, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);
  g_autofree char *mac = bj_machine_dup_mac (self);
  JsonObject *device;

  if (domain == NULL || !add_user_network (domain, error))
    return FALSE;
  device = json_object_new ();
  json_object_set_string_member (device, "driver", "virtio-net-pci");
  json_object_set_string_member (device, "id", BJ_DOMAIN_NIC);
  json_object_set_string_member (device, "netdev", BJ_DOMAIN_NETDEV);
  json_object_set_string_member (device, "bus", BJ_DOMAIN_NIC_BUS);
  json_object_set_string_member (device, "romfile", "");
  json_object_set_string_member (device, "mac", mac);
  self->nic_plugged = bj_monitor_do (domain, "device_add", device, error);
  return self->nic_plugged;
}

gboolean
bj_machine_set_link (BjMachine *self, gboolean up, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);
  JsonObject *arguments;

  if (domain == NULL)
    return FALSE;
  if (!self->spec->network)
    return !up || bj_error_set (error, BJ_ERROR_INVALID, "The machine %s was made without a network", self->spec->id);
  arguments = json_object_new ();
  json_object_set_string_member (arguments, "name", BJ_DOMAIN_NIC);
  json_object_set_boolean_member (arguments, "up", up);
  return bj_monitor_do (domain, "set_link", arguments, error);
}

static gboolean
attach_device (BjMachine *self, const char *xml, const char *what, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  /* A share that was taken away a moment ago may still be on its way out: the guest has a say in that. */
  for (guint i = 0; i < PLUG_TRIES; i++)
    {
      if (virDomainAttachDeviceFlags (domain, xml, VIR_DOMAIN_AFFECT_LIVE) == 0)
        return TRUE;
      if (strstr (virGetLastErrorMessage (), "already") == NULL && strstr (virGetLastErrorMessage (), "uplicate") == NULL)
        break;
      g_usleep (PLUG_PAUSE_US);
    }
  return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Plugging the %s into the machine %s", what, self->spec->id);
}

gboolean
bj_machine_plug_data_disk (BjMachine *self, GError **error)
{
  g_autofree char *xml = bj_domain_xml_build_data_disk (self->spec->data_disk);

  return attach_device (self, xml, "tree", error);
}

gboolean
bj_machine_attach_share (BjMachine *self, int dir_fd, uid_t uid, gid_t gid, GCancellable *cancellable, GError **error)
{
  g_autofree char *socket = bj_machine_dup_path (self, "virtiofsd.sock");
  g_autofree char *log = bj_machine_dup_path (self, "virtiofsd.log");
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
  self->share_plugged = attach_device (self, xml, "share", error);
  if (self->share_plugged)
    return TRUE;
  bj_machine_detach_share (self, NULL);
  return FALSE;
}

gboolean
bj_machine_detach_share (BjMachine *self, GError **error)
{
  g_autofree char *socket = bj_machine_dup_path (self, "virtiofsd.sock");
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, NULL);
  BjShare *share;

  g_mutex_lock (&self->lock);
  share = g_steal_pointer (&self->share);
  g_mutex_unlock (&self->lock);
  /* Unplugging needs the guest's consent, so what counts is that the server ends: no request is served after that. */
  if (!bj_share_stop (share, socket, error))
    return FALSE;
  self->share_plugged = FALSE;
  if (domain != NULL && virDomainDetachDeviceAlias (domain, BJ_DOMAIN_SHARE_ALIAS, VIR_DOMAIN_AFFECT_LIVE) < 0)
    g_debug ("Unplugging the share of %s: %s", self->spec->id, virGetLastErrorMessage ());
  return TRUE;
}
