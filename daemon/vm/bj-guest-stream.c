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

/* What the caller gives, as the guest takes it. @in: the fd, -1 once it has ended */
static gboolean
hand_in (int *in, BjLaneCall *call, short revents, GError **error)
{
  guint8 buffer[65536];
  gsize room = revents != 0 ? bj_lane_call_get_room (call) : 0;
  gssize n = room > 0 ? read (*in, buffer, MIN (room, sizeof buffer)) : -1;

  if (room == 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
    return TRUE;
  if (n < 0)
    return bj_fd_set_io_error (error, errno, "Reading standard input");
  if (n > 0)
    {
      bj_lane_call_put (call, buffer, (gsize) n);
      return TRUE;
    }
  bj_lane_call_end_input (call);
  *in = -1;
  return TRUE;
}

static gboolean
follow (BjGuestCall *call, int in, BjFlow flows[2], GCancellable *cancellable, GError **error)
{
  gboolean done = FALSE;
  gboolean any;

  while (!done)
    {
      int input = in >= 0 && bj_lane_call_get_room (call->call) > 0 ? in : -1;
      struct pollfd fds[BJ_GUEST_CALL_FDS] = { get_poll (&flows[0]), get_poll (&flows[1]), { input, POLLIN, 0 } };

      if (!bj_guest_call_wait (call, fds, &done, cancellable, error) || !hand_in (&in, call->call, fds[2].revents, error))
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
run_streaming (BjGuestCall *call, int in, BjFlow flows[2], BjExecResult *result, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  if (!follow (call, in, flows, cancellable, error) || !bj_guest_call_finish (call, &answer, &output, error))
    return FALSE;
  if ((!flows[0].closed && flows[0].got != answer.out_total) || (!flows[1].closed && flows[1].got != answer.err_total))
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "Output was lost on its way out of the guest");
  bj_guest_fill_result (result, &answer);
  return TRUE;
}

static guint
get_timeout (const BjExec *exec)
{
  return exec->timeout_s ? MIN (exec->timeout_s, BJ_RUN_DAY) : BJ_RUN_DAY;
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

/* Through the agent there are no streams: all input goes first, and what fits into an answer comes at the end. */
static gboolean
run_at_once (BjGuest *self, const BjExec *exec, int in, BjFlow flows[2], BjExecResult *result, GCancellable *cancellable,
             GError **error)
{
  gint64 input_deadline = g_get_monotonic_time () + (gint64) get_timeout (exec) * G_USEC_PER_SEC;
  g_autoptr(GBytes) input = in >= 0 ? read_input (in, input_deadline, cancellable, error) : NULL;
  BjExec capped = *exec;

  if (in >= 0 && input == NULL)
    return FALSE;
  capped.cap = BJ_RUN_KEEP_MAX;
  capped.input = input;
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
run (BjGuest *self, const BjExec *exec, int in, BjFlow flows[2], BjExecResult *result, GCancellable *cancellable,
     GError **error)
{
  BjLaneCallFlags flags = BJ_LANE_CALL_OUTPUT | (in >= 0 ? BJ_LANE_CALL_INPUT : 0);
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) bytes = NULL;
  g_auto(BjGuestCall) call = { 0 };

  if (!bj_guest_request_add_exec (request, exec, error) || !bj_guest_check_running (self, error))
    return FALSE;
  bytes = bj_guest_request_finish (request, exec->input);
  if (!bj_guest_call_begin (&call, self, "stream", bytes, flags, get_timeout (exec) + OVERHEAD_S, cancellable))
    return run_at_once (self, exec, in, flows, result, cancellable, error);
  result->sent = TRUE;
  return run_streaming (&call, in, flows, result, cancellable, error);
}

gboolean
bj_guest_exec_stream (BjGuest *self, const BjExec *exec, int in, int out, int err, BjExecResult *result,
                      GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) follows = in >= 0 ? g_bytes_new (NULL, 0) : NULL;
  BjExec with_input = *exec;
  BjFlow flows[2];
  gboolean ok;

  if (follows != NULL)
    with_input.input = follows; /* it has some */
  init_flow (&flows[0], BJ_LANE_OUT, out);
  init_flow (&flows[1], BJ_LANE_ERR, err);
  ok = run (self, &with_input, in, flows, result, cancellable, error);
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
