/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#define INPUT_MAX (64u << 20)
#define OVERHEAD_S 120
#define ACK_EVERY (2u << 20)
#define WRITE_POLL_MS 100
#define DELIVER_S 60 /* for a reader that took nothing since the command ended */

/* One of the two streams: a file in the guest, read as it grows. */
typedef struct
{
  gint64 handle; /* 0: not open */
  int fd;        /* the caller's; -1 discards */
  guint64 got;   /* bytes read from the guest and handed on */
  guint64 acked;
  gboolean closed; /* the reader has gone */
} BjFlow;

typedef struct
{
  BjGuest *guest;
  char *spool; /* (owned): path in the guest, to which .out .err .ack are added */
  BjFlow out;
  BjFlow err;
  gint64 ack;
  gint64 deadline;
} BjStreaming;

static gboolean
open_one (BjStreaming *self, const char *suffix, gint64 *handle, GError **error)
{
  g_autofree char *path = g_strconcat (self->spool, suffix, NULL);

  return bj_guest_agent_open (self->guest, path, "w+", handle, error);
}

static void
close_all (BjStreaming *self)
{
  const gint64 handles[] = { self->out.handle, self->err.handle, self->ack };

  for (guint i = 0; i < G_N_ELEMENTS (handles); i++)
    if (handles[i] != 0)
      bj_guest_agent_close (self->guest, handles[i]);
  g_free (self->spool);
}

/* Everything to the caller's fd, in our time: a reader that does not read holds up only its own command. */
static gboolean
hand_on (BjStreaming *self, BjFlow *flow, const guint8 *data, gsize size, GCancellable *cancellable, GError **error)
{
  while (size > 0 && flow->fd >= 0 && !flow->closed)
    {
      struct pollfd poll_fd = { flow->fd, POLLOUT, 0 };
      gssize n;

      if (g_cancellable_is_cancelled (cancellable))
        return bj_error_set (error, BJ_ERROR_CANCELLED, "The command was cancelled");
      if (g_get_monotonic_time () > self->deadline)
        return bj_error_set (error, BJ_ERROR_FAILED, "Nobody read the command's output within its time");
      if (poll (&poll_fd, 1, WRITE_POLL_MS) <= 0)
        continue;
      /* A pipe that is writable takes PIPE_BUF bytes without blocking, whatever its flags. */
      n = write (flow->fd, data, MIN (size, 4096));
      if (n > 0)
        {
          data += n;
          size -= (gsize) n;
        }
      else if (n < 0 && errno != EAGAIN && errno != EINTR)
        flow->closed = TRUE;
    }
  return TRUE;
}

/* @any: (out): set if something came */
static gboolean
pump (BjStreaming *self, BjFlow *flow, gboolean *any, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) chunk = bj_guest_agent_read (self->guest, flow->handle, BJ_AGENT_READ_MAX, error);
  gsize size;
  const guint8 *data;

  if (chunk == NULL)
    return FALSE;
  data = g_bytes_get_data (chunk, &size);
  if (size == 0)
    return TRUE;
  *any = TRUE;
  if (!hand_on (self, flow, data, size, cancellable, error))
    return FALSE;
  flow->got += size;
  return TRUE;
}

static guint64
get_acknowledgement (const BjFlow *flow)
{
  return flow->closed ? G_MAXUINT64 : flow->got;
}

static gboolean
acknowledge (BjStreaming *self, GError **error)
{
  const BjRunAck ack = { get_acknowledgement (&self->out), get_acknowledgement (&self->err) };

  if (ack.out - self->out.acked < ACK_EVERY && ack.err - self->err.acked < ACK_EVERY)
    return TRUE;
  self->out.acked = ack.out;
  self->err.acked = ack.err;
  return bj_guest_agent_write (self->guest, self->ack, &ack, sizeof ack, error);
}

static gboolean
pump_both (BjStreaming *self, gboolean *any, GCancellable *cancellable, GError **error)
{
  return pump (self, &self->out, any, cancellable, error) && pump (self, &self->err, any, cancellable, error)
         && acknowledge (self, error);
}

/* A machine that is paused comes back, its files with it. */
static gboolean
pump_unless_paused (BjStreaming *self, gboolean *any, GCancellable *cancellable, GError **error)
{
  g_autoptr(GError) local = NULL;

  *any = FALSE;
  if (pump_both (self, any, cancellable, &local))
    return TRUE;
  if (g_error_matches (local, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE) && bj_guest_is_paused (self->guest))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

/* After the end: what is still in the files. @answer says how much there must be. */
static gboolean
fetch_rest (BjStreaming *self, const BjGuestAnswer *answer, GCancellable *cancellable, GError **error)
{
  gboolean any = TRUE;

  self->deadline = MAX (self->deadline, g_get_monotonic_time () + DELIVER_S * G_USEC_PER_SEC);
  while (any)
    if (!pump_unless_paused (self, &any, cancellable, error))
      return FALSE;
  if ((answer->flags & BJ_RUN_LOST) != 0 || (!self->out.closed && self->out.got != answer->out_total)
      || (!self->err.closed && self->err.got != answer->err_total))
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE,
                         "Output was lost on its way out of the guest: its /run may be full");
  return TRUE;
}

static gboolean
follow (BjStreaming *self, BjGuestRun *run, BjGuestAnswer *answer, GCancellable *cancellable, GError **error)
{
  gboolean done = FALSE;
  gboolean any = FALSE;

  while (!done)
    {
      if (!any && !bj_guest_run_pause (run, cancellable, error))
        return FALSE;
      if (!pump_unless_paused (self, &any, cancellable, error) || !bj_guest_run_check (run, &done, error))
        return FALSE;
      if (any)
        run->pause_us = 2000;
    }
  return bj_guest_answer_parse (g_bytes_get_data (run->output, NULL), g_bytes_get_size (run->output), answer, error)
         && fetch_rest (self, answer, cancellable, error);
}

static gboolean
run_streaming (BjStreaming *self, BjGuestRequest *request, GBytes *input, guint timeout_s, BjExecResult *result,
               GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) bytes = NULL;
  g_auto(BjGuestRun) run = { 0 };
  BjGuestAnswer answer;

  if (!open_one (self, ".out", &self->out.handle, error) || !open_one (self, ".err", &self->err.handle, error)
      || !open_one (self, ".ack", &self->ack, error))
    return FALSE;
  bj_guest_request_add (request, "spool", self->spool);
  bytes = bj_guest_request_finish (request, input);
  if (!bj_guest_run_begin (&run, self->guest, "stream", bytes, timeout_s + OVERHEAD_S, cancellable, error))
    return FALSE;
  self->deadline = run.deadline;
  if (!follow (self, &run, &answer, cancellable, error))
    {
      bj_guest_run_stop (&run);
      return FALSE;
    }
  bj_guest_fill_result (result, &answer);
  g_clear_pointer (&result->out, g_bytes_unref);
  g_clear_pointer (&result->err, g_bytes_unref);
  result->out = g_bytes_new (NULL, 0);
  result->err = g_bytes_new (NULL, 0);
  result->truncated = FALSE;
  return TRUE;
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
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  guint timeout_s = exec->timeout_s ? MIN (exec->timeout_s, BJ_RUN_DAY) : BJ_RUN_DAY;
  gint64 input_deadline = g_get_monotonic_time () + (gint64) timeout_s * G_USEC_PER_SEC;
  g_autoptr(GBytes) input = in >= 0 ? read_input (in, input_deadline, cancellable, error) : NULL;
  BjExec with_input = *exec;
  BjStreaming streaming = { .guest = self, .out = { .fd = out }, .err = { .fd = err } };
  gboolean ok;

  if (in >= 0 && input == NULL)
    return FALSE;
  if (input != NULL)
    with_input.input = input;
  if (!bj_guest_request_add_exec (request, &with_input, error))
    return FALSE;
  streaming.spool = g_strdup_printf (BJ_RUN_DIR "/stream-%08x%08x", g_random_int (), g_random_int ());
  ok = run_streaming (&streaming, request, with_input.input, timeout_s, result, cancellable, error);
  close_all (&streaming);
  return ok;
}
