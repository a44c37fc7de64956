/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-child"

#include "bj-child.h"

#include "bj-bus.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
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

BjChild *
bj_child_start (const char *const *argv, const uid_t *uid, int second_fd, GError **error)
{
  g_autoptr(BjChild) self = g_new0 (BjChild, 1);
  const struct timeval deadline = { .tv_sec = HANDSHAKE_MAX_S };
  const struct timeval forever = { 0 };
  int pair[2];

  g_mutex_init (&self->lock);
  self->name = g_path_get_basename (argv[0]);
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    {
      bj_fd_set_io_error (error, errno, "Making a socket pair");
      return NULL;
    }
  setsockopt (pair[0], SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
  if (!spawn (self, argv, uid, pair[1], second_fd, error))
    {
      close (pair[0]);
      close (pair[1]);
      return NULL;
    }
  close (pair[1]);
  self->connection = bj_bus_peer_from_fd (pair[0], TRUE, error);
  if (self->connection == NULL)
    {
      g_prefix_error (error, "Starting %s: ", self->name);
      bj_child_stop (self);
      return NULL;
    }
  setsockopt (pair[0], SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
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
  g_autoptr(GMutexLocker) locker = g_mutex_locker_new (&self->lock);

  return !reap (self);
}

void
bj_child_stop (BjChild *self)
{
  g_autoptr(GMutexLocker) locker = g_mutex_locker_new (&self->lock);

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
