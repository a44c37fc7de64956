/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-worker.h"

typedef struct
{
  GTask *task; /* (owned) */
  GTaskThreadFunc func;
} BjWork;

static void
run_work (gpointer data, gpointer unused)
{
  BjWork *work = data;

  work->func (work->task, g_task_get_source_object (work->task), g_task_get_task_data (work->task),
              g_task_get_cancellable (work->task));
  g_object_unref (work->task);
  g_free (work);
}

static gpointer
make_pool (gpointer unused)
{
  return g_thread_pool_new (run_work, NULL, -1, FALSE, NULL);
}

void
bj_worker_run (GTask *task, GTaskThreadFunc func)
{
  static GOnce once = G_ONCE_INIT;
  BjWork *work = g_new0 (BjWork, 1);

  g_once (&once, make_pool, NULL);
  work->task = g_object_ref (task);
  work->func = func;
  g_thread_pool_push (once.retval, work, NULL);
}
