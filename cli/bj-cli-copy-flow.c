/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-copy-flow.h"

#include "bj-fd.h"

#include <errno.h>
#include <glib-unix.h>
#include <poll.h>
#include <sys/eventfd.h>

#define BLOCK (256u << 10)
#define HEARD_MAX 4096u

struct _BjFlow
{
  BjFd from;
  BjFd to;
  BjFd stop; /* eventfd */
  GThread *thread;
  GMutex lock; /* guards the three below */
  gboolean done;
  gboolean broken;
  guint64 bytes;
};

static void
note (BjFlow *self, gboolean done, gboolean broken, gsize bytes)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->done = done;
  self->broken = broken;
  self->bytes += bytes;
}

/* Returns: whether it may go on: nobody said stop */
static gboolean
wait_for (BjFlow *self, int fd, short events)
{
  struct pollfd fds[2] = { { fd, events, 0 }, { self->stop, POLLIN, 0 } };

  return (poll (fds, 2, -1) > 0 || errno == EINTR) && fds[1].revents == 0;
}

/* Returns: whether the other side took all */
static gboolean
hand_on (BjFlow *self, const guint8 *data, gsize length)
{
  while (length > 0)
    {
      gssize n = write (self->to, data, length);

      if (n < 0 && errno != EAGAIN && errno != EINTR)
        {
          note (self, FALSE, TRUE, 0);
          return FALSE;
        }
      if (n > 0)
        {
          note (self, FALSE, FALSE, (gsize) n);
          data += n;
          length -= (gsize) n;
        }
      else if (!wait_for (self, self->to, POLLOUT))
        return FALSE;
    }
  return TRUE;
}

static gpointer
run_flow (gpointer data)
{
  BjFlow *self = data;
  g_autofree guint8 *block = g_malloc (BLOCK);
  gboolean on = TRUE;

  while (on && wait_for (self, self->from, POLLIN))
    {
      gssize n = read (self->from, block, BLOCK);

      on = n > 0 ? hand_on (self, block, (gsize) n) : n < 0 && (errno == EAGAIN || errno == EINTR);
    }
  bj_fd_clear (&self->from);
  bj_fd_clear (&self->to);
  g_mutex_lock (&self->lock);
  self->done = TRUE;
  g_mutex_unlock (&self->lock);
  g_main_context_wakeup (NULL);
  return NULL;
}

BjFlow *
bj_flow_new (int from, int to)
{
  BjFlow *self = g_new0 (BjFlow, 1);

  self->from = from;
  self->to = to;
  self->stop = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  g_mutex_init (&self->lock);
  g_unix_set_fd_nonblocking (from, TRUE, NULL);
  g_unix_set_fd_nonblocking (to, TRUE, NULL);
  self->thread = g_thread_new ("copy", run_flow, self);
  return self;
}

void
bj_flow_stop (BjFlow *self)
{
  const guint64 one = 1;

  if (write (self->stop, &one, sizeof one) < 0)
    g_debug ("Stopping a flow: %s", g_strerror (errno));
}

void
bj_flow_free (BjFlow *self)
{
  bj_flow_stop (self);
  g_thread_join (self->thread);
  bj_fd_clear (&self->stop);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gboolean
bj_flow_is_done (BjFlow *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->done;
}

gboolean
bj_flow_is_broken (BjFlow *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->broken;
}

guint64
bj_flow_get_bytes (BjFlow *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->bytes;
}

struct _BjHeard
{
  gatomicrefcount ref_count; /* its thread has one */
  BjFd from;
  GThread *thread; /* NULL once it was joined */
  GString *text;   /* the thread's until it was joined */
};

static void
heard_unref (BjHeard *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  g_string_free (self->text, TRUE);
  g_free (self);
}

static gpointer
run_heard (gpointer data)
{
  BjHeard *self = data;
  char block[4096];
  gssize n;

  while ((n = read (self->from, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
    if (n > 0)
      g_string_append_len (self->text, block, (gssize) MIN ((gsize) n, HEARD_MAX - self->text->len));
  bj_fd_clear (&self->from);
  heard_unref (self);
  return NULL;
}

BjHeard *
bj_heard_new (int from)
{
  BjHeard *self = g_new0 (BjHeard, 1);

  g_atomic_ref_count_init (&self->ref_count);
  g_atomic_ref_count_inc (&self->ref_count);
  self->from = from;
  self->text = g_string_new (NULL);
  self->thread = g_thread_new ("heard", run_heard, self);
  return self;
}

const char *
bj_heard_finish (BjHeard *self)
{
  g_thread_join (g_steal_pointer (&self->thread));
  return self->text->str;
}

void
bj_heard_free (BjHeard *self)
{
  if (self->thread != NULL)
    g_thread_unref (self->thread);
  heard_unref (self);
}
