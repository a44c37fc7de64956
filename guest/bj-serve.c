/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_PER_CALL (1 + BJ_SERVE_STREAMS)

typedef struct
{
  int port;
  int epoll;   /* tells of changes of the port, once each: a port without a host would be "ready" for ever */
  int signals; /* signalfd */
  char folder[128]; /* the port's in /sys; empty: standard input */
  bool readable;
  bool writable;
  bool gone;    /* the port */
  bool greeted; /* a HELLO came, and nothing wrong since */
  bool owes_ok;
  bool owes_restart;
  bool owes_pong;
  uint8_t nonce[BJ_LANE_NONCE_SIZE];
  size_t in_length;
  size_t out_length; /* of a frame the port has not taken yet */
  unsigned turn;     /* whose call may send next */
  unsigned n_slots;  /* calls[] beyond were never used */
  BjServeCall calls[BJ_LANE_CALLS];
  uint8_t in[BJ_LANE_FRAME_MAX];
  uint8_t out[BJ_LANE_FRAME_MAX];
} BjServe;

static void
drop_calls (BjServe *self)
{
  for (unsigned i = 0; i < self->n_slots; i++)
    if (self->calls[i].id != 0)
      bj_serve_call_drop (&self->calls[i]);
  self->n_slots = 0;
}

/* The host has gone, or what it says makes no sense: everything before the next HELLO is void. */
static void
lose_host (BjServe *self)
{
  drop_calls (self);
  self->greeted = self->owes_ok = self->owes_pong = false;
  self->owes_restart = true;
}

static BjServeCall *
find_call (BjServe *self, uint32_t id)
{
  for (unsigned i = 0; i < self->n_slots; i++)
    if (self->calls[i].id == id)
      return &self->calls[i];
  return NULL;
}

static bool
take_call (BjServe *self, uint32_t id, const uint8_t *payload, size_t length)
{
  const uint8_t *end = memchr (payload, '\0', length < BJ_LANE_MODE_MAX + 1 ? length : BJ_LANE_MODE_MAX + 1);
  BjServeCall *call;
  size_t used;

  if (id == 0 || end == NULL || find_call (self, id) != NULL)
    return false;
  call = find_call (self, 0);
  if (call == NULL && self->n_slots == BJ_LANE_CALLS)
    return false;
  if (call == NULL)
    call = &self->calls[self->n_slots++];
  bj_serve_call_start (call, id, (const char *) payload);
  used = (size_t) (end - payload) + 1;
  return bj_serve_call_put (call, end + 1, length - used);
}

static bool
take_credit (BjServeCall *call, uint16_t type, const uint8_t *payload, size_t length)
{
  BjLaneCredit credit;
  unsigned stream;

  if (length != sizeof credit)
    return false;
  memcpy (&credit, payload, sizeof credit);
  if (credit.stream != BJ_LANE_OUT && credit.stream != BJ_LANE_ERR)
    return false;
  stream = credit.stream == BJ_LANE_OUT ? BJ_SERVE_OUT : BJ_SERVE_ERR;
  if (type == BJ_LANE_CLOSE)
    bj_serve_call_close (call, stream);
  else if (credit.bytes > BJ_LANE_WINDOW - call->streams[stream].credit)
    return false;
  else
    call->streams[stream].credit += credit.bytes;
  return true;
}

/* A call that the host still talks to may have ended by now. */
static bool
take_for_call (BjServeCall *call, const BjLaneHead *head, const uint8_t *payload)
{
  if (call == NULL)
    return true;
  switch (head->type)
    {
    case BJ_LANE_DATA:
      return bj_serve_call_put (call, payload, head->length);
    case BJ_LANE_END:
      bj_serve_call_end (call);
      return true;
    case BJ_LANE_STOP:
      bj_serve_call_stop (call);
      return true;
    case BJ_LANE_CLOSE:
    case BJ_LANE_CREDIT:
      return take_credit (call, head->type, payload, head->length);
    default:
      return false;
    }
}

static bool
take_frame (BjServe *self, const BjLaneHead *head, const uint8_t *payload)
{
  switch (head->type)
    {
    case BJ_LANE_HELLO:
      if (head->length != BJ_LANE_NONCE_SIZE)
        return false;
      drop_calls (self);
      memcpy (self->nonce, payload, BJ_LANE_NONCE_SIZE);
      self->greeted = self->owes_ok = true;
      self->owes_restart = self->owes_pong = false;
      return true;
    case BJ_LANE_PING:
      self->owes_pong = true;
      return true;
    case BJ_LANE_CALL:
      return take_call (self, head->id, payload, head->length);
    default:
      return head->id != 0 && take_for_call (find_call (self, head->id), head, payload);
    }
}

/* Where the next HELLO starts, or may: at the end of what has come. */
static size_t
find_hello (const BjServe *self)
{
  const BjLaneHead hello = { BJ_LANE_MAGIC, BJ_LANE_HELLO, BJ_LANE_NONCE_SIZE, 0 };
  const uint8_t *found = memmem (self->in, self->in_length, &hello, sizeof hello);

  if (found != NULL)
    return (size_t) (found - self->in);
  return self->in_length < sizeof hello ? 0 : self->in_length - (sizeof hello - 1);
}

static void
take_frames (BjServe *self)
{
  BjLaneHead head;
  size_t at = 0;

  while (self->in_length - at >= sizeof head)
    {
      memcpy (&head, self->in + at, sizeof head);
      if (!self->greeted && (head.magic != BJ_LANE_MAGIC || head.type != BJ_LANE_HELLO || head.id != 0))
        {
          memmove (self->in, self->in + at, self->in_length -= at);
          at = find_hello (self);
          if (self->in_length - at < sizeof head)
            break;
          continue;
        }
      if (head.magic != BJ_LANE_MAGIC || head.length > BJ_LANE_PAYLOAD_MAX)
        {
          lose_host (self);
          at++;
          continue;
        }
      if (self->in_length - at < sizeof head + head.length)
        break;
      if (!take_frame (self, &head, self->in + at + sizeof head))
        lose_host (self);
      at += sizeof head + head.length;
    }
  memmove (self->in, self->in + at, self->in_length -= at);
}

static void
read_port (BjServe *self)
{
  while (self->readable)
    {
      ssize_t n = read (self->port, self->in + self->in_length, sizeof self->in - self->in_length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        {
          self->readable = false;
          self->gone = n < 0 && errno != EAGAIN;
          return;
        }
      self->in_length += (size_t) n;
      take_frames (self);
    }
}

static bool
next_frame (BjServe *self)
{
  BjLaneHead head = { BJ_LANE_MAGIC, 0, 0, 0 };
  uint8_t *payload = self->out + sizeof head;
  bool found = true;

  if (self->owes_restart)
    head.type = BJ_LANE_RESTART;
  else if (self->owes_ok)
    {
      head.type = BJ_LANE_OK;
      head.length = BJ_LANE_NONCE_SIZE;
      memcpy (payload, self->nonce, BJ_LANE_NONCE_SIZE);
    }
  else if (self->owes_pong)
    head.type = BJ_LANE_PONG;
  if (head.type == BJ_LANE_RESTART)
    self->owes_restart = false;
  else if (head.type == BJ_LANE_OK)
    self->owes_ok = false;
  else if (head.type == BJ_LANE_PONG)
    self->owes_pong = false;
  else
    {
      found = false;
      for (unsigned i = 0; !found && i < self->n_slots; i++)
        {
          BjServeCall *call = &self->calls[++self->turn % self->n_slots];

          found = call->id != 0 && bj_serve_call_next (call, &head, payload);
        }
    }
  memcpy (self->out, &head, sizeof head);
  self->out_length = found ? sizeof head + head.length : 0;
  return found;
}

/* The port takes a frame whole or not at all; anything else would have to be put together again. */
static void
write_port (BjServe *self)
{
  while (self->writable && (self->out_length > 0 || next_frame (self)))
    {
      ssize_t n = write (self->port, self->out, self->out_length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        {
          self->writable = false;
          self->gone = n < 0 && errno != EAGAIN;
          return;
        }
      self->out_length -= (size_t) n;
      memmove (self->out, self->out + n, self->out_length);
    }
}

static void
reap (BjServe *self)
{
  struct signalfd_siginfo info;
  int status;
  pid_t pid;

  while (read (self->signals, &info, sizeof info) == sizeof info)
    continue;
  while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
    for (unsigned i = 0; i < self->n_slots; i++)
      if (self->calls[i].id != 0 && self->calls[i].pid == pid)
        {
          self->calls[i].pid = 0;
          self->calls[i].status = WIFEXITED (status) ? WEXITSTATUS (status) : -1;
        }
}

/* What the last poll said of the calls' pipes. */
static void
note_ready (BjServe *self, const struct pollfd *fds)
{
  for (unsigned i = 0; i < self->n_slots; i++, fds += FDS_PER_CALL)
    {
      BjServeCall *call = &self->calls[i];

      if (call->id == 0)
        continue;
      for (int k = 0; k < BJ_SERVE_STREAMS; k++)
        if (fds[1 + k].revents != 0)
          call->streams[k].ready = true;
      if (fds[0].revents != 0)
        bj_serve_call_flush (call);
    }
}

static nfds_t
list_fds (const BjServe *self, struct pollfd *fds)
{
  fds[0] = (struct pollfd) { self->epoll, POLLIN, 0 };
  fds[1] = (struct pollfd) { self->signals, POLLIN, 0 };
  fds += 2;
  for (unsigned i = 0; i < self->n_slots; i++, fds += FDS_PER_CALL)
    {
      const BjServeCall *call = &self->calls[i];
      bool used = call->id != 0;

      fds[0] = (struct pollfd) { used && bj_serve_call_is_waiting (call) ? call->in : -1, POLLOUT, 0 };
      for (int k = 0; k < BJ_SERVE_STREAMS; k++)
        fds[1 + k] = (struct pollfd) { used && !call->streams[k].ready ? call->streams[k].fd : -1, POLLIN, 0 };
    }
  return 2 + self->n_slots * FDS_PER_CALL;
}

static void
look_at_port (BjServe *self)
{
  struct epoll_event event;

  if (epoll_wait (self->epoll, &event, 1, 0) != 1)
    return;
  self->readable = self->writable = true;
  if ((event.events & (EPOLLHUP | EPOLLERR)) == 0)
    return;
  lose_host (self);
  self->out_length = 0;
  self->gone = self->folder[0] == '\0' || access (self->folder, F_OK) < 0;
}

static void
serve_port (BjServe *self)
{
  static struct pollfd fds[2 + BJ_LANE_CALLS * FDS_PER_CALL];

  while (!self->gone)
    {
      nfds_t n = list_fds (self, fds);

      if (poll (fds, n, -1) < 0)
        continue;
      note_ready (self, fds + 2);
      if (fds[1].revents != 0)
        reap (self);
      if (fds[0].revents != 0)
        look_at_port (self);
      read_port (self);
      write_port (self);
    }
  lose_host (self);
}

static bool
watch_signals (BjServe *self)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigprocmask (SIG_BLOCK, &set, NULL);
  signal (SIGPIPE, SIG_IGN);
  self->signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  return self->signals >= 0 && self->epoll >= 0;
}

/* A port is plugged anew when the host thinks that we hang. */
int
bj_serve (const char *name)
{
  static BjServe self;
  bool plain = strcmp (name, "-") == 0;

  prctl (PR_SET_NAME, "belljar-lane");
  if (!watch_signals (&self))
    return 1;
  do
    {
      struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

      self.port = plain ? fcntl (0, F_DUPFD_CLOEXEC, 3) : bj_serve_open_port (name, self.folder, sizeof self.folder);
      if (self.port < 0 || fcntl (self.port, F_SETFL, O_RDWR | O_NONBLOCK) < 0
          || epoll_ctl (self.epoll, EPOLL_CTL_ADD, self.port, &event) < 0)
        return 1;
      self.in_length = self.out_length = 0;
      self.gone = false;
      self.owes_restart = true;
      serve_port (&self);
      close (self.port);
    }
  while (!plain);
  return 0;
}
