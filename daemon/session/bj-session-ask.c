/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* What a session wants of a person: an answer, or more time. What the bus, the agent's verbs and the worker say about it. */

#include "bj-session-private.h"

#include "bj-ask-note.h"
#include "bj-error.h"
#include "bj-fault.h"
#include "bj-json.h"
#include "bj-record.h"

#include <string.h>

#define ANSWER_MAX (64 * 1024)
#define WAITING "NEEDS INPUT"

gboolean
bj_session_ask (BjSession *self, const char *question, GBytes *memory, GError **error)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = !self->asking && self->end == BJ_END_NONE;
  if (first)
    {
      self->asking = TRUE;
      self->paused = FALSE;
      self->memory = g_bytes_ref (memory);
    }
  g_mutex_unlock (&self->lock);
  if (!first)
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The session's work has ended, or it asks already");
  bj_session_record (self, FALSE, "ask", bj_record_text (question));
  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

void
bj_session_ask_again (BjSession *self, GBytes *memory)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->asking = TRUE;
  self->had_command = TRUE; /* its first command is not the next one */
  self->memory = g_bytes_ref (memory);
  g_free (self->outcome);
  self->outcome = g_strdup (WAITING);
}

gboolean
bj_session_is_asking (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->asking;
}

static gboolean
needs_input (BjSession *self)
{
  return self->asking && self->answer == NULL && self->end == BJ_END_NONE && g_str_equal (self->outcome, WAITING);
}

static gboolean
check_answer (const char *text, GError **error)
{
  if (strspn (text, " \t\r\n") == strlen (text))
    return bj_error_set (error, BJ_ERROR_INVALID, "The answer is empty");
  return strlen (text) <= ANSWER_MAX
         || bj_error_set (error, BJ_ERROR_INVALID, "An answer has at most %d bytes", ANSWER_MAX);
}

/* Says why no answer is wanted now, if so. */
static gboolean
check_waits (BjSession *self, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (needs_input (self))
    return TRUE;
  if (self->answer != NULL)
    return bj_error_set (error, BJ_ERROR_BUSY, "The question of session %s was answered already; it goes on with that",
                         self->plan->id);
  return bj_error_set (error, BJ_ERROR_INVALID, "Session %s asks nothing: it is %s", self->plan->id, self->state);
}

/* Of several answers at a time the first one counts. */
static gboolean
take_answer (BjSession *self, const char *text)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (!needs_input (self))
    return FALSE;
  self->answer = g_strdup (text);
  g_free (self->outcome);
  self->outcome = g_strdup ("");
  return TRUE;
}

static void
go_on (BjSession *self)
{
  bj_session_set_activity (self, "going on with the answer");
  bj_session_set_state (self, "starting");
  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* Whether the newest question has one. */
static gboolean
has_answer_record (BjSession *self)
{
  g_autofree char *head = NULL;
  g_autoptr(JsonArray) records = bj_session_dup_records (self, &head, NULL);

  for (guint i = records != NULL ? json_array_get_length (records) : 0; i > 0; i--)
    {
      const char *type = bj_json_get_string (bj_json_array_get_object (records, i - 1), "type", "");

      if (g_str_equal (type, "answer") || g_str_equal (type, "ask"))
        return g_str_equal (type, "answer");
    }
  return FALSE;
}

gboolean
bj_session_answer (BjSession *self, const char *text, uid_t uid, GError **error)
{
  g_autofree char *dir = bj_session_dup_dir (self, NULL);

  if (!check_answer (text, error) || (!take_answer (self, text) && !check_waits (self, error)))
    return FALSE;
  if (!bj_ask_note_set_answer (dir, text, uid, error))
    {
      bj_session_refuse_answer (self);
      return FALSE;
    }
  bj_fault_point ("answer", "kept");
  bj_session_record (self, TRUE, "answer", bj_record_answer (text, uid));
  go_on (self);
  return TRUE;
}

void
bj_session_answer_again (BjSession *self, const char *text, uid_t uid)
{
  if (!take_answer (self, text))
    return;
  if (!has_answer_record (self))
    bj_session_record (self, TRUE, "answer", bj_record_answer (text, uid));
  go_on (self);
}

BjWake
bj_session_wait_answer (BjSession *self, double seconds)
{
  gint64 until = g_get_monotonic_time () + (gint64) (seconds * G_USEC_PER_SEC);
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  for (;;)
    {
      if (self->end != BJ_END_NONE)
        return BJ_WAKE_END;
      if (self->suspending)
        return BJ_WAKE_SUSPEND;
      /* It counts when its record is written, which is when its state is another. */
      if (self->answer != NULL && !g_str_equal (self->state, "needs-input"))
        return BJ_WAKE_ANSWER;
      if (!g_cond_wait_until (&self->changed, &self->lock, until))
        return BJ_WAKE_TIME;
    }
}

void
bj_session_begin_wait (BjSession *self)
{
  g_mutex_lock (&self->lock);
  g_free (self->outcome);
  self->outcome = g_strdup (WAITING);
  g_mutex_unlock (&self->lock);
  bj_session_set_activity (self, "waiting for an answer");
  bj_session_record (self, TRUE, "state", bj_record_state ("needs-input"));
  bj_session_set_state (self, "needs-input");
  bj_session_emit_waits (self);
}

void
bj_session_refuse_answer (BjSession *self)
{
  g_autofree char *dir = bj_session_dup_dir (self, NULL);

  bj_ask_note_set_answer (dir, NULL, 0, NULL);
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->answer, g_free);
  g_mutex_unlock (&self->lock);
  bj_session_begin_wait (self);
}

void
bj_session_end_wait (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->asking = FALSE;
  g_clear_pointer (&self->answer, g_free);
  g_clear_pointer (&self->memory, g_bytes_unref);
}

char *
bj_session_dup_answer (BjSession *self, GBytes **memory)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  *memory = self->memory != NULL ? g_bytes_ref (self->memory) : NULL;
  return g_strdup (self->answer);
}

void
bj_session_set_parked (BjSession *self, gboolean parked)
{
  g_mutex_lock (&self->lock);
  self->parked = parked;
  g_mutex_unlock (&self->lock);
  bj_session_emit_waits (self); /* the budget is another now */
}

gboolean
bj_session_is_parked (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->parked;
}

gboolean
bj_session_suspend (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (!self->asking || self->end != BJ_END_NONE)
    return FALSE;
  self->suspending = TRUE;
  g_cond_broadcast (&self->changed);
  return TRUE;
}

void
bj_session_announce_suspended (BjSession *self)
{
  g_mutex_lock (&self->lock);
  self->suspended = TRUE;
  g_mutex_unlock (&self->lock);
  bj_session_emit_waits (self);
}

gboolean
bj_session_is_suspended (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->suspended;
}

void
bj_session_set_over_time (BjSession *self, gboolean over_time)
{
  g_mutex_lock (&self->lock);
  self->over_time = over_time;
  g_mutex_unlock (&self->lock);
  bj_session_emit_waits (self);
}

gboolean
bj_session_is_over_time (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->over_time;
}

gboolean
bj_session_wants_person (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return needs_input (self) || (self->over_time && self->end == BJ_END_NONE);
}
