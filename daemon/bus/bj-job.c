/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-job"

#include "bj-job.h"

#include "bj-bus.h"
#include "bj-dbus-job.h"
#include "bj-error.h"
#include "bj-worker.h"

#define FLUSH_MS 100  /* progress goes to the bus at most ten times a second */
#define STAY_S 60     /* how long a job can be looked at when it is done */
#define DONE_KEPT 32  /* but no more than this many of one caller */
#define GUESS_FROM 0.02 /* below this fraction the end is not guessed */
#define GUESS_AFTER_US (2 * G_USEC_PER_SEC)

struct _BjJobs
{
  GDBusObjectManagerServer *objects; /* (owned) */
  BjGate *gate;                      /* (owned) */
  GPtrArray *jobs;                   /* (element-type BjJob): oldest first */
  guint last_number;
};

typedef struct
{
  gatomicrefcount refs;
  BjJobs *owner; /* (nullable): NULL once the job left it */
  BjDBusJob *skeleton;
  char *path;
  uid_t uid;
  GCancellable *cancellable;
  BjProgress *progress;
  BjJobFunc func;
  gpointer data;
  GDestroyNotify free_data;
  char *message; /* the worker's, then ours */
  gint64 started_us; /* monotonic */
  guint removal;
  gboolean done;

  GMutex lock; /* for what the worker's progress writes */
  char *phase;
  double fraction;
  gboolean flush_waits;
} BjJob;

static BjJob *
job_ref (BjJob *job)
{
  g_atomic_ref_count_inc (&job->refs);
  return job;
}

static void
job_unref (gpointer data)
{
  BjJob *job = data;

  if (!g_atomic_ref_count_dec (&job->refs))
    return;
  if (job->free_data != NULL)
    job->free_data (job->data);
  bj_progress_free (job->progress);
  g_object_unref (job->skeleton);
  g_object_unref (job->cancellable);
  g_mutex_clear (&job->lock);
  g_free (job->message);
  g_free (job->phase);
  g_free (job->path);
  g_free (job);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjJob, job_unref)

/* Seconds since 1970 at which the job will be done if it goes on like this; 0 if there is no telling. */
static guint64
guess_end (gint64 started_us, double fraction)
{
  gint64 spent = g_get_monotonic_time () - started_us;

  if (fraction < GUESS_FROM || fraction >= 1 || spent < GUESS_AFTER_US)
    return 0;
  return (guint64) (((double) g_get_real_time () + (double) spent * (1 - fraction) / fraction) / G_USEC_PER_SEC);
}

static gboolean
flush (gpointer user_data)
{
  BjJob *job = user_data;
  g_autofree char *phase = NULL;
  double fraction;

  g_mutex_lock (&job->lock);
  job->flush_waits = FALSE;
  phase = g_strdup (job->phase);
  fraction = job->fraction;
  g_mutex_unlock (&job->lock);
  if (job->done)
    return G_SOURCE_REMOVE;
  bj_dbus_job_set_phase (job->skeleton, phase);
  bj_dbus_job_set_progress (job->skeleton, fraction);
  bj_dbus_job_set_expected_end (job->skeleton, guess_end (job->started_us, fraction));
  return G_SOURCE_REMOVE;
}

/* In the worker. One timer gathers whatever moves until it fires. */
static void
on_progress (const char *phase, double fraction, gpointer user_data)
{
  BjJob *job = user_data;
  gboolean first;

  g_mutex_lock (&job->lock);
  if (g_strcmp0 (phase, job->phase) != 0)
    {
      g_free (job->phase);
      job->phase = g_strdup (phase);
    }
  job->fraction = fraction;
  first = !job->flush_waits;
  job->flush_waits = TRUE;
  g_mutex_unlock (&job->lock);
  if (first)
    g_timeout_add_full (G_PRIORITY_DEFAULT, FLUSH_MS, flush, job_ref (job), job_unref);
}

static void
remove_job (BjJob *job)
{
  BjJobs *self = job->owner;

  g_clear_handle_id (&job->removal, g_source_remove);
  g_signal_handlers_disconnect_by_data (job->skeleton, job); /* a call may still be on its way through the gate */
  g_dbus_object_manager_server_unexport (self->objects, job->path);
  job->owner = NULL;
  g_ptr_array_remove (self->jobs, job);
}

static gboolean
on_stayed (gpointer user_data)
{
  BjJob *job = user_data;

  job->removal = 0;
  remove_job (job);
  return G_SOURCE_REMOVE;
}

static guint
count (BjJobs *self, uid_t uid, gboolean done, BjJob **oldest)
{
  guint n = 0;

  for (guint i = 0; i < self->jobs->len; i++)
    {
      BjJob *job = g_ptr_array_index (self->jobs, i);

      if (job->uid != uid || job->done != done)
        continue;
      if (n++ == 0 && oldest != NULL)
        *oldest = job;
    }
  return n;
}

static void
finish (BjJob *job, const GError *error)
{
  g_autoptr(GError) ours = error != NULL ? bj_error_to_bus (error) : NULL;
  const char *name = ours != NULL ? bj_error_get_name ((BjError) ours->code) : "";
  g_autofree char *message = g_utf8_make_valid (ours != NULL ? ours->message : job->message ? job->message : "", -1);
  BjJob *oldest = NULL;

  flush (job);
  job->done = TRUE;
  if (ours == NULL)
    bj_dbus_job_set_progress (job->skeleton, 1);
  bj_dbus_job_set_expected_end (job->skeleton, 0);
  bj_dbus_job_set_error (job->skeleton, name);
  bj_dbus_job_set_message (job->skeleton, message);
  bj_dbus_job_set_done (job->skeleton, TRUE);
  g_dbus_interface_skeleton_flush (G_DBUS_INTERFACE_SKELETON (job->skeleton));
  bj_dbus_job_emit_finished (job->skeleton, name, message);
  g_info ("Job %s (%s) ended: %s%s%s", job->path, bj_dbus_job_get_operation (job->skeleton), name,
          *name != '\0' ? " " : "", message);
  if (job->owner == NULL)
    return;
  job->removal = g_timeout_add_seconds (STAY_S, on_stayed, job);
  if (count (job->owner, job->uid, TRUE, &oldest) > DONE_KEPT)
    remove_job (oldest);
}

static void
on_worked (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(BjJob) job = user_data;
  g_autoptr(GError) error = NULL;

  g_task_propagate_boolean (G_TASK (result), &error);
  finish (job, error);
}

static void
work (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  BjJob *job = task_data;
  GError *error = NULL;

  if (job->func (job->data, job->progress, cancellable, &job->message, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

static gboolean
start_work (gpointer user_data)
{
  BjJob *job = user_data;
  g_autoptr(GTask) task = g_task_new (NULL, job->cancellable, on_worked, job_ref (job));

  g_task_set_source_tag (task, bj_jobs_start);
  g_task_set_task_data (task, job_ref (job), job_unref);
  g_task_set_check_cancellable (task, FALSE); /* work that is half undone is not "cancelled" yet */
  job->started_us = g_get_monotonic_time ();
  bj_worker_run (task, work);
  return G_SOURCE_REMOVE;
}

static gboolean
on_cancel (BjDBusJob *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjJob *job = user_data;

  g_cancellable_cancel (job->cancellable);
  bj_dbus_job_complete_cancel (skeleton, invocation);
  return TRUE;
}

static void
export_job (BjJobs *self, BjJob *job, const char *operation, guint number)
{
  g_autoptr(GDBusObjectSkeleton) object = g_dbus_object_skeleton_new (job->path);
  g_autofree char *label = g_strdup_printf ("job %u (%s)", number, operation);

  bj_dbus_job_set_operation (job->skeleton, operation);
  bj_dbus_job_set_phase (job->skeleton, "");
  bj_dbus_job_set_error (job->skeleton, "");
  bj_dbus_job_set_message (job->skeleton, "");
  bj_dbus_job_set_owner_uid (job->skeleton, (guint) job->uid);
  g_signal_connect (job->skeleton, "handle-cancel", G_CALLBACK (on_cancel), job);
  bj_gate_guard (self->gate, G_DBUS_INTERFACE_SKELETON (job->skeleton), job->uid, label);
  g_dbus_object_skeleton_add_interface (object, G_DBUS_INTERFACE_SKELETON (job->skeleton));
  g_dbus_object_manager_server_export (self->objects, object);
}

BjJobs *
bj_jobs_new (GDBusObjectManagerServer *objects, BjGate *gate)
{
  BjJobs *self = g_new0 (BjJobs, 1);

  self->objects = g_object_ref (objects);
  self->gate = g_object_ref (gate);
  self->jobs = g_ptr_array_new_with_free_func (job_unref);
  return self;
}

char *
bj_jobs_start (BjJobs *self, const char *operation, const BjCaller *caller, BjJobFunc func, gpointer data,
               GDestroyNotify free_data, GError **error)
{
  BjJob *job;

  if (count (self, caller->uid, FALSE, NULL) >= BJ_JOBS_PER_CALLER)
    {
      if (free_data != NULL)
        free_data (data);
      bj_error_set (error, BJ_ERROR_LIMIT, "You have %u jobs under way: wait for one or cancel one", BJ_JOBS_PER_CALLER);
      return NULL;
    }
  job = g_new0 (BjJob, 1);
  g_atomic_ref_count_init (&job->refs);
  g_mutex_init (&job->lock);
  job->owner = self;
  job->skeleton = bj_dbus_job_skeleton_new ();
  job->path = g_strdup_printf (BJ_BUS_ROOT "/jobs/%u", ++self->last_number);
  job->uid = caller->uid;
  job->cancellable = g_cancellable_new ();
  job->progress = bj_progress_new (on_progress, job);
  job->func = func;
  job->data = data;
  job->free_data = free_data;
  g_ptr_array_add (self->jobs, job);
  export_job (self, job, operation, self->last_number);
  g_idle_add_full (G_PRIORITY_DEFAULT, start_work, job_ref (job), job_unref);
  return g_strdup (job->path);
}

static gboolean
any_at_work (BjJobs *self)
{
  for (guint i = 0; i < self->jobs->len; i++)
    if (!((BjJob *) g_ptr_array_index (self->jobs, i))->done)
      return TRUE;
  return FALSE;
}

static gboolean
on_waited (gpointer user_data)
{
  *(gboolean *) user_data = TRUE;
  return G_SOURCE_REMOVE;
}

void
bj_jobs_cancel_all (BjJobs *self)
{
  for (guint i = 0; i < self->jobs->len; i++)
    g_cancellable_cancel (((BjJob *) g_ptr_array_index (self->jobs, i))->cancellable);
}

void
bj_jobs_free (BjJobs *self, guint deadline_s)
{
  gboolean late = FALSE;
  guint timer;

  if (self == NULL)
    return;
  bj_jobs_cancel_all (self);
  timer = g_timeout_add_seconds (deadline_s, on_waited, &late);
  while (any_at_work (self) && !late)
    g_main_context_iteration (NULL, TRUE);
  if (late)
    g_warning ("Jobs did not end within %u seconds of being cancelled", deadline_s);
  else
    g_source_remove (timer);
  while (self->jobs->len > 0)
    remove_job (g_ptr_array_index (self->jobs, 0));
  g_ptr_array_unref (self->jobs);
  g_object_unref (self->objects);
  g_object_unref (self->gate);
  g_free (self);
}
