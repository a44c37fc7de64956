/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bj-client-wait.h"

#include "bj-error.h"

/* One WaitReport call waits this long; several in a row make the wait, so that no single one outlives a bus timeout. */
#define SLICE_MS 15000u
#define SLICE_CALL_MS 40000

typedef struct
{
  gpointer proxy;
  char *text; /* a job's message, a session's outcome */
} Wait;

static void
wait_free (Wait *wait)
{
  g_clear_object (&wait->proxy);
  g_free (wait->text);
  g_free (wait);
}

static GTask *
wait_new (BjClient *self, gpointer proxy, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, cancellable, callback, user_data);
  Wait *wait = g_new0 (Wait, 1);

  wait->proxy = g_object_ref (proxy);
  g_task_set_task_data (task, wait, (GDestroyNotify) wait_free);
  g_task_set_check_cancellable (task, FALSE); /* what is waited for tells, as one of our errors */
  return task;
}

/* Ends the wait for a job once; the task drops its handlers with it. */
static void
finish_job (GTask *task, const char *error_name, const char *message)
{
  Wait *wait = g_task_get_task_data (task);

  g_signal_handlers_disconnect_by_data (wait->proxy, task);
  if (g_task_get_cancellable (task) != NULL)
    g_signal_handlers_disconnect_by_data (g_task_get_cancellable (task), task);
  wait->text = g_strdup (message);
  if (error_name == NULL || *error_name == '\0')
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_new_error (task, BJ_ERROR, (int) bj_error_code_from_name (error_name, BJ_ERROR_FAILED), "%s",
                             message != NULL ? message : error_name);
  g_object_unref (task);
}

static void
on_job_finished (BjDBusJob *job, const char *error_name, const char *message, GTask *task)
{
  finish_job (task, error_name, message);
}

static void
on_job_done (BjDBusJob *job, GParamSpec *pspec, GTask *task)
{
  if (bj_dbus_job_get_done (job))
    finish_job (task, bj_dbus_job_get_error (job), bj_dbus_job_get_message (job));
}

static void
on_job_owner (GDBusProxy *job, GParamSpec *pspec, GTask *task)
{
  g_autofree char *owner = g_dbus_proxy_get_name_owner (job);

  if (owner == NULL)
    finish_job (task, "org.belljar1.Error.Failed", "belljard went away before the work was done; see its log for why");
}

static void
on_job_wait_cancelled (GCancellable *cancellable, GTask *task)
{
  Wait *wait = g_task_get_task_data (task);

  g_signal_handlers_disconnect_by_data (wait->proxy, task);
  g_signal_handlers_disconnect_by_data (cancellable, task);
  g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_CANCELLED, "Waiting was given up; the work goes on");
  g_object_unref (task);
}

void
bj_client_wait_job_async (BjClient *self, BjDBusJob *job, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data)
{
  GTask *task = wait_new (self, job, cancellable, callback, user_data);

  g_task_set_source_tag (task, bj_client_wait_job_async);
  if (bj_dbus_job_get_done (job))
    {
      finish_job (task, bj_dbus_job_get_error (job), bj_dbus_job_get_message (job));
      return;
    }
  g_signal_connect (job, "finished", G_CALLBACK (on_job_finished), task);
  g_signal_connect (job, "notify::done", G_CALLBACK (on_job_done), task);
  g_signal_connect (job, "notify::g-name-owner", G_CALLBACK (on_job_owner), task);
  if (cancellable != NULL)
    g_signal_connect (cancellable, "cancelled", G_CALLBACK (on_job_wait_cancelled), task);
}

gboolean
bj_client_wait_job_finish (BjClient *self, GAsyncResult *result, char **message, GError **error)
{
  Wait *wait = g_task_get_task_data (G_TASK (result));

  if (!g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  if (message != NULL)
    *message = g_strdup (wait->text != NULL ? wait->text : "");
  return TRUE;
}

static void wait_slice (GTask *task);

/* Its time is over, and it waits to be extended or stopped. */
static gboolean
is_over_time (BjDBusSession *session)
{
  return g_strcmp0 (bj_dbus_session_get_state (session), "paused") == 0
         && bj_dbus_session_get_deadline (session) <= (guint64) (g_get_real_time () / G_USEC_PER_SEC);
}

static void
on_slice (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GTask) task = user_data;
  Wait *wait = g_task_get_task_data (task);
  g_autoptr(GVariant) answer = NULL;
  g_autofree char *report = NULL;
  GError *error = NULL;

  answer = bj_client_call_finish (BJ_CLIENT (source), result, NULL, &error);
  if (answer == NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  g_clear_pointer (&wait->text, g_free);
  g_variant_get (answer, "(ss)", &wait->text, &report);
  if (g_str_equal (wait->text, "IN PROGRESS") && !is_over_time (wait->proxy))
    wait_slice (g_steal_pointer (&task));
  else
    g_task_return_pointer (task, g_steal_pointer (&report), g_free);
}

static void
wait_slice (GTask *task)
{
  Wait *wait = g_task_get_task_data (task);
  BjClient *self = g_task_get_source_object (task);

  bj_client_call_async (self, bj_client_get_manager (self), "WaitReport",
                        g_variant_new ("(ou)", g_dbus_proxy_get_object_path (wait->proxy), SLICE_MS), NULL,
                        SLICE_CALL_MS, g_task_get_cancellable (task), on_slice, task);
}

void
bj_client_wait_report_async (BjClient *self, BjDBusSession *session, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = wait_new (self, session, cancellable, callback, user_data);

  g_task_set_source_tag (task, bj_client_wait_report_async);
  wait_slice (task);
}

char *
bj_client_wait_report_finish (BjClient *self, GAsyncResult *result, char **outcome, GError **error)
{
  Wait *wait = g_task_get_task_data (G_TASK (result));
  char *report = g_task_propagate_pointer (G_TASK (result), error);

  if (report != NULL && outcome != NULL)
    *outcome = g_strdup (wait->text);
  return report;
}
