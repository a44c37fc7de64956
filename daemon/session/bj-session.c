/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-session-private.h"

#include "bj-error.h"
#include "bj-record.h"
#include "bj-remove.h"

#define PAUSE_MAX_S (24 * 60 * 60)

G_DEFINE_FINAL_TYPE (BjSession, bj_session, G_TYPE_OBJECT)

static guint over_signal;
static guint waits_signal;

static void
bj_session_finalize (GObject *object)
{
  BjSession *self = BJ_SESSION (object);

  bj_session_plan_free (self->plan);
  g_free (self->path);
  g_object_unref (self->skeleton);
  g_object_unref (self->cancellable);
  g_object_unref (self->hurry);
  g_object_unref (self->kept_cancellable);
  g_clear_object (&self->kept);
  bj_exec_line_free (self->exec_line);
  g_free (self->state);
  g_free (self->outcome);
  g_free (self->verdict);
  g_free (self->activity);
  g_free (self->accelerator);
  g_free (self->error_name);
  g_free (self->error_message);
  g_free (self->agent_check);
  g_free (self->agent_setup);
  g_free (self->answer);
  g_clear_pointer (&self->memory, g_bytes_unref);
  g_clear_object (&self->machine);
  g_clear_pointer (&self->transcript, bj_transcript_free);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->record_lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (bj_session_parent_class)->finalize (object);
}

static void
bj_session_class_init (BjSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_session_finalize;
  over_signal = g_signal_new ("over", BJ_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  waits_signal = g_signal_new ("waits", BJ_TYPE_SESSION, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
bj_session_init (BjSession *self)
{
  g_mutex_init (&self->lock);
  g_mutex_init (&self->record_lock);
  g_cond_init (&self->changed);
  self->skeleton = bj_dbus_session_skeleton_new ();
  self->cancellable = g_cancellable_new ();
  self->hurry = g_cancellable_new ();
  self->kept_cancellable = g_cancellable_new ();
  self->exec_line = bj_exec_line_new ();
  self->state = g_strdup ("starting");
  self->outcome = g_strdup ("");
  self->verdict = g_strdup ("");
  self->activity = g_strdup ("");
  self->accelerator = g_strdup ("");
}

/* Copies what the bus shows onto the skeleton; main loop only. */
static gboolean
sync_skeleton (gpointer data)
{
  BjSession *self = data;
  guint64 length = 0;

  g_mutex_lock (&self->lock);
  self->sync_pending = FALSE;
  bj_dbus_session_set_state (self->skeleton, self->state);
  bj_dbus_session_set_outcome (self->skeleton, self->outcome);
  bj_dbus_session_set_verdict (self->skeleton, self->verdict);
  bj_dbus_session_set_steps (self->skeleton, self->steps);
  bj_dbus_session_set_deadline (self->skeleton, (guint64) self->deadline);
  bj_dbus_session_set_accelerator (self->skeleton, self->accelerator);
  if (self->transcript != NULL && bj_transcript_get_length (self->transcript) != self->announced_length)
    length = self->announced_length = bj_transcript_get_length (self->transcript);
  g_mutex_unlock (&self->lock);

  if (length > 0)
    bj_dbus_session_emit_transcript_appended (self->skeleton, length);
  g_dbus_interface_skeleton_flush (G_DBUS_INTERFACE_SKELETON (self->skeleton));
  return G_SOURCE_REMOVE;
}

/* Call with the lock held. */
void
bj_session_sync_later (BjSession *self)
{
  if (self->sync_pending)
    return;
  self->sync_pending = TRUE;
  g_idle_add_full (G_PRIORITY_DEFAULT, sync_skeleton, g_object_ref (self), g_object_unref);
}

static void
set_constant_properties (BjSession *self)
{
  const BjSessionPlan *plan = self->plan;
  g_autofree char *image = plan->image ? g_strdup_printf ("%s:%u", plan->image->name, plan->image->version) : NULL;

  bj_dbus_session_set_kind (self->skeleton, plan->kind);
  bj_dbus_session_set_owner (self->skeleton, plan->owner_uid);
  bj_dbus_session_set_project (self->skeleton, plan->project ? plan->project : "");
  bj_dbus_session_set_image (self->skeleton, image ? image : "");
  bj_dbus_session_set_started_at (self->skeleton, (guint64) self->started);
  sync_skeleton (self);
}

BjSession *
bj_session_new (BjContext *context, BjSessionPlan *plan, BjReportKey *key)
{
  BjSession *self = g_object_new (BJ_TYPE_SESSION, NULL);

  self->context = context;
  self->key = key;
  self->plan = plan;
  self->path = g_strconcat ("/org/belljar1/sessions/", plan->id, NULL);
  self->started = g_get_real_time () / G_USEC_PER_SEC;
  self->deadline = self->started + plan->wall_clock_s;
  self->begun_us = self->touched_us = g_get_monotonic_time ();
  self->keep = plan->keep_failed;
  set_constant_properties (self);
  return self;
}

BjSession *
bj_session_new_from_row (BjContext *context, const BjSessionRow *row, BjReportKey *key)
{
  BjSession *self = bj_session_new (context, bj_session_plan_from_row (context, row), key);

  self->started = row->started;
  self->finished = row->finished;
  self->deadline = row->deadline;
  self->steps = row->steps;
  g_free (self->state);
  g_free (self->outcome);
  g_free (self->verdict);
  g_free (self->accelerator);
  self->state = g_strdup (row->state);
  self->outcome = g_strdup (row->outcome);
  self->verdict = g_strdup (row->verdict);
  self->accelerator = g_strdup (row->accelerator);
  set_constant_properties (self);
  return self;
}

BjContext *
bj_session_get_context (BjSession *self)
{
  return self->context;
}

const BjSessionPlan *
bj_session_get_plan (BjSession *self)
{
  return self->plan;
}

BjReportKey *
bj_session_get_key (BjSession *self)
{
  return self->key;
}

const char *
bj_session_get_id (BjSession *self)
{
  return self->plan->id;
}

const char *
bj_session_get_path (BjSession *self)
{
  return self->path;
}

BjDBusSession *
bj_session_get_skeleton (BjSession *self)
{
  return self->skeleton;
}

BjExecLine *
bj_session_get_exec_line (BjSession *self)
{
  return self->exec_line;
}

char *
bj_session_dup_dir (BjSession *self, const char *name)
{
  return g_build_filename (self->context->state_dir, "sessions", self->plan->id, name, NULL);
}

char *
bj_session_dup_transcript_path (BjSession *self)
{
  return bj_session_dup_dir (self, "evidence/transcript.jsonl");
}

char *
bj_session_dup_report_path (BjSession *self)
{
  return bj_session_dup_dir (self, "evidence/report.json");
}

gboolean
bj_session_state_is_final (const char *state)
{
  return g_str_equal (state, "finished") || g_str_equal (state, "failed") || g_str_equal (state, "cancelled");
}

gboolean
bj_session_is_over (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return bj_session_state_is_final (self->state);
}

void
bj_session_set_state (BjSession *self, const char *state)
{
  g_mutex_lock (&self->lock);
  g_free (self->state);
  self->state = g_strdup (state);
  bj_session_sync_later (self);
  g_mutex_unlock (&self->lock);

  g_log_structured (G_LOG_DOMAIN, G_LOG_LEVEL_INFO, "BELLJAR_SESSION", self->plan->id, "MESSAGE", "Session %s is %s",
                    self->plan->id, state);
  bj_session_save (self);
}

char *
bj_session_dup_state (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return g_strdup (self->state);
}

void
bj_session_set_activity (BjSession *self, const char *format, ...)
{
  va_list args;
  char *activity;

  va_start (args, format);
  activity = g_strdup_vprintf (format, args);
  va_end (args);
  g_mutex_lock (&self->lock);
  g_free (self->activity);
  self->activity = activity;
  g_mutex_unlock (&self->lock);
}

char *
bj_session_dup_activity (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return g_strdup (self->activity);
}

void
bj_session_set_accelerator (BjSession *self, const char *accelerator)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_free (self->accelerator);
  self->accelerator = g_strdup (accelerator);
  bj_session_sync_later (self);
}

gboolean
bj_session_was_stopped_late (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->stopped_late;
}

gint64
bj_session_get_deadline (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->deadline;
}

void
bj_session_set_deadline (BjSession *self, gint64 deadline)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->deadline = deadline;
  g_cond_broadcast (&self->changed);
  bj_session_sync_later (self);
}

guint
bj_session_get_steps (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->steps;
}

void
bj_session_touch (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->touched_us = g_get_monotonic_time ();
}

gint64
bj_session_get_idle_us (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = NULL;

  if (!bj_exec_line_is_empty (self->exec_line))
    return 0;
  locker = g_mutex_locker_new (&self->lock);
  return g_get_monotonic_time () - self->touched_us;
}

gboolean
bj_session_take_step (BjSession *self, GError **error)
{
  gboolean over = FALSE;

  g_mutex_lock (&self->lock);
  if (self->steps >= self->plan->steps)
    over = TRUE;
  else
    self->steps++;
  bj_session_sync_later (self);
  g_mutex_unlock (&self->lock);

  if (!over)
    return TRUE;
  bj_session_end_work (self, BJ_END_STEPS, NULL, NULL);
  return bj_error_set (error, BJ_ERROR_LIMIT, "The limit of %u steps is reached", self->plan->steps);
}

void
bj_session_end_work (BjSession *self, BjEnd end, const char *error_name, const char *message)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = self->end == BJ_END_NONE;
  if (first)
    {
      self->end = end;
      self->error_name = g_strdup (error_name);
      self->error_message = g_strdup (message);
    }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);

  if (first && end != BJ_END_FINISHED)
    g_cancellable_cancel (self->cancellable);
}

BjEnd
bj_session_get_end (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->end;
}

BjEnd
bj_session_wait_end (BjSession *self, double seconds)
{
  gint64 until = g_get_monotonic_time () + (gint64) (seconds * G_USEC_PER_SEC);
  BjEnd end;

  g_mutex_lock (&self->lock);
  while (self->end == BJ_END_NONE && !self->asking)
    if (!g_cond_wait_until (&self->changed, &self->lock, until))
      break;
  end = self->end;
  g_mutex_unlock (&self->lock);
  return end;
}

void
bj_session_dup_error (BjSession *self, char **error_name, char **message)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  *error_name = g_strdup (self->error_name);
  *message = g_strdup (self->error_message);
}

GCancellable *
bj_session_get_cancellable (BjSession *self)
{
  return self->cancellable;
}

GCancellable *
bj_session_get_hurry (BjSession *self)
{
  return self->hurry;
}

void
bj_session_stop (BjSession *self, const char *why)
{
  gboolean late;

  if (bj_session_is_over (self))
    {
      bj_session_release_kept (self);
      return;
    }
  g_mutex_lock (&self->lock);
  late = self->end != BJ_END_NONE && self->end != BJ_END_STOPPED;
  self->stopped_late = self->stopped_late || late;
  self->paused = FALSE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (late)
    g_cancellable_cancel (self->hurry);
  else
    bj_session_end_work (self, BJ_END_STOPPED, bj_error_get_name (BJ_ERROR_CANCELLED), why);
}

void
bj_session_set_machine (BjSession *self, BjMachine *machine)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_set_object (&self->machine, machine);
}

BjMachine *
bj_session_dup_machine (BjSession *self, GError **error)
{
  BjMachine *machine;
  g_autofree char *state = NULL;

  g_mutex_lock (&self->lock);
  machine = self->machine != NULL ? g_object_ref (self->machine) : NULL;
  state = g_strdup (self->state);
  g_mutex_unlock (&self->lock);
  if (machine == NULL && !bj_session_set_over_error (self, error))
    bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "Session %s has no machine in state “%s”", self->plan->id, state);
  return machine;
}

static const char *
explain_end (BjEnd end)
{
  switch (end)
    {
    case BJ_END_STOPPED:
      return "it was stopped";
    case BJ_END_WALL_CLOCK:
      return "its time was over (Extend gives more while it runs)";
    case BJ_END_IDLE:
      return "nothing happened in it for as long as [limits] idle says";
    case BJ_END_STEPS:
      return "its steps were used up";
    case BJ_END_AGENT_LIMIT:
      return "the agent reached a limit of its own";
    case BJ_END_TRANSCRIPT:
      return "its transcript is full";
    case BJ_END_MACHINE:
      return "its machine was gone: it was powered off or it crashed";
    case BJ_END_FINISHED:
      return "the agent finished it";
    default:
      return "the agent could not go on";
    }
}

gboolean
bj_session_set_over_error (BjSession *self, GError **error)
{
  BjEnd end = bj_session_get_end (self);

  if (end == BJ_END_NONE && !bj_session_is_over (self))
    return FALSE;
  if (end == BJ_END_NONE)
    bj_error_set (error, BJ_ERROR_CANCELLED, "The work of session %s has ended", self->plan->id);
  else
    bj_error_set (error, BJ_ERROR_CANCELLED, "The work of session %s has ended: %s", self->plan->id, explain_end (end));
  return TRUE;
}

gboolean
bj_session_is_paused (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->paused;
}

gboolean
bj_session_set_paused (BjSession *self, gboolean paused, GError **error)
{
  g_autoptr(BjMachine) machine = bj_session_dup_machine (self, error);
  g_autofree char *state = bj_session_dup_state (self);
  const char *from = paused ? "running" : "paused";

  if (machine == NULL)
    return FALSE;
  if (bj_session_is_stalled (self))
    return bj_session_set_stall_error (self, error);
  if (!g_str_equal (state, from))
    return bj_error_set (error, BJ_ERROR_INVALID, "Session %s is %s, not %s", self->plan->id, state, from);
  if (!paused && bj_session_is_over_time (self))
    return bj_error_set (error, BJ_ERROR_INVALID, "The time of session %s is over: extend it, and it goes on", self->plan->id);
  if (paused ? !bj_machine_pause (machine, error) : !bj_machine_resume (machine, error))
    return FALSE;
  bj_session_set_state (self, paused ? "paused" : "running");
  g_mutex_lock (&self->lock);
  self->paused = paused;
  self->touched_us = g_get_monotonic_time ();
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  bj_session_record (self, TRUE, "state", bj_record_state (paused ? "paused" : "running"));
  return TRUE;
}

gboolean
bj_session_set_stalled (BjSession *self, gboolean stalled)
{
  gboolean changed;

  g_mutex_lock (&self->lock);
  changed = self->stalled != stalled;
  self->stalled = stalled;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return changed;
}

gboolean
bj_session_is_stalled (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->stalled;
}

gboolean
bj_session_set_stall_error (BjSession *self, GError **error)
{
  return bj_error_set (error, BJ_ERROR_NO_SPACE,
                       "The host's disk is full, so the machine of session %s waits: make room in %s and it goes on by itself",
                       self->plan->id, self->context->state_dir);
}

gboolean
bj_session_wait_unpaused (BjSession *self, GError **error)
{
  gint64 until = g_get_monotonic_time () + (gint64) PAUSE_MAX_S * G_USEC_PER_SEC;

  g_mutex_lock (&self->lock);
  while ((self->paused || self->stalled) && self->end == BJ_END_NONE)
    if (!g_cond_wait_until (&self->changed, &self->lock, until))
      break;
  g_mutex_unlock (&self->lock);
  return !bj_session_set_over_error (self, error);
}

void
bj_session_set_agent_check (BjSession *self, const char *command, const char *setup)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_free (self->agent_check);
  g_free (self->agent_setup);
  self->agent_check = g_strdup (command);
  self->agent_setup = g_strdup (setup);
}

gboolean
bj_session_dup_agent_check (BjSession *self, char **command, char **setup)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->agent_check == NULL)
    return FALSE;
  *command = g_strdup (self->agent_check);
  *setup = g_strdup (self->agent_setup);
  return TRUE;
}

static void
fill_row (BjSession *self, BjSessionRow *row)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  bj_session_plan_fill_row (self->plan, row);
  row->state = g_strdup (self->state);
  row->outcome = g_strdup (self->outcome);
  row->verdict = g_strdup (self->verdict);
  row->accelerator = g_strdup (self->accelerator);
  row->started = self->started;
  row->finished = self->finished;
  row->deadline = self->deadline;
  row->steps = self->steps;
  row->transcript_head = self->transcript ? bj_transcript_dup_head (self->transcript) : g_strdup ("");
  row->transcript_count = self->transcript ? bj_transcript_get_count (self->transcript) : 0;
}

void
bj_session_save (BjSession *self)
{
  g_autoptr(BjSessionRow) row = g_new0 (BjSessionRow, 1);
  g_autoptr(GError) error = NULL;

  fill_row (self, row);
  if (!bj_store_put_session (self->context->store, row, &error))
    g_warning ("Session %s cannot be stored: %s", self->plan->id, error->message);
}

static gboolean
emit_waits (gpointer data)
{
  sync_skeleton (data);
  g_signal_emit (data, waits_signal, 0);
  return G_SOURCE_REMOVE;
}

void
bj_session_emit_waits (BjSession *self)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, emit_waits, g_object_ref (self), g_object_unref);
}

static gboolean
emit_over (gpointer data)
{
  sync_skeleton (data);
  g_signal_emit (data, over_signal, 0);
  return G_SOURCE_REMOVE;
}

void
bj_session_announce_over (BjSession *self)
{
  g_idle_add_full (G_PRIORITY_DEFAULT, emit_over, g_object_ref (self), g_object_unref);
}

gboolean
bj_session_erase (BjContext *context, const char *id, GError **error)
{
  g_autofree char *dir = g_build_filename (context->state_dir, "sessions", id, NULL);

  return bj_remove_tree (dir, error) && bj_store_delete_session (context->store, id, error);
}
