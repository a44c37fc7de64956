/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-error.h"

#define ASK_SECONDS 60
#define SEND_CHUNK (32u << 10)
#define POLL_WAIT_MAX 600u

static gboolean
check_known (const BjGuestAnswer *answer, guint id, GError **error)
{
  if ((answer->flags & BJ_RUN_UNKNOWN) == 0)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no background command %u", id);
}

static gboolean
ask_about (BjGuest *self, const char *mode, guint id, guint wait_s, GBytes *input, BjGuestAnswer *answer,
           GBytes **output, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();

  if (id == 0 || id > BJ_RUN_IDS)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no background command %u", id);
  bj_guest_request_add_number (request, "id", id);
  bj_guest_request_add_number (request, "wait", wait_s);
  return bj_guest_ask (self, mode, request, input, ASK_SECONDS + wait_s, answer, output, cancellable, error)
         && check_known (answer, id, error);
}

gboolean
bj_guest_start (BjGuest *self, const BjExec *exec, guint *id, gboolean *sent, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  BjExec plain = *exec;
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;
  gboolean ok;

  /* Its standard input is the FIFO that bj_guest_send() writes to. */
  plain.input = NULL;
  ok = bj_guest_request_add_exec (request, &plain, error)
       && bj_guest_ask (self, "start", request, NULL, ASK_SECONDS, &answer, &output, cancellable, error);
  *sent = bj_guest_request_was_sent (request);
  if (!ok)
    return FALSE;
  *sent = (answer.flags & BJ_RUN_UNKNOWN) == 0 && answer.id != 0 && answer.id <= BJ_RUN_IDS;
  if (!*sent)
    return bj_error_set (error, BJ_ERROR_BUSY, "The guest has no room for another background command");
  *id = answer.id;
  return exec->input == NULL || bj_guest_send (self, *id, exec->input, cancellable, error);
}

gboolean
bj_guest_poll (BjGuest *self, guint id, guint wait_s, BjPollResult *result, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  if (!ask_about (self, "poll", id, MIN (wait_s, POLL_WAIT_MAX), NULL, &answer, &output, cancellable, error))
    return FALSE;
  if (answer.lengths[0] > BJ_RUN_POLL_MAX)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest sent more output than it was asked for");
  *result = (BjPollResult) {
    .running = (answer.flags & BJ_RUN_RUNNING) != 0,
    .exit = answer.exit,
    .signal = answer.signal,
    .output = g_bytes_new (answer.pieces[0], answer.lengths[0]),
    .dropped = answer.dropped,
  };
  return TRUE;
}

static gboolean
send_chunk (BjGuest *self, guint id, GBytes *chunk, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  if (!ask_about (self, "send", id, 0, chunk, &answer, &output, cancellable, error))
    return FALSE;
  if ((answer.flags & BJ_RUN_RUNNING) == 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "The background command %u has ended", id);
  if (answer.out_total == g_bytes_get_size (chunk))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_BUSY, "The background command %u does not read its input", id);
}

gboolean
bj_guest_send (BjGuest *self, guint id, GBytes *data, GCancellable *cancellable, GError **error)
{
  gsize size = g_bytes_get_size (data);
  gsize done = 0;

  do
    {
      gsize n = MIN (size - done, SEND_CHUNK);
      g_autoptr(GBytes) chunk = g_bytes_new_from_bytes (data, done, n);

      if (!send_chunk (self, id, chunk, cancellable, error))
        return FALSE;
      done += n;
    }
  while (done < size);
  return TRUE;
}

gboolean
bj_guest_kill (BjGuest *self, guint id, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  if (!ask_about (self, "kill", id, 0, NULL, &answer, &output, cancellable, error))
    return FALSE;
  if ((answer.flags & BJ_RUN_RUNNING) != 0)
    return bj_error_set (error, BJ_ERROR_FAILED, "The background command %u does not end", id);
  return TRUE;
}
