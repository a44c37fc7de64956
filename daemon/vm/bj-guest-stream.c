/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define INPUT_MAX (64u << 20)
#define OVERHEAD_S 120
#define WRITE_POLL_MS 100
#define DELIVER_S 60 /* for a reader that took nothing since the command ended */

/* One of the two streams, on its way to the caller's fd. */
typedef struct
{
  BjLaneType type;
  int fd;           /* -1 discards */
  GByteArray *data; /* (owned): what the fd has not taken yet */
  gsize done;       /* of it */
  guint64 got;      /* bytes from the guest, altogether */
  gboolean closed;  /* the reader has gone */
} BjFlow;

static gboolean
is_waiting (const BjFlow *self)
{
  return self->done < self->data->len;
}

static void
init_flow (BjFlow *self, BjLaneType type, int fd)
{
  *self = (BjFlow) { .type = type, .fd = fd, .data = g_byte_array_new () };
}

static void
clear_flow (BjFlow *self)
{
  g_byte_array_unref (self->data);
}

static void
close_flow (BjFlow *self, BjLaneCall *call)
{
  self->closed = TRUE;
  self->done = self->data->len;
  if (call != NULL)
    bj_lane_call_close (call, self->type);
}

/* What is there now, once the fd has taken what came before. */
static void
fetch (BjFlow *self, BjLaneCall *call)
{
  if (is_waiting (self))
    return;
  bj_lane_call_give (call, self->type, self->data->len);
  g_byte_array_set_size (self->data, 0);
  self->done = 0;
  bj_lane_call_take (call, self->type, self->data);
  self->got += self->data->len;
  if (self->fd < 0 || self->closed)
    self->done = self->data->len;
}

/* @revents: what poll() said of the fd */
static void
hand_on (BjFlow *self, BjLaneCall *call, short revents)
{
  struct pollfd poll_fd = { self->fd, POLLOUT, 0 };

  if (self->fd < 0 || self->closed || revents == 0)
    return;
  if ((revents & (POLLERR | POLLNVAL)) != 0 || !is_waiting (self))
    {
      close_flow (self, call);
      return;
    }
  do
    {
      /* A pipe that is writable takes PIPE_BUF bytes without blocking, whatever its flags. */
      gssize n = write (self->fd, self->data->data + self->done, MIN (self->data->len - self->done, 4096));

      if (n > 0)
        self->done += (gsize) n;
      else if (n < 0 && errno != EAGAIN && errno != EINTR)
        close_flow (self, call);
    }
  while (is_waiting (self) && poll (&poll_fd, 1, 0) == 1 && poll_fd.revents == POLLOUT);
}

/* Even when nothing waits: poll() then says when the reader goes. */
static struct pollfd
get_poll (const BjFlow *self)
{
  return (struct pollfd) { self->closed ? -1 : self->fd, is_waiting (self) ? POLLOUT : 0, 0 };
}

/* After the end: a reader may take its time, but not for ever. */
static gboolean
deliver (BjFlow flows[2], gint64 deadline, GCancellable *cancellable, GError **error)
{
  while (is_waiting (&flows[0]) || is_waiting (&flows[1]))
    {
      struct pollfd fds[2] = { get_poll (&flows[0]), get_poll (&flows[1]) };

      if (g_cancellable_is_cancelled (cancellable))
        return bj_error_set (error, BJ_ERROR_CANCELLED, "The command was cancelled");
      if (g_get_monotonic_time () > deadline)
        return bj_error_set (error, BJ_ERROR_FAILED, "Nobody read the command's output within its time");
      if (poll (fds, 2, WRITE_POLL_MS) <= 0)
        continue;
      for (int i = 0; i < 2; i++)
        hand_on (&flows[i], NULL, fds[i].revents);
    }
  return TRUE;
}

static gboolean
follow (BjGuestCall *call, BjFlow flows[2], GCancellable *cancellable, GError **error)
{
  gboolean done = FALSE;
  gboolean any;

  while (!done)
    {
      struct pollfd fds[2] = { get_poll (&flows[0]), get_poll (&flows[1]) };

      if (!bj_guest_call_wait (call, fds, &done, cancellable, error))
        return FALSE;
      for (int i = 0; i < 2; i++)
        {
          hand_on (&flows[i], call->call, fds[i].revents);
          fetch (&flows[i], call->call);
        }
    }
  do
    {
      if (!deliver (flows, MAX (call->deadline, g_get_monotonic_time () + DELIVER_S * G_USEC_PER_SEC), cancellable, error))
        return FALSE;
      fetch (&flows[0], call->call);
      fetch (&flows[1], call->call);
      any = is_waiting (&flows[0]) || is_waiting (&flows[1]);
    }
  while (any);
  return TRUE;
}

static gboolean
run_streaming (BjGuestCall *call, BjFlow flows[2], BjExecResult *result, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  if (!follow (call, flows, cancellable, error) || !bj_guest_call_finish (call, &answer, &output, error))
    return FALSE;
  if ((!flows[0].closed && flows[0].got != answer.out_total) || (!flows[1].closed && flows[1].got != answer.err_total))
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "Output was lost on its way out of the guest");
  bj_guest_fill_result (result, &answer);
  return TRUE;
}

/* Through the agent there is no stream: what fits into an answer comes at the end. */
static gboolean
run_at_once (BjGuest *self, const BjExec *exec, BjFlow flows[2], BjExecResult *result, GCancellable *cancellable,
             GError **error)
{
  BjExec capped = *exec;

  capped.cap = BJ_RUN_KEEP_MAX;
  if (!bj_guest_exec (self, &capped, result, cancellable, error))
    return FALSE;
  if (result->truncated)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE,
                         "The guest's channel for streams does not answer, and the output is longer than %u bytes: put it "
                         "into a file", BJ_RUN_KEEP_MAX);
  g_byte_array_append (flows[0].data, g_bytes_get_data (result->out, NULL), (guint) g_bytes_get_size (result->out));
  g_byte_array_append (flows[1].data, g_bytes_get_data (result->err, NULL), (guint) g_bytes_get_size (result->err));
  for (int i = 0; i < 2; i++)
    if (flows[i].fd < 0)
      flows[i].done = flows[i].data->len;
  return deliver (flows, g_get_monotonic_time () + DELIVER_S * G_USEC_PER_SEC, cancellable, error);
}

static gboolean
run (BjGuest *self, const BjExec *exec, BjFlow flows[2], BjExecResult *result, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) bytes = NULL;
  g_auto(BjGuestCall) call = { 0 };
  guint timeout_s = exec->timeout_s ? MIN (exec->timeout_s, BJ_RUN_DAY) : BJ_RUN_DAY;

  if (!bj_guest_request_add_exec (request, exec, error) || !bj_guest_check_running (self, error))
    return FALSE;
  bytes = bj_guest_request_finish (request, exec->input);
  if (!bj_guest_call_begin (&call, self, "stream", bytes, timeout_s + OVERHEAD_S, cancellable))
    return run_at_once (self, exec, flows, result, cancellable, error);
  result->sent = TRUE;
  return run_streaming (&call, flows, result, cancellable, error);
}

/* To its end, but a caller who never closes it does not hold us for ever. */
static GBytes *
read_input (int fd, gint64 deadline, GCancellable *cancellable, GError **error)
{
  g_autoptr(GByteArray) all = g_byte_array_new ();
  guint8 buffer[65536];

  for (;;)
    {
      struct pollfd poll_fd = { fd, POLLIN, 0 };
      gssize n;

      if (g_cancellable_is_cancelled (cancellable))
        bj_error_set (error, BJ_ERROR_CANCELLED, "The command was cancelled");
      else if (g_get_monotonic_time () > deadline)
        bj_error_set (error, BJ_ERROR_FAILED, "Standard input did not end within the command's time");
      else if (all->len > INPUT_MAX)
        bj_error_set (error, BJ_ERROR_INVALID, "Standard input is longer than %u bytes: put it into a file", INPUT_MAX);
      else if (poll (&poll_fd, 1, WRITE_POLL_MS) <= 0)
        continue;
      else if ((n = read (fd, buffer, sizeof buffer)) > 0)
        {
          g_byte_array_append (all, buffer, (guint) n);
          continue;
        }
      else if (n == 0)
        return g_byte_array_free_to_bytes (g_steal_pointer (&all));
      else if (errno == EINTR || errno == EAGAIN)
        continue;
      else
        bj_fd_set_io_error (error, errno, "Reading standard input");
      return NULL;
    }
}

gboolean
bj_guest_exec_stream (BjGuest *self, const BjExec *exec, int in, int out, int err, BjExecResult *result,
                      GCancellable *cancellable, GError **error)
{
  guint timeout_s = exec->timeout_s ? MIN (exec->timeout_s, BJ_RUN_DAY) : BJ_RUN_DAY;
  gint64 input_deadline = g_get_monotonic_time () + (gint64) timeout_s * G_USEC_PER_SEC;
  g_autoptr(GBytes) input = in >= 0 ? read_input (in, input_deadline, cancellable, error) : NULL;
  BjExec with_input = *exec;
  BjFlow flows[2];
  gboolean ok;

  if (in >= 0 && input == NULL)
    return FALSE;
  if (input != NULL)
    with_input.input = input;
  init_flow (&flows[0], BJ_LANE_OUT, out);
  init_flow (&flows[1], BJ_LANE_ERR, err);
  ok = run (self, &with_input, flows, result, cancellable, error);
  clear_flow (&flows[0]);
  clear_flow (&flows[1]);
  if (!ok)
    return FALSE;
  g_clear_pointer (&result->out, g_bytes_unref);
  g_clear_pointer (&result->err, g_bytes_unref);
  result->out = g_bytes_new (NULL, 0);
  result->err = g_bytes_new (NULL, 0);
  result->truncated = FALSE;
  return TRUE;
}
