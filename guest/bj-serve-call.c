/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-serve.h"

#include "bj-modes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH 16 /* above every number that a mode expects something at */

static const uint16_t frame_types[BJ_SERVE_STREAMS] = { BJ_LANE_RESULT, BJ_LANE_OUT, BJ_LANE_ERR };

/* In the child: its standard input and output are ours now, and nothing else of the server's stays open. */
static void
run_mode (const char *mode, pid_t server, const int ends[1 + BJ_SERVE_STREAMS])
{
  static const int numbers[1 + BJ_SERVE_STREAMS] = { 0, 1, BJ_RUN_STREAM_OUT, BJ_RUN_STREAM_ERR };
  int high[1 + BJ_SERVE_STREAMS];
  unsigned next = 3;
  sigset_t none;

  prctl (PR_SET_NAME, "belljar-run");
  prctl (PR_SET_PDEATHSIG, SIGTERM);
  if (getppid () != server)
    _exit (1);
  for (int i = 0; i <= BJ_SERVE_STREAMS; i++)
    high[i] = ends[i] >= 0 ? fcntl (ends[i], F_DUPFD_CLOEXEC, HIGH) : -1;
  for (int i = 0; i <= BJ_SERVE_STREAMS; i++)
    if (high[i] >= 0 && dup2 (high[i], numbers[i]) >= 0 && numbers[i] >= 3)
      next = (unsigned) numbers[i] + 1;
  if (syscall (SYS_close_range, next, ~0u, 0u) < 0)
    for (int fd = (int) next; fd < 4096; fd++)
      close (fd);
  signal (SIGPIPE, SIG_DFL);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  _exit (bj_mode_run (mode));
}

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

/* One pipe; the server's end does not block. */
static bool
make_pipe (int *ours, int *theirs, bool we_write)
{
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return false;
  *ours = ends[we_write];
  *theirs = ends[!we_write];
  return fcntl (*ours, F_SETFL, O_NONBLOCK) == 0;
}

void
bj_serve_call_start (BjServeCall *self, uint32_t id, const char *mode)
{
  int theirs[1 + BJ_SERVE_STREAMS] = { -1, -1, -1, -1 };
  int n = strcmp (mode, "stream") == 0 ? BJ_SERVE_STREAMS : 1;
  pid_t server = getpid ();
  bool ok;

  *self = (BjServeCall) { .id = id, .status = -1, .in = -1 };
  for (int i = 0; i < BJ_SERVE_STREAMS; i++)
    self->streams[i] = (BjServeStream) { .fd = -1, .credit = BJ_LANE_WINDOW };
  ok = make_pipe (&self->in, &theirs[0], true);
  for (int i = 0; ok && i < n; i++)
    ok = make_pipe (&self->streams[i].fd, &theirs[i + 1], false);
  self->pid = ok ? fork () : -1;
  if (self->pid == 0)
    run_mode (mode, server, theirs);
  for (int i = 0; i <= BJ_SERVE_STREAMS; i++)
    close_fd (&theirs[i]);
  if (self->pid > 0)
    return;
  self->pid = 0;
  close_fd (&self->in);
  for (int i = 0; i < BJ_SERVE_STREAMS; i++)
    close_fd (&self->streams[i].fd);
}

static void
give_up_input (BjServeCall *self)
{
  self->owed += (uint32_t) self->pending_length;
  self->pending_length = 0;
  close_fd (&self->in);
}

void
bj_serve_call_flush (BjServeCall *self)
{
  while (self->in >= 0 && self->pending_length > 0)
    {
      ssize_t n = write (self->in, self->pending + self->pending_start, self->pending_length);

      if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
      if (n < 0)
        {
          give_up_input (self);
          return;
        }
      self->pending_start += (size_t) n;
      self->pending_length -= (size_t) n;
      self->owed += (uint32_t) n;
    }
  self->pending_start = 0;
  if (self->ended)
    close_fd (&self->in);
}

/* Most requests fit into the pipe. Returns what is left of data. */
static size_t
write_now (BjServeCall *self, const uint8_t *data, size_t length)
{
  ssize_t n = self->in >= 0 && self->pending_length == 0 ? write (self->in, data, length) : 0;

  if (n < 0 && errno != EAGAIN && errno != EINTR)
    close_fd (&self->in);
  if (self->in < 0)
    n = (ssize_t) length;
  else if (n < 0)
    n = 0;
  self->owed += (uint32_t) n;
  return length - (size_t) n;
}

bool
bj_serve_call_put (BjServeCall *self, const uint8_t *data, size_t length)
{
  size_t left;

  if (self->ended || length > BJ_LANE_WINDOW - self->pending_length - self->owed)
    return false;
  left = write_now (self, data, length);
  if (left == 0)
    return true;
  if (self->pending == NULL && (self->pending = malloc (BJ_LANE_WINDOW)) == NULL)
    {
      self->owed += (uint32_t) left;
      close_fd (&self->in);
      return true;
    }
  if (self->pending_start + self->pending_length + left > BJ_LANE_WINDOW)
    {
      memmove (self->pending, self->pending + self->pending_start, self->pending_length);
      self->pending_start = 0;
    }
  memcpy (self->pending + self->pending_start + self->pending_length, data + length - left, left);
  self->pending_length += left;
  return true;
}

void
bj_serve_call_end (BjServeCall *self)
{
  self->ended = true;
  bj_serve_call_flush (self);
}

bool
bj_serve_call_is_waiting (const BjServeCall *self)
{
  return self->in >= 0 && self->pending_length > 0;
}

void
bj_serve_call_stop (const BjServeCall *self)
{
  if (self->pid > 0)
    kill (self->pid, SIGTERM);
}

void
bj_serve_call_close (BjServeCall *self, unsigned stream)
{
  close_fd (&self->streams[stream].fd);
}

static void
release (BjServeCall *self)
{
  close_fd (&self->in);
  for (int i = 0; i < BJ_SERVE_STREAMS; i++)
    close_fd (&self->streams[i].fd);
  free (self->pending);
  self->pending = NULL;
  self->id = 0;
}

void
bj_serve_call_drop (BjServeCall *self)
{
  bj_serve_call_stop (self);
  release (self);
}

static void
set_head (const BjServeCall *self, BjLaneHead *head, uint16_t type, size_t length)
{
  *head = (BjLaneHead) { BJ_LANE_MAGIC, type, (uint16_t) length, self->id };
}

static bool
read_stream (BjServeCall *self, int i, BjLaneHead *head, uint8_t *payload)
{
  BjServeStream *stream = &self->streams[i];
  size_t room = stream->credit < BJ_LANE_PAYLOAD_MAX ? stream->credit : BJ_LANE_PAYLOAD_MAX;
  ssize_t n;

  if (stream->fd < 0 || !stream->ready || room == 0)
    return false;
  n = read (stream->fd, payload, room);
  if (n > 0)
    {
      if (i != BJ_SERVE_RESULT)
        stream->credit -= (uint32_t) n;
      set_head (self, head, frame_types[i], (size_t) n);
      return true;
    }
  if (n == 0 || (errno != EAGAIN && errno != EINTR))
    close_fd (&stream->fd);
  stream->ready = false;
  return false;
}

bool
bj_serve_call_next (BjServeCall *self, BjLaneHead *head, uint8_t *payload)
{
  if (self->owed >= BJ_LANE_WINDOW / 4)
    {
      const BjLaneCredit credit = { BJ_LANE_DATA, self->owed };

      memcpy (payload, &credit, sizeof credit);
      set_head (self, head, BJ_LANE_CREDIT, sizeof credit);
      self->owed = 0;
      return true;
    }
  for (int i = 0; i < BJ_SERVE_STREAMS; i++)
    if (read_stream (self, i, head, payload))
      return true;
  for (int i = 0; i < BJ_SERVE_STREAMS; i++)
    if (self->streams[i].fd >= 0)
      return false;
  if (self->pid != 0)
    return false;
  memcpy (payload, &(int32_t) { self->status }, sizeof (int32_t));
  set_head (self, head, BJ_LANE_DONE, sizeof (int32_t));
  release (self);
  return true;
}
