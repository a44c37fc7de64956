/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-share.h"

#include "bj-engine.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define VIRTIOFSD "/usr/lib/qemu/virtiofsd"
/* Where the folder is mounted in the server's own mount namespace: any folder that exists everywhere. */
#define MOUNT_POINT "/tmp"
#define START_MS 5000
#define STOP_MS 5000

struct _BjShare
{
  pid_t pid;
};

/* What the child needs, prepared before the fork: after it only system calls are allowed. */
typedef struct
{
  int socket;
  int tree; /* a detached mount of the folder */
  int log;
  int null;
  int ready[2]; /* the child says that its namespace exists, and waits for its id maps */
  int go[2];
  char **argv;
} BjShareChild;

static gboolean
write_file_once (const char *path, const char *text, GError **error)
{
  g_auto(BjFd) fd = open (path, O_WRONLY | O_CLOEXEC);

  if (fd < 0 || write (fd, text, strlen (text)) != (gssize) strlen (text))
    return bj_fd_set_io_error (error, errno, "Writing %s", path);
  return TRUE;
}

/* Root of the guest is the owner; every other id gets one that nobody else on the host has. */
static gboolean
write_map (pid_t pid, const char *name, guint owner, guint slot, GError **error)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/%s", (int) pid, name);
  g_autofree char *map = g_strdup_printf ("0 %u 1\n1 %u 65535\n", owner, BJ_SHARE_UID_BASE + slot * 65536u + 1);

  return write_file_once (path, map, error);
}

static void G_GNUC_NORETURN
run_child (const BjShareChild *child)
{
  static char *const environ_of_child[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
  char byte = 0;
  sigset_t none;

  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  signal (SIGPIPE, SIG_DFL);
  setsid ();
  if (dup2 (child->null, 0) < 0 || dup2 (child->log, 1) < 0 || dup2 (child->log, 2) < 0)
    _exit (119);
  if (unshare (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0 || write (child->ready[1], "u", 1) != 1
      || read (child->go[0], &byte, 1) != 1)
    _exit (120);
  if (syscall (SYS_setgroups, 0, NULL) < 0 || syscall (SYS_setresgid, 0, 0, 0) < 0
      || syscall (SYS_setresuid, 0, 0, 0) < 0)
    _exit (121);
  if (mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
      || move_mount (child->tree, "", AT_FDCWD, MOUNT_POINT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
    _exit (122);
  if (dup2 (child->socket, 3) < 0 || syscall (SYS_close_range, 4u, ~0u, 0u) < 0)
    _exit (123);
  execve (child->argv[0], child->argv, environ_of_child);
  _exit (127);
}

/* The fd that the child moves to 3 must not be in the way of the others. */
static int
dup_high (int fd)
{
  return fcntl (fd, F_DUPFD_CLOEXEC, 10);
}

/* Of the fd, so that nobody can put a link in its place; without setuid programs and devices. */
static int
clone_tree (int dir_fd)
{
  struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
  g_auto(BjFd) tree = open_tree (dir_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

  if (tree < 0 || mount_setattr (tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
    return -1;
  return dup_high (tree);
}

static int
listen_at (const BjShareSpec *spec, GError **error)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  g_auto(BjFd) fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen (spec->socket) >= sizeof address.sun_path)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The path %s is too long for a socket: choose a shorter state folder",
                    spec->socket);
      return -1;
    }
  strncpy (address.sun_path, spec->socket, sizeof address.sun_path - 1);
  unlink (spec->socket);
  if (fd < 0 || bind (fd, (struct sockaddr *) &address, sizeof address) < 0 || listen (fd, 1) < 0
      || chmod (spec->socket, 0600) < 0 || lchown (spec->socket, spec->machine_uid, spec->machine_uid) < 0)
    {
      bj_fd_set_io_error (error, errno, "Listening at %s", spec->socket);
      return -1;
    }
  return dup_high (fd);
}

static gboolean
wait_for_child (int fd)
{
  struct pollfd poll_fd = { fd, POLLIN, 0 };
  char byte;

  return poll (&poll_fd, 1, START_MS) == 1 && read (fd, &byte, 1) == 1;
}

static gboolean
map_and_release (const BjShareSpec *spec, const BjShareChild *child, pid_t pid, GError **error)
{
  if (!wait_for_child (child->ready[0]))
    return bj_error_set (error, BJ_ERROR_FAILED, "The share's user namespace was not made: check that "
                         "/proc/sys/user/max_user_namespaces is not 0");
  if (!write_map (pid, "uid_map", spec->uid, spec->slot, error)
      || !write_map (pid, "gid_map", spec->gid, spec->slot, error))
    return FALSE;
  if (write (child->go[1], "g", 1) != 1)
    return bj_fd_set_io_error (error, errno, "Starting the share");
  return TRUE;
}

static pid_t
fork_child (const BjShareSpec *spec, BjShareChild *child, GError **error)
{
  pid_t pid;

  if (pipe2 (child->ready, O_CLOEXEC) < 0 || pipe2 (child->go, O_CLOEXEC) < 0)
    {
      bj_fd_set_io_error (error, errno, "Making a pipe");
      return -1;
    }
  pid = fork ();
  if (pid == 0)
    run_child (child);
  if (pid < 0)
    bj_fd_set_io_error (error, errno, "Starting the share");
  else if (!map_and_release (spec, child, pid, error))
    {
      kill (pid, SIGKILL);
      waitpid (pid, NULL, 0);
      pid = -1;
    }
  return pid;
}

static void
clear_child (BjShareChild *child)
{
  int *fds[] = { &child->socket,   &child->tree,     &child->log,   &child->null,
                 &child->ready[0], &child->ready[1], &child->go[0], &child->go[1] };

  for (guint i = 0; i < G_N_ELEMENTS (fds); i++)
    bj_fd_clear (fds[i]);
}

/*
 * "PID START INODE\n", START in clock ticks since boot: a pid alone may belong to somebody else later. INODE is the socket's: in a
 * copy of the folder it is another one, and the process is not the copy's.
 */
static char *
describe_process (pid_t pid, const char *socket)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/stat", (int) pid);
  g_autofree char *text = NULL;
  g_auto(GStrv) fields = NULL;
  struct stat info;
  const char *rest;

  if (lstat (socket, &info) < 0 || !g_file_get_contents (path, &text, NULL, NULL) || (rest = strrchr (text, ')')) == NULL)
    return NULL;
  fields = g_strsplit (rest, " ", 22);
  if (g_strv_length (fields) < 21)
    return NULL;
  return g_strdup_printf ("%d %s %" G_GUINT64_FORMAT "\n", (int) pid, fields[20], (guint64) info.st_ino);
}

static char *
dup_pid_path (const char *socket)
{
  return g_strconcat (socket, ".pid", NULL);
}

static gboolean
note_pid (BjShare *self, const char *socket, GError **error)
{
  g_autofree char *path = dup_pid_path (socket);
  g_autofree char *text = describe_process (self->pid, socket);

  if (text == NULL)
    return bj_error_set (error, BJ_ERROR_FAILED, "The share ended at once: see its log beside %s", socket);
  return g_file_set_contents (path, text, -1, error);
}

BjShare *
bj_share_start (const BjShareSpec *spec, GCancellable *cancellable, GError **error)
{
  const char *argv[] = { VIRTIOFSD, "-f", "--fd=3", "-o", "source=" MOUNT_POINT, "-o", "cache=auto", "-o",
                         "modcaps=-mknod", "-o", "sandbox=namespace", "-o", "no_xattr", NULL };
  BjShareChild child = { -1, -1, -1, -1, { -1, -1 }, { -1, -1 }, (char **) argv };
  g_autofree BjShare *self = g_new0 (BjShare, 1);

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  child.socket = listen_at (spec, error);
  if (child.socket < 0)
    return NULL;
  child.tree = clone_tree (spec->dir_fd);
  child.log = open (spec->log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  child.null = open ("/dev/null", O_RDWR | O_CLOEXEC);
  if (child.tree < 0 || child.log < 0 || child.null < 0)
    bj_fd_set_io_error (error, errno, "Preparing the share");
  else
    self->pid = fork_child (spec, &child, error);
  clear_child (&child);
  if (self->pid <= 0)
    return NULL;
  if (note_pid (self, spec->socket, error))
    return g_steal_pointer (&self);
  bj_share_stop (g_steal_pointer (&self), spec->socket, NULL);
  return NULL;
}

/* Returns 0 if none runs. */
static pid_t
find_noted (const char *socket)
{
  g_autofree char *path = dup_pid_path (socket);
  g_autofree char *text = NULL;
  g_autofree char *now = NULL;
  gint64 pid;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return 0;
  pid = g_ascii_strtoll (text, NULL, 10);
  if (pid <= 1 || pid > G_MAXINT32)
    return 0;
  now = describe_process ((pid_t) pid, socket);
  return g_strcmp0 (text, now) == 0 ? (pid_t) pid : 0;
}

/* virtiofsd and the child it makes are one process group. */
static gboolean
wait_gone (pid_t pid, guint limit_ms)
{
  for (guint waited = 0; waited <= limit_ms; waited += 5)
    {
      waitpid (pid, NULL, WNOHANG);
      if (kill (-pid, 0) < 0 && errno == ESRCH)
        return TRUE;
      g_usleep (5000);
    }
  return FALSE;
}

gboolean
bj_share_stop (BjShare *self, const char *socket, GError **error)
{
  pid_t pid = self ? self->pid : find_noted (socket);
  g_autofree char *pid_path = dup_pid_path (socket);

  g_free (self);
  if (pid > 0)
    {
      kill (-pid, SIGKILL);
      if (!wait_gone (pid, STOP_MS))
        return bj_error_set (error, BJ_ERROR_FAILED, "The share's server (process %d) does not end", (int) pid);
    }
  g_unlink (pid_path);
  g_unlink (socket);
  return TRUE;
}

void
bj_share_free (BjShare *self)
{
  g_free (self);
}
