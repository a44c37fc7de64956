/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-modes.h"
#include "bj-supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEND_LIMIT_US 5000000 /* for a command that does not read its input */
#define KILL_LIMIT_US 8000000

/* One background command is a folder DIR/bg-ID: "ring" (BjRing, locked by its supervisor) and "in" (a FIFO). */
typedef struct
{
  char ring[320];
  char in[320];
} BjPaths;

static void
make_paths (BjPaths *paths, const char *dir, uint32_t id)
{
  snprintf (paths->ring, sizeof paths->ring, "%.256s/bg-%u/ring", dir, id);
  snprintf (paths->in, sizeof paths->in, "%.256s/bg-%u/in", dir, id);
}

static int
finish_unknown (void)
{
  BjReply reply;

  bj_reply_init (&reply);
  reply.answer.flags = BJ_RUN_UNKNOWN;
  return bj_reply_print (&reply);
}

static BjRing *
map_ring (int fd)
{
  BjRing *ring = mmap (NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

  return ring == MAP_FAILED ? NULL : ring;
}

/* Returns the id, or 0 if there is no room. */
static uint32_t
make_folder (const char *dir)
{
  char path[320];

  for (uint32_t id = 1; id <= BJ_RUN_IDS; id++)
    {
      snprintf (path, sizeof path, "%.256s/bg-%u", dir, id);
      if (mkdir (path, 0700) == 0)
        return id;
      if (errno != EEXIST)
        return 0;
    }
  return 0;
}

static void
note_result (BjRing *ring, const BjSupervisor *supervisor)
{
  ring->exit = supervisor->exit;
  ring->signal = supervisor->signal;
  ring->flags = supervisor->flags;
  ring->duration_us = (uint64_t) (bj_now () - supervisor->started);
  __atomic_store_n (&ring->running, 0, __ATOMIC_RELEASE);
}

/* The supervisor of one background command; it holds nothing of the agent's. */
static int
supervise (const BjRequest *request, BjRing *ring, int in)
{
  BjRingSink sink;
  BjSupervisor supervisor = { .out = { .sink = &sink.sink }, .err = { .sink = &sink.sink } };
  int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

  setsid ();
  for (int fd = 0; fd < 3; fd++)
    dup2 (null, fd);
  ring->pid = getpid ();
  bj_ring_sink_init (&sink, ring);
  if (!bj_supervisor_start (&supervisor, request, in, true))
    supervisor.exit = 126;
  else
    bj_supervisor_run (&supervisor);
  note_result (ring, &supervisor);
  bj_supervisor_leave_drainer (&supervisor);
  return 0;
}

int
bj_mode_start (const BjRequest *request)
{
  BjReply reply;
  BjPaths paths;
  BjRing *ring;
  uint32_t id;
  int fd;
  int in;

  mkdir (request->dir, 0700);
  id = make_folder (request->dir);
  if (id == 0)
    return finish_unknown ();
  make_paths (&paths, request->dir, id);
  fd = open (paths.ring, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || flock (fd, LOCK_EX | LOCK_NB) < 0 || ftruncate (fd, sizeof *ring) < 0 || mkfifo (paths.in, 0600) < 0)
    return 1;
  /* Read and write: the command's input does not end when a sender goes. */
  in = open (paths.in, O_RDWR | O_CLOEXEC);
  ring = map_ring (fd);
  if (in < 0 || ring == NULL)
    return 1;
  ring->running = 1;
  ring->exit = -1;

  switch (fork ())
    {
    case -1:
      return 1;
    case 0:
      return supervise (request, ring, in);
    default:
      bj_reply_init (&reply);
      reply.answer.id = id;
      reply.answer.flags = BJ_RUN_RUNNING;
      return bj_reply_print (&reply);
    }
}

/* A supervisor that was killed holds no lock any more. */
static void
notice_dead_supervisor (int fd, BjRing *ring)
{
  if (!ring->running || flock (fd, LOCK_EX | LOCK_NB) < 0)
    return;
  if (ring->running)
    {
      ring->signal = SIGKILL;
      ring->running = 0;
    }
  flock (fd, LOCK_UN);
}

static BjRing *
open_ring (const BjRequest *request, int *fd)
{
  BjPaths paths;
  struct stat info;

  make_paths (&paths, request->dir, request->id);
  *fd = open (paths.ring, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (*fd < 0 || fstat (*fd, &info) < 0 || !S_ISREG (info.st_mode) || info.st_size != sizeof (BjRing))
    return NULL;
  return map_ring (*fd);
}

static void
nap (void)
{
  const struct timespec time = { .tv_nsec = 20000000 };

  nanosleep (&time, NULL);
}

int
bj_mode_poll (const BjRequest *request)
{
  static uint8_t data[BJ_RUN_POLL_MAX];
  int64_t deadline = bj_now () + (int64_t) request->wait_s * 1000000;
  BjReply reply;
  int fd;
  BjRing *ring = open_ring (request, &fd);

  if (ring == NULL)
    return finish_unknown ();
  for (;;)
    {
      notice_dead_supervisor (fd, ring);
      if (!ring->running || ring->taken < ring->total || bj_now () >= deadline)
        break;
      nap ();
    }
  bj_reply_init (&reply);
  reply.answer.id = request->id;
  reply.answer.flags = ring->flags;
  reply.answer.exit = ring->exit;
  reply.answer.signal = ring->signal;
  reply.answer.duration_us = ring->duration_us;
  /* Still "running" while there is more to fetch, or else the caller would stop too soon. */
  if (ring->running)
    reply.answer.flags |= BJ_RUN_RUNNING;
  reply.answer.out_head = (uint32_t) bj_ring_take (ring, data, sizeof data, &reply.answer.dropped);
  if (ring->taken < ring->total)
    reply.answer.flags |= BJ_RUN_RUNNING;
  reply.answer.out_total = ring->total;
  reply.pieces[0] = data;
  return bj_reply_print (&reply);
}

static bool
wait_writable (int fd, int64_t deadline)
{
  struct pollfd poll_fd = { fd, POLLOUT, 0 };
  int64_t left = (deadline - bj_now ()) / 1000;

  return left > 0 && poll (&poll_fd, 1, (int) left) > 0;
}

/* Copies standard input to the command's. Returns the bytes that went through. */
static uint64_t
copy_input (int fd)
{
  int64_t deadline = bj_now () + SEND_LIMIT_US;
  uint8_t buffer[16 << 10];
  uint64_t total = 0;
  ssize_t n;

  while ((n = read (0, buffer, sizeof buffer)) > 0)
    for (ssize_t done = 0; done < n;)
      {
        ssize_t written = write (fd, buffer + done, (size_t) (n - done));

        if (written < 0 && (errno != EAGAIN || !wait_writable (fd, deadline)))
          return total;
        if (written > 0)
          {
            done += written;
            total += (uint64_t) written;
          }
      }
  return total;
}

int
bj_mode_send (const BjRequest *request)
{
  BjPaths paths;
  BjReply reply;
  int ring_fd;
  BjRing *ring = open_ring (request, &ring_fd);
  int fd;

  if (ring == NULL)
    return finish_unknown ();
  bj_reply_init (&reply);
  notice_dead_supervisor (ring_fd, ring);
  make_paths (&paths, request->dir, request->id);
  fd = ring->running ? open (paths.in, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW) : -1;
  if (fd >= 0)
    {
      signal (SIGPIPE, SIG_IGN);
      reply.answer.flags = BJ_RUN_RUNNING;
      reply.answer.out_total = copy_input (fd);
    }
  return bj_reply_print (&reply);
}

int
bj_mode_kill (const BjRequest *request)
{
  int64_t deadline = bj_now () + KILL_LIMIT_US;
  BjReply reply;
  int fd;
  BjRing *ring = open_ring (request, &fd);

  if (ring == NULL)
    return finish_unknown ();
  notice_dead_supervisor (fd, ring);
  if (ring->running && ring->pid > 1)
    kill (ring->pid, SIGTERM);
  while (ring->running && bj_now () < deadline)
    {
      nap ();
      notice_dead_supervisor (fd, ring);
    }
  bj_reply_init (&reply);
  reply.answer.exit = ring->exit;
  reply.answer.signal = ring->signal;
  if (ring->running)
    reply.answer.flags = BJ_RUN_RUNNING;
  return bj_reply_print (&reply);
}
