/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-lane-private.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MSEC 1000
#define RETRY_MS 200                             /* between two tries to connect */
#define HELLO_FIRST (500 * MSEC)                 /* until HELLO is said again, doubled each time */
#define HELLO_LAST (8000 * MSEC)
#define PING_AFTER (2 * G_USEC_PER_SEC)          /* of silence while calls run */
#define SILENCE_LIMIT (18 * G_USEC_PER_SEC)      /* after a ping: an agent that was stopped may come back */
#define BROKEN_PAUSE (200 * MSEC)                /* after a frame that is none */
#define RUBBISH_MAX (1u << 20)                   /* dropped without a pause */
#define RUBBISH_PAUSE (50 * MSEC)

BjLane *
bj_lane_new (const char *path, BjLaneIsPaused is_paused, gpointer data)
{
  BjLane *self = g_new0 (BjLane, 1);

  self->path = g_strdup (path);
  self->is_paused = is_paused;
  self->data = data;
  self->fd = -1;
  self->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  self->out = g_byte_array_new ();
  self->calls = g_hash_table_new (NULL, NULL);
  g_mutex_init (&self->lock);
  g_cond_init (&self->opened);
  return self;
}

void
bj_lane_free (BjLane *self)
{
  bj_lane_stop (self);
  g_hash_table_unref (self->calls);
  g_byte_array_unref (self->out);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->opened);
  if (self->wake >= 0)
    close (self->wake);
  g_free (self->path);
  g_free (self);
}

static gboolean
try_to_connect (BjLane *self)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  if (strlen (self->path) >= sizeof address.sun_path)
    return FALSE;
  memcpy (address.sun_path, self->path, strlen (self->path));
  self->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (self->fd < 0)
    return FALSE;
  if (connect (self->fd, (const struct sockaddr *) &address, sizeof address) == 0)
    return TRUE;
  close (self->fd);
  self->fd = -1;
  return FALSE;
}

/* Whatever was said before is void. @padded: a server that waits for the rest of a frame gets it. */
static void
say_hello (BjLane *self, gboolean padded)
{
  static const guint8 padding[BJ_LANE_FRAME_MAX];
  guint8 nonce[BJ_LANE_NONCE_SIZE];

  if (getrandom (nonce, sizeof nonce, 0) != sizeof nonce)
    memset (nonce, (int) g_random_int_range (1, 255), sizeof nonce);
  self->open = FALSE;
  g_byte_array_set_size (self->out, 0);
  if (padded)
    g_byte_array_append (self->out, padding, sizeof padding);
  bj_lane_frame_append (self->out, BJ_LANE_HELLO, 0, nonce, sizeof nonce);
  bj_lane_parser_reset (&self->parser, nonce);
  self->greeted = g_get_monotonic_time ();
  self->pinged = 0;
}

static void
lose (BjLane *self, const char *reason)
{
  bj_lane_calls_lose (self, reason);
  self->patience = HELLO_FIRST;
  say_hello (self, TRUE);
}

static void
disconnect (BjLane *self)
{
  bj_lane_calls_lose (self, "the connection to its port was closed");
  self->open = FALSE;
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

static void
note_open (BjLane *self)
{
  self->open = TRUE;
  self->patience = HELLO_FIRST;
  self->rubbish = 0;
  g_cond_broadcast (&self->opened);
}

static gboolean
take_frame (BjLane *self, const BjLaneFrame *frame)
{
  switch (frame->type)
    {
    case BJ_LANE_OK:
      note_open (self);
      return TRUE;
    case BJ_LANE_PONG:
      return TRUE;
    case BJ_LANE_RESTART:
      lose (self, "its program was restarted while a command ran");
      return TRUE;
    default:
      return bj_lane_calls_take (self, frame);
    }
}

static void
take_frames (BjLane *self)
{
  BjLaneFrame frame;
  BjLaneParse parse;

  while ((parse = bj_lane_parser_next (&self->parser, &frame)) == BJ_LANE_PARSE_FRAME)
    if (!take_frame (self, &frame))
      {
        parse = BJ_LANE_PARSE_BAD;
        break;
      }
  if (parse != BJ_LANE_PARSE_BAD)
    return;
  lose (self, "its answer is malformed");
  self->quiet_until = g_get_monotonic_time () + BROKEN_PAUSE;
}

static void
receive (BjLane *self)
{
  gsize room;
  guint8 *data = bj_lane_parser_get_room (&self->parser, &room);
  gssize n = recv (self->fd, data, room, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0)
    {
      disconnect (self);
      return;
    }
  self->heard = g_get_monotonic_time ();
  self->pinged = 0;
  bj_lane_parser_add (&self->parser, (gsize) n);
  take_frames (self);
  if (self->open)
    return;
  self->rubbish += (gsize) n;
  if (self->rubbish < RUBBISH_MAX)
    return;
  self->rubbish = 0;
  self->quiet_until = self->heard + RUBBISH_PAUSE;
}

static void
transmit (BjLane *self)
{
  gssize n;

  if (self->fd < 0 || self->out->len == 0)
    return;
  n = send (self->fd, self->out->data, self->out->len, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n > 0)
    g_byte_array_remove_range (self->out, 0, (guint) n);
  else if (n < 0 && errno != EAGAIN && errno != EINTR)
    disconnect (self);
}

/* Until it has read our HELLO there is nothing to say: a guest that still starts reads it then. */
static gboolean
has_read_all (BjLane *self)
{
  int unread = 0;

  return self->out->len == 0 && ioctl (self->fd, SIOCOUTQ, &unread) == 0 && unread == 0;
}

/* Returns: milliseconds until there may be something to do without anything having come; -1: never */
static int
look_at_clock (BjLane *self, gboolean paused)
{
  gint64 now = g_get_monotonic_time ();
  gint64 next = -1;

  if (!self->open)
    {
      if (now >= self->greeted + self->patience)
        {
          if (!paused && has_read_all (self))
            say_hello (self, TRUE);
          self->greeted = now;
          self->patience = MIN (2 * self->patience, HELLO_LAST);
        }
      next = self->greeted + self->patience;
    }
  else if (g_hash_table_size (self->calls) > 0)
    {
      if (paused && self->pinged != 0)
        self->pinged = now;
      if (self->pinged == 0 && now >= self->heard + PING_AFTER)
        {
          bj_lane_frame_append (self->out, BJ_LANE_PING, 0, NULL, 0);
          self->pinged = now;
        }
      if (self->pinged != 0 && now >= self->pinged + SILENCE_LIMIT)
        lose (self, "it was silent for 20 seconds");
      next = self->pinged != 0 ? self->pinged + PING_AFTER : self->heard + PING_AFTER;
    }
  if (self->quiet_until > now && (next < 0 || self->quiet_until < next))
    next = self->quiet_until;
  return next < 0 ? -1 : (int) (MAX (next - now, 0) / MSEC) + 1;
}

/* A machine that is paused is silent without fault, and what is said to it piles up. */
static gboolean
is_excused (BjLane *self)
{
  gboolean due;

  g_mutex_lock (&self->lock);
  due = self->pinged != 0 || (!self->open && g_get_monotonic_time () >= self->greeted + self->patience);
  g_mutex_unlock (&self->lock);
  return due && self->is_paused (self->data);
}

static void
work (BjLane *self)
{
  gboolean paused = is_excused (self);
  struct pollfd fds[2] = { { self->wake, POLLIN, 0 }, { self->fd, 0, 0 } };
  guint64 count;
  int timeout;

  g_mutex_lock (&self->lock);
  timeout = look_at_clock (self, paused);
  transmit (self);
  if (self->fd >= 0 && self->out->len > 0)
    fds[1].events |= POLLOUT;
  g_mutex_unlock (&self->lock);
  if (g_get_monotonic_time () >= self->quiet_until)
    fds[1].events |= POLLIN;
  if (poll (fds, 2, timeout) <= 0)
    return;
  if (fds[0].revents != 0 && read (self->wake, &count, sizeof count) < 0)
    g_debug ("Waking up: %s", g_strerror (errno));
  g_mutex_lock (&self->lock);
  if ((fds[1].revents & POLLIN) != 0)
    receive (self);
  else if ((fds[1].revents & (POLLHUP | POLLERR)) != 0)
    disconnect (self);
  g_mutex_unlock (&self->lock);
}

static gboolean
is_stopping (BjLane *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->stopping;
}

static gpointer
run (gpointer data)
{
  BjLane *self = data;

  while (!is_stopping (self))
    {
      struct pollfd wake = { self->wake, POLLIN, 0 };
      guint64 count;

      if (self->fd >= 0)
        work (self);
      else if (try_to_connect (self))
        {
          g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

          self->patience = HELLO_FIRST;
          say_hello (self, FALSE);
        }
      else if (poll (&wake, 1, RETRY_MS) > 0 && read (self->wake, &count, sizeof count) < 0)
        g_debug ("Waking up: %s", g_strerror (errno));
    }
  g_mutex_lock (&self->lock);
  disconnect (self);
  g_mutex_unlock (&self->lock);
  return NULL;
}

void
bj_lane_start (BjLane *self)
{
  if (self->thread != NULL)
    return;
  self->stopping = FALSE;
  self->thread = g_thread_new ("lane", run, self);
}

void
bj_lane_stop (BjLane *self)
{
  if (self->thread == NULL)
    return;
  g_mutex_lock (&self->lock);
  self->stopping = TRUE;
  g_mutex_unlock (&self->lock);
  bj_lane_wake (self->wake);
  g_thread_join (g_steal_pointer (&self->thread));
}

gboolean
bj_lane_is_open (BjLane *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->open;
}

gboolean
bj_lane_wait_open (BjLane *self, gint64 deadline, GCancellable *cancellable)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  while (!self->open && !self->stopping && !g_cancellable_is_cancelled (cancellable)
         && g_get_monotonic_time () < deadline)
    g_cond_wait_until (&self->opened, &self->lock, MIN (deadline, g_get_monotonic_time () + RETRY_MS * MSEC));
  return self->open;
}
