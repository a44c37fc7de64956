/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* What happens when a session's time is over, or nothing happens in it. */

#include "bj-work.h"

#include "bj-record.h"

#define LOOK_S 1.0
#define STEP_MIN_US (2 * G_USEC_PER_SEC) /* less is a clock that is steered, not set */

gint64
bj_work_get_clock_offset (void)
{
  return g_get_real_time () - g_get_monotonic_time ();
}

gint64
bj_work_clock_step (gint64 *offset_us, gint64 now_us)
{
  gint64 step_us = now_us - *offset_us;

  if (ABS (step_us) < STEP_MIN_US)
    return 0;
  *offset_us = now_us;
  return step_us / G_USEC_PER_SEC;
}

gint64
bj_work_move_deadline (gint64 deadline, gint64 asked_at, gint64 now)
{
  return now + (deadline - asked_at);
}

static void
watch_clock (BjWork *work)
{
  gint64 step = bj_work_clock_step (&work->clock_offset_us, bj_work_get_clock_offset ());

  if (step == 0)
    return;
  bj_session_set_deadline (work->session, bj_session_get_deadline (work->session) + step);
  bj_session_save (work->session);
  bj_session_warn (work->session, "The host's clock was set %s by %" G_GINT64_FORMAT " s, or the host slept; the deadline moved with it",
                   step > 0 ? "forward" : "back", ABS (step));
}

static gboolean
is_over_time (BjWork *work)
{
  watch_clock (work);
  return g_get_real_time () / G_USEC_PER_SEC >= bj_session_get_deadline (work->session);
}

/* It stays paused when a person paused it before. */
static gboolean
pause_machine (BjWork *work)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *state = bj_session_dup_state (work->session);

  if (!g_str_equal (state, "running"))
    return FALSE;
  if (bj_session_set_paused (work->session, TRUE, &error))
    return TRUE;
  g_message ("Session %s: %s", work->plan->id, error->message);
  return FALSE;
}

static void
go_on (BjWork *work, gboolean was_running)
{
  g_autoptr(GError) error = NULL;

  bj_session_set_over_time (work->session, FALSE);
  bj_session_set_activity (work->session, "going on with more time");
  if (was_running && !bj_session_set_paused (work->session, FALSE, &error))
    g_message ("Session %s: %s", work->plan->id, error->message);
}

/* Whoever waits for the report gets what is known so far. Blocks until there is more time, or the work has ended. */
static void
wait_for_more (BjWork *work)
{
  BjSession *session = work->session;
  gint64 until = g_get_monotonic_time () + (gint64) work->context->config->park_after_s * G_USEC_PER_SEC;
  gboolean was_running = pause_machine (work);

  bj_session_record (session, TRUE, "limit", bj_record_limit ("wall-clock", work->plan->wall_clock_s));
  bj_session_set_activity (session, "its time is over; waiting to be extended or stopped");
  bj_session_set_over_time (session, TRUE);
  while (is_over_time (work) && bj_session_wait_end (session, LOOK_S) == BJ_END_NONE && !bj_session_is_asking (session))
    if (g_get_monotonic_time () >= until)
      bj_session_end_work (session, BJ_END_WALL_CLOCK, NULL, NULL);
  if (bj_session_get_end (session) == BJ_END_NONE)
    go_on (work, was_running);
}

/* A session that nobody works in is given up; whoever paused it, or a full disk that holds it up, has time. */
static void
watch_idle (BjWork *work)
{
  BjSession *session = work->session;
  gint64 most = (gint64) work->context->config->idle_s * G_USEC_PER_SEC;

  if (bj_session_is_paused (session) || bj_session_is_stalled (session))
    bj_session_touch (session);
  else if (bj_session_get_idle_us (session) >= most)
    bj_session_end_work (session, BJ_END_IDLE, NULL, NULL);
}

void
bj_work_watch_time (BjWork *work)
{
  if (work->plan->task == NULL)
    watch_idle (work);
  if (!is_over_time (work))
    return;
  if (work->plan->task != NULL)
    {
      wait_for_more (work);
      return;
    }
  bj_session_record (work->session, TRUE, "limit", bj_record_limit ("wall-clock", work->plan->wall_clock_s));
  bj_session_end_work (work->session, BJ_END_WALL_CLOCK, NULL, NULL);
}
