/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-child"

#include "bj-child.h"

#include "bj-bus.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define HANDSHAKE_MAX_S 20
#define TERM_GRACE_MS 2000

struct _BjChild
{
  GPid pid; /* 0 when reaped */
  char *name;
  GMutex lock;
  GDBusConnection *connection; /* (owned) */
};

/* Runs between fork and exec: only async-signal-safe calls. No PR_SET_PDEATHSIG here: it would follow the thread that
 * forked, not the daemon. The child ends when its fd 3 closes. */
static void
child_setup (gpointer data)
{
  const uid_t *uid = data;

  if (uid == NULL)
    return;
  if (setgroups (0, NULL) < 0 || setresgid (*uid, *uid, *uid) < 0 || setresuid (*uid, *uid, *uid) < 0)
    _exit (127);
}

static gboolean
spawn (BjChild *self, const char *const *argv, const uid_t *uid, int first, int second, GError **error)
{
  const int sources[] = { first, second };
  const int targets[] = { 3, 4 };
  const GSpawnFlags flags = G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH;

  return g_spawn_async_with_pipes_and_fds (NULL, argv, NULL, flags, child_setup, (gpointer) uid, -1, -1, -1, sources,
                                           targets, second >= 0 ? 2 : 1, &self->pid, NULL, NULL, NULL, error);
}

/* GLib's sockets know no SO_RCVTIMEO, and a timeout of their own would stay with the connection: so a thread looks at the clock. */
typedef struct
{
  GMutex lock;
  GCond changed;
  gboolean done;
  int fd; /* the same socket, our own descriptor */
} BjHandshake;

static gpointer
cut_off_late (gpointer data)
{
  BjHandshake *handshake = data;
  const gint64 until = g_get_monotonic_time () + HANDSHAKE_MAX_S * G_USEC_PER_SEC;
  gboolean in_time = TRUE;

  g_mutex_lock (&handshake->lock);
  while (!handshake->done && in_time)
    in_time = g_cond_wait_until (&handshake->changed, &handshake->lock, until);
  if (!handshake->done)
    shutdown (handshake->fd, SHUT_RDWR);
  g_mutex_unlock (&handshake->lock);
  return NULL;
}

/* @fd: (transfer full) */
static GDBusConnection *
shake_hands (int fd, GError **error)
{
  g_auto(BjFd) own = fcntl (fd, F_DUPFD_CLOEXEC, 0);
  BjHandshake handshake = { .fd = own };
  GDBusConnection *connection;
  GThread *thread;

  if (own < 0)
    {
      bj_fd_set_io_error (error, errno, "Duplicating a socket");
      close (fd);
      return NULL;
    }
  g_mutex_init (&handshake.lock);
  g_cond_init (&handshake.changed);
  thread = g_thread_new ("bj-handshake", cut_off_late, &handshake);
  connection = bj_bus_peer_from_fd (fd, TRUE, error);
  g_mutex_lock (&handshake.lock);
  handshake.done = TRUE;
  g_cond_signal (&handshake.changed);
  g_mutex_unlock (&handshake.lock);
  g_thread_join (thread);
  g_mutex_clear (&handshake.lock);
  g_cond_clear (&handshake.changed);
  return connection;
}

BjChild *
bj_child_start (const char *const *argv, const uid_t *uid, int second_fd, GError **error)
{
  g_autoptr(BjChild) self = g_new0 (BjChild, 1);
  int pair[2];

  g_mutex_init (&self->lock);
  self->name = g_path_get_basename (argv[0]);
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    {
      bj_fd_set_io_error (error, errno, "Making a socket pair");
      return NULL;
    }
  if (!spawn (self, argv, uid, pair[1], second_fd, error))
    {
      close (pair[0]);
      close (pair[1]);
      return NULL;
    }
  close (pair[1]);
  self->connection = shake_hands (pair[0], error);
  if (self->connection == NULL)
    {
      g_prefix_error (error, "Starting %s: ", self->name);
      bj_child_stop (self);
      return NULL;
    }
  g_dbus_connection_set_exit_on_close (self->connection, FALSE);
  return g_steal_pointer (&self);
}

GDBusConnection *
bj_child_get_connection (BjChild *self)
{
  return self->connection;
}

/* Call with the lock held. */
static gboolean
reap (BjChild *self)
{
  if (self->pid != 0 && waitpid (self->pid, NULL, WNOHANG) != 0)
    self->pid = 0;
  return self->pid == 0;
}

gboolean
bj_child_is_running (BjChild *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return !reap (self);
}

void
bj_child_stop (BjChild *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->connection != NULL)
    g_dbus_connection_close_sync (self->connection, NULL, NULL);
  if (reap (self))
    return;
  kill (self->pid, SIGTERM);
  for (guint waited = 0; waited < TERM_GRACE_MS; waited += 5)
    {
      if (reap (self))
        return;
      g_usleep (5000);
    }
  g_message ("%s does not end, killing it", self->name);
  kill (self->pid, SIGKILL);
  waitpid (self->pid, NULL, 0);
  self->pid = 0;
}

void
bj_child_free (BjChild *self)
{
  if (self->pid != 0)
    bj_child_stop (self);
  g_clear_object (&self->connection);
  g_mutex_clear (&self->lock);
  g_free (self->name);
  g_free (self);
}
