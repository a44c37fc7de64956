/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-error.h"

#define FIRST_PAUSE_US 2000
#define LAST_PAUSE_US 100000
#define SILENCE (20 * G_USEC_PER_SEC) /* how long an agent may be away before the call fails */

/*
 * The second way into a guest, for images without our server and when that does not answer: guest-exec of the same program
 * through the guest's agent. Each look whether it has ended is a call of its own.
 */
typedef struct
{
  BjGuest *guest;
  gint64 pid;
  gint64 deadline; /* monotonic; moved on while the machine is paused */
  gint64 silent;   /* since when the agent does not answer; 0: it does */
  guint pause_us;  /* between two looks */
  GBytes *output;  /* (owned) (nullable): set once it ended */
} BjAgentRun;

/* Too long for the agent in one piece: into a file of the run's own folder first; the program removes it. */
static gboolean
upload (BjGuest *guest, const char *path, GBytes *request, GCancellable *cancellable, GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (request, &size);
  gint64 handle;
  gboolean ok = TRUE;

  if (!bj_guest_agent_open (guest, path, "w", &handle, error))
    return FALSE;
  for (gsize done = 0; ok && done < size; done += BJ_AGENT_WRITE_MAX)
    ok = !g_cancellable_set_error_if_cancelled (cancellable, error)
         && bj_guest_agent_write (guest, handle, data + done, MIN (size - done, BJ_AGENT_WRITE_MAX), error);
  bj_guest_agent_close (guest, handle);
  return ok;
}

static gboolean
begin (BjAgentRun *self, BjGuest *guest, const char *mode, GBytes *request, guint budget_s, gboolean *sent,
       GCancellable *cancellable, GError **error)
{
  g_autoptr(GError) refused = NULL;
  const char *argv[] = { BJ_RUN_PROGRAM, mode, NULL, NULL };
  g_autofree char *path = NULL;

  *self = (BjAgentRun) { .guest = bj_guest_ref (guest), .pause_us = FIRST_PAUSE_US };
  self->deadline = g_get_monotonic_time () + (gint64) budget_s * G_USEC_PER_SEC;
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (g_bytes_get_size (request) > BJ_AGENT_WRITE_MAX)
    {
      path = g_strdup_printf (BJ_RUN_DIR "/request-%08x%08x", g_random_int (), g_random_int ());
      if (!upload (guest, path, request, cancellable, error))
        return FALSE;
      argv[2] = path;
    }
  *sent = bj_guest_agent_exec (guest, argv, path ? NULL : request, &self->pid, &refused);
  if (*sent)
    return TRUE;
  /* An agent that says no has started nothing; one that says nothing may have. */
  *sent = g_error_matches (refused, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
  g_propagate_error (error, g_steal_pointer (&refused));
  return FALSE;
}

/* Looks once. Survives a paused machine and an agent that comes back. */
static gboolean
check (BjAgentRun *self, gboolean *done, GError **error)
{
  g_autoptr(GError) local = NULL;
  gint64 now = g_get_monotonic_time ();

  *done = FALSE;
  if (bj_guest_agent_exec_status (self->guest, self->pid, done, &self->output, &local))
    {
      self->silent = 0;
      if (*done || now < self->deadline)
        return TRUE;
      return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest did not end a command at its deadline");
    }
  if (bj_guest_is_paused (self->guest))
    {
      self->deadline += self->pause_us;
      return TRUE;
    }
  if (self->silent == 0)
    self->silent = now;
  if (g_error_matches (local, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE) && now - self->silent < SILENCE
      && (bj_guest_revive (self->guest) || now < self->silent + SILENCE / 2))
    return TRUE;
  /* A new agent does not know what the old one had started. */
  if (g_error_matches (local, BJ_ERROR, BJ_ERROR_FAILED))
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest's agent was restarted while a command ran");
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* Waits a little; longer each time. */
static gboolean
take_pause (BjAgentRun *self, GCancellable *cancellable, GError **error)
{
  if (g_cancellable_is_cancelled (cancellable))
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The command was cancelled");
  g_usleep (self->pause_us);
  self->pause_us = MIN (self->pause_us + self->pause_us / 2, LAST_PAUSE_US);
  return TRUE;
}

/* Ends the command in the guest, without waiting for that. */
static void
stop (BjAgentRun *self)
{
  const char *argv[] = { BJ_RUN_PROGRAM, "stop", NULL };
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) bytes = NULL;
  g_autoptr(GError) error = NULL;
  gint64 pid;

  bj_guest_request_add_number (request, "pid", (guint64) self->pid);
  bytes = bj_guest_request_finish (request, NULL);
  if (!bj_guest_agent_exec (self->guest, argv, bytes, &pid, &error))
    g_debug ("Stopping a command in the guest: %s", error->message);
}

static void
clear (BjAgentRun *self)
{
  g_clear_pointer (&self->guest, bj_guest_unref);
  g_clear_pointer (&self->output, g_bytes_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjAgentRun, clear)

gboolean
bj_guest_ask_agent (BjGuest *self, const char *mode, BjGuestRequest *request, GBytes *bytes, guint budget_s,
                    BjGuestAnswer *answer, GBytes **output, GCancellable *cancellable, GError **error)
{
  g_auto(BjAgentRun) run = { 0 };
  gboolean done = FALSE;
  gboolean sent = FALSE;
  gboolean begun = begin (&run, self, mode, bytes, budget_s, &sent, cancellable, error);

  if (sent)
    bj_guest_request_set_sent (request);
  if (!begun)
    return FALSE;
  while (!done)
    {
      if (!take_pause (&run, cancellable, error) || !check (&run, &done, error))
        {
          if (run.silent == 0)
            stop (&run);
          return FALSE;
        }
    }
  *output = g_steal_pointer (&run.output);
  return bj_guest_answer_parse (g_bytes_get_data (*output, NULL), g_bytes_get_size (*output), answer, error);
}
