/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

static GDBusConnection *
connect_to (GTestDBus *bus)
{
  g_autoptr(GError) error = NULL;
  GDBusConnection *connection = g_dbus_connection_new_for_address_sync (
      g_test_dbus_get_bus_address (bus),
      G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL, NULL,
      &error);

  g_assert_no_error (error);
  return connection;
}

void
bus_set_up (BusFixture *self, BjAuth auth)
{
  self->bus = g_test_dbus_new (G_TEST_DBUS_NONE);
  g_test_dbus_up (self->bus);
  g_setenv ("DBUS_SYSTEM_BUS_ADDRESS", g_test_dbus_get_bus_address (self->bus), TRUE);
  self->server = connect_to (self->bus);
  self->client = connect_to (self->bus);
  self->gate = bj_gate_new (self->server, auth);
  self->skeleton = bj_dbus_test_skeleton_new ();
}

void
bus_tear_down (BusFixture *self)
{
  g_dbus_interface_skeleton_unexport (G_DBUS_INTERFACE_SKELETON (self->skeleton));
  g_object_unref (self->skeleton);
  g_object_unref (self->gate);
  g_object_unref (self->client);
  g_object_unref (self->server);
  g_test_dbus_stop (self->bus);
  g_object_unref (self->bus);
}

void
bus_export (BusFixture *self, gboolean guarded)
{
  g_autoptr(GError) error = NULL;

  if (guarded)
    bj_gate_guard (self->gate, G_DBUS_INTERFACE_SKELETON (self->skeleton), BJ_GATE_NOBODY, "test");
  g_dbus_interface_skeleton_export (G_DBUS_INTERFACE_SKELETON (self->skeleton), self->server, BUS_PATH, &error);
  g_assert_no_error (error);
}
