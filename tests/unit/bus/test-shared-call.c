/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A flood of calls: one run for many, no more than so many for one user, and each one answered. */
#include "fixture.h"

#include "bj-shared-call.h"

#include <string.h>

#define FLOOD 120 /* a bus allows 128 open calls of one connection */

typedef struct
{
  BusFixture bus;
  BjSharedCall *shared;
  GMutex lock;
  GCond cond;
  gboolean open; /* whether a run may end */
  guint runs;
  int made; /* atomic: a worker may be the last that lets go */
  guint taken;
  guint answered;
  guint limited;
} Fixture;

static gboolean
run (gpointer data, GVariant **reply, GError **error)
{
  Fixture *fixture = data;

  g_mutex_lock (&fixture->lock);
  fixture->runs++;
  while (!fixture->open)
    g_cond_wait (&fixture->cond, &fixture->lock);
  g_mutex_unlock (&fixture->lock);
  *reply = g_variant_new ("(u)", 7u);
  return TRUE;
}

static gboolean
run_plain (gpointer data, GVariant **reply, GError **error)
{
  g_autoptr(GVariant) unused = NULL;

  return run (data, &unused, error);
}

static gpointer
make (gpointer user_data)
{
  g_atomic_int_inc (&((Fixture *) user_data)->made);
  return user_data;
}

static void
unmake (gpointer data)
{
  g_atomic_int_add (&((Fixture *) data)->made, -1);
}

static gboolean
on_look (BjDBusTest *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  Fixture *fixture = user_data;

  fixture->taken++;
  bj_shared_call_add (fixture->shared, invocation);
  return TRUE;
}

/* The same flood at a method with a worker for each call. */
static gboolean
on_anybody (BjDBusTest *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  ((Fixture *) user_data)->taken++;
  bj_call_in_worker (invocation, run_plain, make (user_data), unmake);
  return TRUE;
}

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  bus_set_up (&fixture->bus, BJ_AUTH_OWNER);
  fixture->shared = bj_shared_call_new (run, make, fixture, unmake);
  g_signal_connect (fixture->bus.skeleton, "handle-look", G_CALLBACK (on_look), fixture);
  g_signal_connect (fixture->bus.skeleton, "handle-anybody", G_CALLBACK (on_anybody), fixture);
  bus_export (&fixture->bus, TRUE);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_clear_pointer (&fixture->shared, bj_shared_call_free);
  while (g_atomic_int_get (&fixture->made) > 0)
    g_main_context_iteration (NULL, FALSE);
  bus_tear_down (&fixture->bus);
}

static void
on_reply (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Fixture *fixture = user_data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);

  fixture->answered++;
  if (reply != NULL)
    return;
  g_assert_cmpint (g_dbus_error_is_remote_error (error), ==, TRUE);
  g_assert_nonnull (strstr (error->message, "org.belljar1.Error.Limit"));
  fixture->limited++;
}

static void
flood (Fixture *fixture, const char *method, guint n)
{
  guint goal = fixture->taken + n;

  for (guint i = 0; i < n; i++)
    g_dbus_connection_call (fixture->bus.client, g_dbus_connection_get_unique_name (fixture->bus.server), BUS_PATH,
                            "org.belljar1.Test", method, NULL, NULL, G_DBUS_CALL_FLAGS_NONE, 60000, NULL, on_reply, fixture);
  while (fixture->taken < goal)
    g_main_context_iteration (NULL, TRUE);
}

static void
open_door (Fixture *fixture)
{
  g_mutex_lock (&fixture->lock);
  fixture->open = TRUE;
  g_cond_broadcast (&fixture->cond);
  g_mutex_unlock (&fixture->lock);
}

static void
wait_for_answers (Fixture *fixture, guint n)
{
  while (fixture->answered < n)
    g_main_context_iteration (NULL, TRUE);
}

static void
test_shared (Fixture *fixture, gconstpointer unused)
{
  flood (fixture, "Look", FLOOD);
  open_door (fixture);
  wait_for_answers (fixture, FLOOD);
  g_assert_cmpuint (fixture->limited, ==, FLOOD - BJ_CALLS_PER_USER);
  g_assert_cmpuint (fixture->runs, ==, 2); /* for the first call, and for all that came meanwhile */
  flood (fixture, "Look", 1);
  wait_for_answers (fixture, FLOOD + 1);
  g_assert_cmpuint (fixture->limited, ==, FLOOD - BJ_CALLS_PER_USER);
  g_assert_cmpuint (fixture->runs, ==, 3);
}

static void
test_workers (Fixture *fixture, gconstpointer unused)
{
  flood (fixture, "Anybody", FLOOD);
  g_assert_cmpint (g_atomic_int_get (&fixture->made), ==, BJ_CALLS_PER_USER);
  open_door (fixture);
  wait_for_answers (fixture, FLOOD);
  g_assert_cmpuint (fixture->limited, ==, FLOOD - BJ_CALLS_PER_USER);
  g_assert_cmpuint (fixture->runs, ==, BJ_CALLS_PER_USER);
}

/* The daemon ends in the middle: who waits is told so, and the run under way still answers. */
static void
test_end (Fixture *fixture, gconstpointer unused)
{
  flood (fixture, "Look", 1);
  bj_shared_call_free (g_steal_pointer (&fixture->shared));
  open_door (fixture);
  wait_for_answers (fixture, 1);
  g_assert_cmpuint (fixture->limited, ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/shared-call/flood", Fixture, NULL, set_up, test_shared, tear_down);
  g_test_add ("/shared-call/workers", Fixture, NULL, set_up, test_workers, tear_down);
  g_test_add ("/shared-call/end", Fixture, NULL, set_up, test_end, tear_down);
  return g_test_run ();
}
