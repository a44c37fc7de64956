/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* The machine of a task that did not turn out well, kept for a person to look into after the session's end. */

#include "bj-session-private.h"

#include "bj-error.h"

void
bj_session_want_keep (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->keep = TRUE;
}

gboolean
bj_session_wants_keep (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->keep;
}

gboolean
bj_session_turned_out_well (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return g_str_equal (self->outcome, "DONE") && (g_str_equal (self->verdict, "proved") || g_str_equal (self->verdict, "passes"));
}

void
bj_session_set_kept (BjSession *self, BjMachine *machine)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_set_object (&self->kept, machine);
  self->kept_used_us = g_get_monotonic_time ();
}

gboolean
bj_session_has_kept (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->kept != NULL;
}

GCancellable *
bj_session_get_kept_cancellable (BjSession *self)
{
  return self->kept_cancellable;
}

BjMachine *
bj_session_begin_kept_use (BjSession *self, GError **error)
{
  g_autoptr(BjMachine) machine = NULL;

  if (!bj_session_is_over (self) || !bj_session_has_kept (self))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The work of session %s is being checked: wait for its end", self->plan->id);
      return NULL;
    }
  g_mutex_lock (&self->lock);
  machine = self->kept != NULL ? g_object_ref (self->kept) : NULL;
  self->kept_users++;
  g_mutex_unlock (&self->lock);
  if (machine != NULL && bj_machine_resume (machine, error))
    return g_steal_pointer (&machine);
  bj_session_end_kept_use (self);
  return NULL;
}

void
bj_session_end_kept_use (BjSession *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->kept_users--;
  self->kept_used_us = g_get_monotonic_time ();
  g_cond_broadcast (&self->changed);
}

void
bj_session_release_kept (BjSession *self)
{
  g_mutex_lock (&self->lock);
  self->kept_released = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_cancellable_cancel (self->kept_cancellable);
}

void
bj_session_wait_kept (BjSession *self, guint unused_s)
{
  gint64 patience = (gint64) unused_s * G_USEC_PER_SEC;
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  while (self->kept_users > 0 || (!self->kept_released && g_get_monotonic_time () < self->kept_used_us + patience))
    g_cond_wait_until (&self->changed, &self->lock,
                       self->kept_users > 0 ? g_get_monotonic_time () + patience : self->kept_used_us + patience);
}
