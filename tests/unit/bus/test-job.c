/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-bus.h"
#include "bj-dbus-job.h"
#include "bj-error.h"
#include "bj-job.h"

#include <string.h>

typedef struct
{
  GTestDBus *bus;
  GDBusConnection *server;
  GDBusObjectManagerServer *objects;
  BjGate *gate;
  BjJobs *jobs;
} Fixture;

static const BjCaller caller = { (char *) ":1.1", 1000, 1000 };

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->bus = g_test_dbus_new (G_TEST_DBUS_NONE);
  g_test_dbus_up (fixture->bus);
  fixture->server = g_dbus_connection_new_for_address_sync (
      g_test_dbus_get_bus_address (fixture->bus),
      G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL, NULL, NULL);
  g_assert_nonnull (fixture->server);
  fixture->objects = g_dbus_object_manager_server_new (BJ_BUS_ROOT);
  fixture->gate = bj_gate_new (fixture->server, BJ_AUTH_OWNER);
  fixture->jobs = bj_jobs_new (fixture->objects, fixture->gate);
  g_dbus_object_manager_server_set_connection (fixture->objects, fixture->server);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  bj_jobs_free (fixture->jobs, 30);
  g_object_unref (fixture->objects);
  g_object_unref (fixture->gate);
  g_object_unref (fixture->server);
  g_test_dbus_stop (fixture->bus);
  g_object_unref (fixture->bus);
}

static BjDBusJob *
find (Fixture *fixture, const char *path)
{
  g_autoptr(GDBusInterface) interface = g_dbus_object_manager_get_interface (
      G_DBUS_OBJECT_MANAGER (fixture->objects), path, "org.belljar1.Job");

  return interface != NULL ? BJ_DBUS_JOB (g_steal_pointer (&interface)) : NULL;
}

static void
wait_done (BjDBusJob *job)
{
  while (!bj_dbus_job_get_done (job))
    g_main_context_iteration (NULL, TRUE);
}

static gboolean
two_steps (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  bj_progress_add_step (progress, "first", 1);
  bj_progress_add_step (progress, "second", 1);
  for (guint i = 0; i < 1000; i++)
    bj_progress_set (progress, i / 1000.0);
  bj_progress_step_done (progress);
  bj_progress_step_done (progress);
  *message = g_strdup ("two steps");
  return TRUE;
}

static gboolean
until_cancelled (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  GPollFD fd;

  g_assert_true (g_cancellable_make_pollfd (cancellable, &fd));
  g_poll (&fd, 1, 60000);
  g_cancellable_release_fd (cancellable);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static void
on_finished (BjDBusJob *job, const char *error, const char *message, gpointer user_data)
{
  g_ptr_array_add (user_data, g_strdup_printf ("%s|%s", error, message));
}

static void
count_notify (GObject *object, GParamSpec *pspec, gpointer user_data)
{
  (*(guint *) user_data)++;
}

static void
mark_freed (gpointer data)
{
  *(gboolean *) data = TRUE;
}

static void
test_success (Fixture *fixture, gconstpointer unused)
{
  static gboolean freed; /* a job may be freed after its test */
  g_autofree char *path = bj_jobs_start (fixture->jobs, "image-build", &caller, two_steps, &freed, mark_freed, NULL);
  g_autoptr(BjDBusJob) job = find (fixture, path);
  g_autoptr(GPtrArray) finished = g_ptr_array_new_with_free_func (g_free);
  guint moves = 0;

  g_assert_cmpstr (path, ==, "/org/belljar1/jobs/1");
  g_assert_cmpstr (bj_dbus_job_get_operation (job), ==, "image-build");
  g_assert_cmpuint (bj_dbus_job_get_owner_uid (job), ==, 1000);
  g_assert_cmpstr (bj_dbus_job_get_phase (job), ==, ""); /* exported, but not started before we return to the loop */
  g_signal_connect (job, "finished", G_CALLBACK (on_finished), finished);
  g_signal_connect (job, "notify::progress", G_CALLBACK (count_notify), &moves);
  wait_done (job);
  g_assert_cmpuint (finished->len, ==, 1);
  g_assert_cmpstr (finished->pdata[0], ==, "|two steps");
  g_assert_cmpfloat (bj_dbus_job_get_progress (job), ==, 1);
  g_assert_cmpstr (bj_dbus_job_get_message (job), ==, "two steps");
  g_assert_cmpstr (bj_dbus_job_get_error (job), ==, "");
  g_assert_cmpuint (moves, <, 20); /* of a thousand */
}

static void
test_cancel (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *path = bj_jobs_start (fixture->jobs, "copy", &caller, until_cancelled, NULL, NULL, NULL);
  g_autoptr(BjDBusJob) job = find (fixture, path);
  g_autoptr(GDBusConnection) client = g_dbus_connection_new_for_address_sync (
      g_test_dbus_get_bus_address (fixture->bus),
      G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL, NULL, NULL);

  g_dbus_connection_call (client, g_dbus_connection_get_unique_name (fixture->server), path, "org.belljar1.Job",
                          "Cancel", NULL, NULL, G_DBUS_CALL_FLAGS_NONE, 20000, NULL, NULL, NULL);
  wait_done (job);
  g_assert_cmpstr (bj_dbus_job_get_error (job), ==, "org.belljar1.Error.Cancelled");
}

static void
test_limit (Fixture *fixture, gconstpointer unused)
{
  const BjCaller other = { (char *) ":1.2", 1001, 1001 };
  g_autoptr(GError) error = NULL;
  g_autofree char *theirs = NULL;
  static gboolean freed; /* a job may be freed after its test */

  for (guint i = 0; i < BJ_JOBS_PER_CALLER; i++)
    {
      g_autofree char *path = bj_jobs_start (fixture->jobs, "copy", &caller, until_cancelled, NULL, NULL, NULL);
      g_assert_nonnull (path);
    }
  g_assert_null (bj_jobs_start (fixture->jobs, "copy", &caller, until_cancelled, &freed, mark_freed, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
  g_assert_true (freed);
  theirs = bj_jobs_start (fixture->jobs, "copy", &other, until_cancelled, NULL, NULL, NULL);
  g_assert_nonnull (theirs);
}

/* Many short jobs do not pile up on the bus. */
static void
test_kept (Fixture *fixture, gconstpointer unused)
{
  g_autolist(GDBusObject) left = NULL;

  for (guint i = 0; i < 50; i++)
    {
      g_autofree char *path = bj_jobs_start (fixture->jobs, "copy", &caller, two_steps, NULL, NULL, NULL);
      g_autoptr(BjDBusJob) job = find (fixture, path);

      wait_done (job);
    }
  left = g_dbus_object_manager_get_objects (G_DBUS_OBJECT_MANAGER (fixture->objects));
  g_assert_cmpuint (g_list_length (left), ==, 32);
}

#define ADD(name, func) g_test_add ("/job/" name, Fixture, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_dbus_unset ();
  ADD ("success", test_success);
  ADD ("cancel", test_cancel);
  ADD ("limit", test_limit);
  ADD ("kept", test_kept);
  return g_test_run ();
}
