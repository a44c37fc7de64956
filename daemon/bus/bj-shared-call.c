/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-shared-call.h"

#include "bj-gate.h"
#include "bj-worker.h"

struct _BjSharedCall
{
  BjCallFunc func;
  BjSharedMake make;
  gpointer user_data;
  GDestroyNotify free_data;
  GPtrArray *waiting; /* (element-type GDBusMethodInvocation): for the next run */
  gboolean running;
  gboolean closed; /* freed when the run is through */
};

/* One run. */
typedef struct
{
  BjSharedCall *shared; /* only on the main loop: the worker may be the last that lets go of a run */
  BjCallFunc func;
  gpointer data;
  GDestroyNotify free_data;
  GPtrArray *served; /* (element-type GDBusMethodInvocation) */
} BjSharedRun;

static void run_next (BjSharedCall *self);

BjSharedCall *
bj_shared_call_new (BjCallFunc func, BjSharedMake make, gpointer user_data, GDestroyNotify free_data)
{
  BjSharedCall *self = g_new0 (BjSharedCall, 1);

  self->func = func;
  self->make = make;
  self->user_data = user_data;
  self->free_data = free_data;
  self->waiting = g_ptr_array_new ();
  return self;
}

static void
destroy (BjSharedCall *self)
{
  g_ptr_array_unref (self->waiting);
  g_free (self);
}

static void
answer_all (GPtrArray *invocations, GVariant *reply, const GError *error)
{
  for (guint i = 0; i < invocations->len; i++)
    bj_call_answer (g_ptr_array_index (invocations, i), reply, error);
  g_ptr_array_set_size (invocations, 0);
}

void
bj_shared_call_free (BjSharedCall *self)
{
  g_autoptr(GError) error = NULL;

  bj_error_set (&error, BJ_ERROR_CANCELLED, "belljard ends");
  answer_all (self->waiting, NULL, error);
  self->closed = TRUE;
  if (!self->running)
    destroy (self);
}

static void
shared_run_free (gpointer data)
{
  BjSharedRun *run = data;

  run->free_data (run->data);
  g_ptr_array_unref (run->served);
  g_free (run);
}

static void
run_in_worker (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  BjSharedRun *run = task_data;
  GVariant *reply = NULL;
  GError *error = NULL;

  if (run->func (run->data, &reply, &error))
    g_task_return_pointer (task, g_variant_ref_sink (reply), (GDestroyNotify) g_variant_unref);
  else
    g_task_return_error (task, error);
}

static void
on_run (GObject *source, GAsyncResult *result, gpointer user_data)
{
  BjSharedRun *run = g_task_get_task_data (G_TASK (result));
  BjSharedCall *self = run->shared;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) reply = g_task_propagate_pointer (G_TASK (result), &error);

  answer_all (run->served, reply, error);
  self->running = FALSE;
  if (self->closed)
    destroy (self);
  else if (self->waiting->len > 0)
    run_next (self);
}

static void
run_next (BjSharedCall *self)
{
  g_autoptr(GTask) task = g_task_new (NULL, NULL, on_run, NULL);
  BjSharedRun *run = g_new0 (BjSharedRun, 1);

  run->shared = self;
  run->func = self->func;
  run->data = self->make (self->user_data);
  run->free_data = self->free_data;
  run->served = g_steal_pointer (&self->waiting);
  self->waiting = g_ptr_array_new ();
  self->running = TRUE;
  g_task_set_source_tag (task, run_next);
  g_task_set_task_data (task, run, shared_run_free);
  bj_worker_run (task, run_in_worker);
}

void
bj_shared_call_add (BjSharedCall *self, GDBusMethodInvocation *invocation)
{
  if (!bj_call_enter (invocation))
    return;
  g_ptr_array_add (self->waiting, invocation);
  if (!self->running)
    run_next (self);
}
