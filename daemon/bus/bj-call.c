/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-call.h"

#include "bj-gate.h"
#include "bj-worker.h"

typedef struct
{
  BjCallFunc func;
  gpointer data;
  GDestroyNotify free_data;
} BjCall;

/* uid to how many of its calls go on. */
static GHashTable *
get_counts (void)
{
  static GHashTable *counts;

  if (counts == NULL)
    counts = g_hash_table_new (NULL, NULL);
  return counts;
}

gboolean
bj_call_enter (GDBusMethodInvocation *invocation)
{
  gpointer uid = GUINT_TO_POINTER (bj_gate_get_caller (invocation)->uid);
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (get_counts (), uid));

  if (n >= BJ_CALLS_PER_USER)
    return !bj_call_return_error (invocation, BJ_ERROR_LIMIT,
                                  "%d calls of yours are under way already; wait until some are answered", BJ_CALLS_PER_USER);
  g_hash_table_insert (get_counts (), uid, GUINT_TO_POINTER (n + 1));
  return TRUE;
}

static void
leave (GDBusMethodInvocation *invocation)
{
  gpointer uid = GUINT_TO_POINTER (bj_gate_get_caller (invocation)->uid);
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (get_counts (), uid));

  if (n > 1)
    g_hash_table_insert (get_counts (), uid, GUINT_TO_POINTER (n - 1));
  else
    g_hash_table_remove (get_counts (), uid);
}

void
bj_call_answer (GDBusMethodInvocation *invocation, GVariant *reply, const GError *error)
{
  leave (invocation);
  if (reply != NULL)
    g_dbus_method_invocation_return_value (invocation, reply);
  else
    bj_gate_return_error (invocation, error);
}

static void
call_free (gpointer data)
{
  BjCall *call = data;

  if (call->free_data != NULL)
    call->free_data (call->data);
  g_free (call);
}

static void
run_call (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  BjCall *call = task_data;
  GVariant *reply = NULL;
  GError *error = NULL;

  if (!call->func (call->data, &reply, &error))
    {
      g_task_return_error (task, error);
      return;
    }
  if (reply == NULL)
    reply = g_variant_new ("()");
  g_task_return_pointer (task, g_variant_ref_sink (reply), (GDestroyNotify) g_variant_unref);
}

static void
on_run (GObject *source, GAsyncResult *result, gpointer user_data)
{
  GDBusMethodInvocation *invocation = user_data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) reply = g_task_propagate_pointer (G_TASK (result), &error);

  bj_call_answer (invocation, reply, error);
}

void
bj_call_in_worker (GDBusMethodInvocation *invocation, BjCallFunc func, gpointer data, GDestroyNotify free_data)
{
  g_autoptr(GTask) task = NULL;
  BjCall *call = g_new0 (BjCall, 1);

  call->func = func;
  call->data = data;
  call->free_data = free_data;
  if (!bj_call_enter (invocation))
    {
      call_free (call);
      return;
    }
  task = g_task_new (NULL, NULL, on_run, invocation);
  g_task_set_source_tag (task, bj_call_in_worker);
  g_task_set_task_data (task, call, call_free);
  bj_worker_run (task, run_call);
}

void
bj_call_as_job (GDBusMethodInvocation *invocation, BjJobs *jobs, const char *operation, BjJobFunc func, gpointer data,
                GDestroyNotify free_data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path
      = bj_jobs_start (jobs, operation, bj_gate_get_caller (invocation), func, data, free_data, &error);

  if (path != NULL)
    g_dbus_method_invocation_return_value (invocation, g_variant_new ("(o)", path));
  else
    bj_gate_return_error (invocation, error);
}

gboolean
bj_call_return_error (GDBusMethodInvocation *invocation, BjError code, const char *format, ...)
{
  va_list args;
  g_autoptr(GError) error = NULL;

  va_start (args, format);
  error = g_error_new_valist (BJ_ERROR, (int) code, format, args);
  va_end (args);
  bj_gate_return_error (invocation, error);
  return TRUE;
}
