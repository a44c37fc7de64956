/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

#include "bj-error.h"

#include <string.h>
#include <unistd.h>

typedef struct
{
  BusFixture bus;
  guint handled;
} Fixture;

static gboolean
on_look (BjDBusTest *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  Fixture *fixture = user_data;
  const BjCaller *caller = bj_gate_get_caller (invocation);

  fixture->handled++;
  g_assert_nonnull (caller);
  g_assert_cmpstr (caller->sender, ==, g_dbus_connection_get_unique_name (fixture->bus.client));
  bj_dbus_test_complete_look (skeleton, invocation, (guint) caller->uid);
  return TRUE;
}

static gboolean
on_plain (BjDBusTest *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  ((Fixture *) user_data)->handled++;
  g_dbus_method_invocation_return_value (invocation, NULL);
  return TRUE;
}

/* Foreign errors, with text that is not UTF-8, still become one of ours. */
static gboolean
on_strange (BjDBusTest *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  g_autoptr(GError) error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_NO_SPACE, "disk \xff full");

  bj_gate_return_error (invocation, error);
  return TRUE;
}

static void
set_up (Fixture *fixture, gconstpointer auth)
{
  bus_set_up (&fixture->bus, (BjAuth) GPOINTER_TO_INT (auth));
  bj_dbus_test_set_number (fixture->bus.skeleton, 42);
  g_signal_connect (fixture->bus.skeleton, "handle-look", G_CALLBACK (on_look), fixture);
  g_signal_connect (fixture->bus.skeleton, "handle-anybody", G_CALLBACK (on_plain), fixture);
  g_signal_connect (fixture->bus.skeleton, "handle-forgotten", G_CALLBACK (on_plain), fixture);
  g_signal_connect (fixture->bus.skeleton, "handle-strange", G_CALLBACK (on_strange), fixture);
}

static void
tear_down (Fixture *fixture, gconstpointer auth)
{
  bus_tear_down (&fixture->bus);
}

static void
on_reply (GObject *source, GAsyncResult *result, gpointer user_data)
{
  *(GAsyncResult **) user_data = g_object_ref (result);
}

static GVariant *
call (Fixture *fixture, const char *interface, const char *method, GVariant *parameters, GError **error)
{
  g_autoptr(GAsyncResult) result = NULL;

  g_dbus_connection_call (fixture->bus.client, g_dbus_connection_get_unique_name (fixture->bus.server), BUS_PATH,
                          interface, method, parameters, NULL, G_DBUS_CALL_FLAGS_NONE, 20000, NULL, on_reply, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return g_dbus_connection_call_finish (fixture->bus.client, result, error);
}

static void
expect (Fixture *fixture, const char *method, const char *name, const char *part)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) reply = call (fixture, "org.belljar1.Test", method, NULL, &error);
  g_autofree char *remote = NULL;

  if (name == NULL)
    {
      g_assert_no_error (error);
      return;
    }
  g_assert_null (reply);
  remote = g_dbus_error_get_remote_error (error);
  g_assert_cmpstr (remote, ==, name);
  g_assert_nonnull (strstr (error->message, part));
}

static void
test_owner (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(GVariant) reply = NULL;
  guint uid = 0;

  bus_export (&fixture->bus, TRUE);
  for (guint i = 0; i < 3; i++) /* the second time from the cache */
    {
      g_clear_pointer (&reply, g_variant_unref);
      reply = call (fixture, "org.belljar1.Test", "Look", NULL, NULL);
      g_assert_nonnull (reply);
      g_variant_get (reply, "(u)", &uid);
      g_assert_cmpuint (uid, ==, getuid ());
      g_assert_cmpuint (fixture->handled, ==, i + 1);
    }
}

static void
test_forgotten (Fixture *fixture, gconstpointer unused)
{
  bus_export (&fixture->bus, TRUE);
  g_test_expect_message ("belljar-gate", G_LOG_LEVEL_WARNING, "*Forgotten*");
  expect (fixture, "Forgotten", "org.belljar1.Error.Denied", "names no polkit action");
  g_test_assert_expected_messages ();
  g_assert_cmpuint (fixture->handled, ==, 0);
}

/* The class is hooked by another instance; this one nobody guarded. */
static void
test_unguarded (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjDBusTest) other = bj_dbus_test_skeleton_new ();

  bj_gate_guard (fixture->bus.gate, G_DBUS_INTERFACE_SKELETON (other), BJ_GATE_NOBODY, "other");
  bus_export (&fixture->bus, FALSE);
  g_test_expect_message ("belljar-gate", G_LOG_LEVEL_WARNING, "*not guarded*");
  expect (fixture, "Anybody", "org.belljar1.Error.Denied", "not guarded");
  g_test_assert_expected_messages ();
  g_assert_cmpuint (fixture->handled, ==, 0);
}

static void
test_properties (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(GVariant) reply = NULL;
  g_autoptr(GVariant) value = NULL;
  g_autoptr(GVariant) set = NULL;
  g_autoptr(GError) error = NULL;

  bus_export (&fixture->bus, TRUE);
  reply = call (fixture, "org.freedesktop.DBus.Properties", "Get",
                g_variant_new ("(ss)", "org.belljar1.Test", "Number"), &error);
  g_assert_no_error (error);
  g_variant_get (reply, "(v)", &value);
  g_assert_cmpuint (g_variant_get_uint32 (value), ==, 42);
  set = call (fixture, "org.freedesktop.DBus.Properties", "Set",
              g_variant_new ("(ssv)", "org.belljar1.Test", "Number", g_variant_new_uint32 (1)), &error);
  g_assert_null (set);
  g_assert_nonnull (error);
  g_assert_cmpuint (bj_dbus_test_get_number (fixture->bus.skeleton), ==, 42);
}

static void
test_strange_error (Fixture *fixture, gconstpointer unused)
{
  bus_export (&fixture->bus, TRUE);
  expect (fixture, "Strange", "org.belljar1.Error.NoSpace", "disk \xef\xbf\xbd full");
}

static void
test_no_polkitd (Fixture *fixture, gconstpointer unused)
{
  bus_export (&fixture->bus, TRUE);
  g_test_expect_message ("belljar-gate", G_LOG_LEVEL_WARNING, "*polkit*");
  expect (fixture, "Look", "org.belljar1.Error.Denied", "see that polkitd runs");
  g_test_assert_expected_messages ();
  g_assert_cmpuint (fixture->handled, ==, 0);
  expect (fixture, "Anybody", NULL, NULL);
  g_assert_cmpuint (fixture->handled, ==, 1);
}

#define ADD(name, auth, func) \
  g_test_add ("/gate/" name, Fixture, GINT_TO_POINTER (auth), set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_dbus_unset ();
  ADD ("owner", BJ_AUTH_OWNER, test_owner);
  ADD ("forgotten", BJ_AUTH_OWNER, test_forgotten);
  ADD ("unguarded", BJ_AUTH_OWNER, test_unguarded);
  ADD ("properties", BJ_AUTH_OWNER, test_properties);
  ADD ("strange-error", BJ_AUTH_OWNER, test_strange_error);
  ADD ("no-polkitd", BJ_AUTH_POLKIT, test_no_polkitd);
  return g_test_run ();
}
