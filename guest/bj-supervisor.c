/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-supervisor.h"

#include "bj-cgroup.h"
#include "bj-child.h"
#include "bj-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MSEC 1000
#define LINGER (200 * MSEC)     /* for what a background child of a command that ended still prints */
#define GRACE (500 * MSEC)      /* between SIGTERM and SIGKILL */
#define KILL_LIMIT (5000 * MSEC) /* a process that does not die of SIGKILL hangs in the kernel */
#define DELIVER_LIMIT (60000 * MSEC) /* for the host to fetch what a killed command had printed */

int64_t
bj_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Our own death would leave the command alone: the guest's OOM killer shall take the command first. */
static void
protect_from_oom (void)
{
  int fd = open ("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

  if (fd >= 0 && write (fd, "-900", 4) != 4)
    errno = 0;
  if (fd >= 0)
    close (fd);
}

static bool
watch_signals (BjSupervisor *self)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGHUP);
  sigaddset (&set, SIGPIPE);
  sigprocmask (SIG_BLOCK, &set, NULL);
  sigdelset (&set, SIGPIPE);
  self->signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return self->signals >= 0;
}

bool
bj_supervisor_start (BjSupervisor *self, const BjRequest *request, int in, bool merged)
{
  int out[2];
  int err[2] = { -1, -1 };

  self->request = request;
  self->exit = -1;
  self->err.fd = -1;
  if (request->argv[0] == NULL || !watch_signals (self) || pipe2 (out, O_CLOEXEC) < 0
      || (!merged && pipe2 (err, O_CLOEXEC) < 0))
    return false;
  prctl (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  protect_from_oom ();
  self->started = bj_now ();
  self->deadline = self->started + (int64_t) request->timeout_s * 1000000;
  self->cgroup = bj_cgroup_take ();
  self->pid = bj_child_start (request, in, out[1], merged ? out[1] : err[1], self->cgroup);
  close (out[1]);
  if (!merged)
    close (err[1]);
  self->out.fd = out[0];
  self->err.fd = err[0];
  return self->pid > 0;
}

static void
close_stream (BjStream *stream)
{
  close (stream->fd);
  stream->fd = -1;
}

static void
take_output (BjStream *stream)
{
  static uint8_t buffer[64 << 10];
  size_t room = stream->sink->room (stream->sink);
  ssize_t n;

  if (room == 0)
    return;
  n = read (stream->fd, buffer, room < sizeof buffer ? room : sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (n <= 0)
    {
      close_stream (stream);
      return;
    }
  stream->total += (uint64_t) n;
  stream->owed -= stream->owed < (uint64_t) n ? stream->owed : (uint64_t) n;
  if (stream->sha256 != NULL)
    bj_sha256_update (stream->sha256, buffer, (size_t) n);
  stream->sink->put (stream->sink, buffer, (size_t) n);
}

static void
note_owed (BjStream *stream)
{
  int waiting = 0;

  if (stream->fd >= 0 && ioctl (stream->fd, FIONREAD, &waiting) == 0)
    stream->owed = (uint64_t) waiting;
}

static void
note_end (BjSupervisor *self, int status)
{
  self->ended = bj_now ();
  if (WIFEXITED (status))
    self->exit = WEXITSTATUS (status);
  else
    self->signal = WTERMSIG (status);
  note_owed (&self->out);
  note_owed (&self->err);
}

static void
next_stage (BjSupervisor *self, BjStage stage)
{
  self->stage = stage;
  self->stage_since = bj_now ();
  if (stage == BJ_STAGE_KILLED)
    {
      bj_tree_hurry ();
      bj_cgroup_kill (self->cgroup);
      bj_tree_signal (SIGKILL);
      return;
    }
  bj_tree_signal (SIGTERM);
  bj_tree_signal (SIGCONT);
}

static void
take_signals (BjSupervisor *self)
{
  struct signalfd_siginfo info;
  int status;
  pid_t pid;

  while (read (self->signals, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD && self->stage == BJ_STAGE_RUNNING)
      {
        self->flags |= BJ_RUN_STOPPED;
        next_stage (self, BJ_STAGE_ASKED);
      }
  while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
    if (pid == self->pid && self->ended == 0)
      note_end (self, status);
}

static void
advance (BjSupervisor *self)
{
  int64_t now = bj_now ();

  if (self->stage == BJ_STAGE_RUNNING && self->ended == 0 && now >= self->deadline)
    {
      self->flags |= BJ_RUN_TIMED_OUT;
      next_stage (self, BJ_STAGE_ASKED);
    }
  else if (self->stage == BJ_STAGE_ASKED && now >= self->stage_since + GRACE)
    next_stage (self, BJ_STAGE_KILLED);
  else if (self->stage == BJ_STAGE_KILLED)
    bj_tree_signal (SIGKILL);
}

static bool
is_pending (const BjStream *stream)
{
  return stream->sink->pending != NULL && stream->sink->pending (stream->sink);
}

static bool
is_drained (const BjSupervisor *self)
{
  if (is_pending (&self->out) || is_pending (&self->err))
    return false;
  if (self->out.fd < 0 && self->err.fd < 0)
    return true;
  return bj_now () >= self->ended + LINGER && self->out.owed == 0 && self->err.owed == 0;
}

static bool
is_finished (const BjSupervisor *self)
{
  int64_t now = bj_now ();

  if (self->stage == BJ_STAGE_RUNNING)
    return self->ended != 0
           && (is_drained (self) || (now >= self->deadline && now >= self->ended + DELIVER_LIMIT));
  if (self->stage == BJ_STAGE_KILLED && now >= self->stage_since + DELIVER_LIMIT)
    return true;
  if (self->ended == 0 || !is_drained (self))
    return self->stage == BJ_STAGE_KILLED && self->ended == 0 && now >= self->stage_since + KILL_LIMIT;
  return bj_tree_signal (0) == 0 || (self->stage == BJ_STAGE_KILLED && now >= self->stage_since + KILL_LIMIT);
}

static void
drop_unwanted (BjStream *stream)
{
  if (stream->fd >= 0 && stream->sink->closed != NULL && stream->sink->closed (stream->sink))
    close_stream (stream);
}

/* How long nothing needs to be looked at, in milliseconds. */
static int
idle_time (const BjSupervisor *self)
{
  int64_t left = self->deadline - bj_now ();

  if (self->ended != 0 || self->stage != BJ_STAGE_RUNNING)
    return 10;
  return left <= 0 ? 0 : (int) (left / MSEC) + 1;
}

/* What to wait for: output, or that the sink takes some, or that nobody wants it any more. */
static void
add_stream (const BjStream *stream, struct pollfd fds[2])
{
  bool pending = is_pending (stream);

  fds[0] = (struct pollfd) { pending ? -1 : stream->fd, POLLIN, 0 };
  fds[1] = (struct pollfd) { pending || stream->fd >= 0 ? stream->sink->fd : -1, pending ? POLLOUT : 0, 0 };
}

void
bj_supervisor_run (BjSupervisor *self)
{
  while (!is_finished (self))
    {
      struct pollfd fds[5] = { { self->signals, POLLIN, 0 } };

      drop_unwanted (&self->out);
      drop_unwanted (&self->err);
      add_stream (&self->out, fds + 1);
      add_stream (&self->err, fds + 3);
      if (poll (fds, 5, idle_time (self)) < 0 && errno != EINTR)
        return;
      if (fds[1].revents != 0)
        take_output (&self->out);
      if (fds[3].revents != 0)
        take_output (&self->err);
      if (fds[0].revents != 0)
        take_signals (self);
      advance (self);
    }
}

void
bj_supervisor_leave_drainer (BjSupervisor *self)
{
  char buffer[4096];
  struct pollfd fds[2] = { { self->out.fd, POLLIN, 0 }, { self->err.fd, POLLIN, 0 } };

  if ((self->out.fd < 0 && self->err.fd < 0) || fork () != 0)
    return;
  setsid ();
  for (int fd = 0; fd < 1024; fd++)
    if (fd != self->out.fd && fd != self->err.fd)
      close (fd);
  while ((fds[0].fd >= 0 || fds[1].fd >= 0) && (poll (fds, 2, -1) >= 0 || errno == EINTR))
    for (int i = 0; i < 2; i++)
      if (fds[i].revents != 0 && read (fds[i].fd, buffer, sizeof buffer) <= 0)
        fds[i].fd = -1;
  _exit (0);
}
