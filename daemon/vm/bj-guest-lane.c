/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-error.h"

#include <string.h>

#define LANE_WAIT (3 * G_USEC_PER_SEC) /* for a server that was killed, or that starts */
#define CONTROL_MAX (64u << 10)        /* bytes of a request: more goes with the rest */
#define LOOK_MS 1000                   /* whether the machine is paused */

static gboolean
is_agent_only (BjGuest *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->agent_only;
}

static void
note_lane (BjGuest *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->lanes_known = TRUE;
  self->agent_only = FALSE;
}

static gboolean
wait_open (BjLane *lane, GCancellable *cancellable)
{
  return bj_lane_wait_open (lane, g_get_monotonic_time () + LANE_WAIT, cancellable);
}

/* Rather the other lane than none. */
static BjLane *
choose_lane (BjGuest *self, gboolean much, GCancellable *cancellable)
{
  BjLane *wanted = self->lanes[much ? BJ_GUEST_BULK : BJ_GUEST_CONTROL];
  BjLane *other = self->lanes[much ? BJ_GUEST_CONTROL : BJ_GUEST_BULK];

  if (bj_lane_is_open (wanted))
    return wanted;
  if (bj_lane_is_open (other))
    return other;
  if (is_agent_only (self))
    return NULL;
  if (wait_open (wanted, cancellable)
      || (!g_cancellable_is_cancelled (cancellable) && bj_guest_revive_lanes (self) && wait_open (wanted, cancellable)))
    return wanted;
  return NULL;
}

gboolean
bj_guest_call_begin (BjGuestCall *self, BjGuest *guest, const char *mode, GBytes *request, BjLaneCallFlags flags,
                     guint budget_s, GCancellable *cancellable)
{
  gboolean much = flags != BJ_LANE_CALL_PLAIN || g_str_equal (mode, "read") || g_bytes_get_size (request) > CONTROL_MAX;
  BjLane *lane = choose_lane (guest, much, cancellable);

  *self = (BjGuestCall) { .deadline = g_get_monotonic_time () + (gint64) budget_s * G_USEC_PER_SEC };
  self->call = lane != NULL ? bj_lane_begin (lane, mode, request, flags) : NULL;
  if (self->call == NULL)
    return FALSE;
  note_lane (guest);
  self->guest = bj_guest_ref (guest);
  return TRUE;
}

gboolean
bj_guest_call_wait (BjGuestCall *self, struct pollfd fds[BJ_GUEST_CALL_FDS], gboolean *done, GCancellable *cancellable,
                    GError **error)
{
  gint64 start = g_get_monotonic_time ();
  struct pollfd all[2 + BJ_GUEST_CALL_FDS] = { { bj_lane_call_get_event (self->call), POLLIN, 0 }, { -1, POLLIN, 0 } };
  GPollFD cancel = { .fd = -1 };
  const char *reason;
  int status;
  int n;

  memcpy (all + 2, fds, BJ_GUEST_CALL_FDS * sizeof *fds);
  if (g_cancellable_make_pollfd (cancellable, &cancel))
    all[1].fd = cancel.fd;
  n = poll (all, G_N_ELEMENTS (all), (int) CLAMP ((self->deadline - start) / 1000 + 1, 0, LOOK_MS));
  if (cancel.fd >= 0)
    g_cancellable_release_fd (cancellable);
  for (int i = 0; i < BJ_GUEST_CALL_FDS; i++)
    fds[i].revents = n > 0 ? all[2 + i].revents : 0;
  if (g_cancellable_is_cancelled (cancellable))
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The command was cancelled");
  if (n == 0 && bj_guest_is_paused (self->guest))
    self->deadline += g_get_monotonic_time () - start;

  switch (bj_lane_call_get_state (self->call, &status, &reason))
    {
    case BJ_LANE_CALL_LOST:
      return bj_guest_set_unreachable (self->guest, reason, error);
    case BJ_LANE_CALL_DONE:
      *done = TRUE;
      return TRUE;
    default:
      *done = FALSE;
      if (g_get_monotonic_time () < self->deadline)
        return TRUE;
      return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest did not end a command at its deadline");
    }
}

gboolean
bj_guest_call_finish (BjGuestCall *self, BjGuestAnswer *answer, GBytes **output, GError **error)
{
  const char *reason;
  int status;

  bj_lane_call_get_state (self->call, &status, &reason);
  if (status < 0)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "Something in the guest killed %s", BJ_RUN_PROGRAM);
  if (status != 0)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "%s in the guest failed with exit code %d", BJ_RUN_PROGRAM,
                         status);
  *output = bj_lane_call_steal_result (self->call);
  return bj_guest_answer_parse (g_bytes_get_data (*output, NULL), g_bytes_get_size (*output), answer, error);
}

void
bj_guest_call_clear (BjGuestCall *self)
{
  g_clear_pointer (&self->call, bj_lane_call_free);
  g_clear_pointer (&self->guest, bj_guest_unref);
}

gboolean
bj_guest_ask (BjGuest *self, const char *mode, BjGuestRequest *request, GBytes *input, guint budget_s,
              BjGuestAnswer *answer, GBytes **output, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) bytes = bj_guest_request_finish (request, input);
  g_auto(BjGuestCall) call = { 0 };
  struct pollfd none[BJ_GUEST_CALL_FDS] = { { -1, 0, 0 }, { -1, 0, 0 }, { -1, 0, 0 } };
  gboolean done = FALSE;

  if (g_cancellable_is_cancelled (cancellable))
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The command was cancelled");
  if (!bj_guest_check_running (self, error))
    return FALSE;
  if (!bj_guest_call_begin (&call, self, mode, bytes, BJ_LANE_CALL_PLAIN, budget_s, cancellable))
    return bj_guest_ask_agent (self, mode, request, bytes, budget_s, answer, output, cancellable, error);
  bj_guest_request_set_sent (request);
  while (!done)
    if (!bj_guest_call_wait (&call, none, &done, cancellable, error))
      return FALSE;
  return bj_guest_call_finish (&call, answer, output, error);
}
