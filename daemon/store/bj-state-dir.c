/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-state-dir.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>

/* The longest socket paths that will be made, the second one by libvirt's embedded driver. */
static const char *const sockets[] = {
  "/sessions/abcdefgh/agent/model.sock",
  "/engine/lib/qemu/domain-999-bj-abcdefgh-x/monitor.sock",
};

/* Folders others must pass through are 0711: a machine's uid to its run folder, an owner to a project. */
static const struct
{
  const char *name;
  mode_t mode;
} folders[] = {
  { "engine", 0711 }, { "images", 0711 }, { "projects", 0711 }, { "sessions", 0711 }, { "keys", 0700 },
};

gboolean
bj_state_dir_check_length (const char *path, GError **error)
{
  const gsize most = sizeof ((struct sockaddr_un *) NULL)->sun_path - 1;
  gsize longest = 0;

  for (guint i = 0; i < G_N_ELEMENTS (sockets); i++)
    longest = MAX (longest, strlen (sockets[i]));
  if (strlen (path) + longest <= most)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID,
                       "The path of the state folder %s has %zu bytes: unix sockets below it allow at most %zu. "
                       "Use a shorter --state-dir",
                       path, strlen (path), most - longest);
}

/* Who can write into it can put anything in the place of keys, images and the database. */
static gboolean
check_private (const char *path, GError **error)
{
  struct stat info;

  if (lstat (path, &info) < 0)
    return bj_fd_set_io_error (error, errno, "Looking at %s", path);
  if (!S_ISDIR (info.st_mode))
    return bj_error_set (error, BJ_ERROR_INVALID, "%s is not a folder", path);
  if (info.st_uid != geteuid () && info.st_uid != 0)
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "The folder %s belongs to uid %u, who could change what belljard keeps in it: look at what is in it, then "
                         "give it to uid %u (chown), or use another --state-dir",
                         path, (guint) info.st_uid, (guint) geteuid ());
  if ((info.st_mode & 022) != 0)
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "Others may write into the folder %s (mode %04o), and so change what belljard keeps in it: look at what "
                         "is in it, then take that away (chmod go-w), or use another --state-dir",
                         path, (guint) info.st_mode & 07777);
  return TRUE;
}

/* Who can rename a folder on the way can put another one in its place; where the sticky bit is set only its owner can. */
static gboolean
check_way (const char *path, GError **error)
{
  g_autofree char *parent = g_path_get_dirname (path);
  struct stat info;

  if (stat (parent, &info) < 0)
    return bj_fd_set_io_error (error, errno, "Looking at %s", parent);
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "Everybody may write into the folder %s (mode %04o), and so put something else in the place of the state "
                         "folder: take that away (chmod o-w), or use another --state-dir",
                         parent, (guint) info.st_mode & 07777);
  return g_str_equal (parent, path) || g_str_equal (parent, "/") || g_str_equal (parent, ".") || check_way (parent, error);
}

static gboolean
make_folder (const char *path, mode_t mode, GError **error)
{
  struct stat info;

  if (mkdir (path, mode) == 0)
    return chmod (path, mode) == 0 || bj_fd_set_io_error (error, errno, "Setting the mode of %s", path);
  if (errno != EEXIST)
    return bj_fd_set_io_error (error, errno, "Making the folder %s", path);
  if (stat (path, &info) < 0)
    return bj_fd_set_io_error (error, errno, "Looking at %s", path);
  return S_ISDIR (info.st_mode) || bj_error_set (error, BJ_ERROR_INVALID, "%s is not a folder", path);
}

/* Parents that are missing must let others pass, whatever our umask is. */
static gboolean
make_parents (const char *path, GError **error)
{
  g_autofree char *parent = g_path_get_dirname (path);

  if (g_file_test (parent, G_FILE_TEST_IS_DIR))
    return TRUE;
  return make_parents (parent, error) && make_folder (parent, 0755, error);
}

static int
take_lock (const char *path, GError **error)
{
  g_autofree char *file = g_build_filename (path, "lock", NULL);
  g_auto(BjFd) fd = open (file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  g_autofree char *pid = g_strdup_printf ("%d\n", (int) getpid ());
  char other[16] = "";

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "The state folder %s cannot be written (%s)", path, file);
      return -1;
    }
  if (flock (fd, LOCK_EX | LOCK_NB) < 0)
    {
      if (read (fd, other, sizeof other - 1) < 0)
        other[0] = '\0';
      bj_error_set (error, BJ_ERROR_BUSY, "Another belljard (pid %s) uses %s: stop it, or give another --state-dir",
                    *g_strstrip (other) != '\0' ? other : "unknown", path);
      return -1;
    }
  if (ftruncate (fd, 0) < 0 || !bj_fd_write_all (fd, pid, strlen (pid), NULL))
    {
      bj_fd_set_io_error (error, errno, "The state folder %s cannot be written (%s)", path, file);
      return -1;
    }
  return g_steal_fd (&fd);
}

int
bj_state_dir_open (const char *path, GError **error)
{
  g_auto(BjFd) fd = -1;

  if (!bj_state_dir_check_length (path, error) || !make_parents (path, error) || !make_folder (path, 0711, error)
      || !check_private (path, error) || !check_way (path, error))
    return -1;
  fd = take_lock (path, error);
  if (fd < 0)
    return -1;
  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *folder = g_build_filename (path, folders[i].name, NULL);

      if (!make_folder (folder, folders[i].mode, error) || !check_private (folder, error))
        return -1;
    }
  return g_steal_fd (&fd);
}

static gboolean
has_any (const char *path, const char *name)
{
  g_autofree char *folder = g_build_filename (path, name, NULL);
  g_autoptr(GDir) dir = g_dir_open (folder, 0, NULL);

  return dir != NULL && g_dir_read_name (dir) != NULL;
}

gboolean
bj_state_dir_has_sessions (const char *path)
{
  return has_any (path, "sessions");
}

gboolean
bj_state_dir_check_database (const char *path, GError **error)
{
  g_autofree char *database = g_build_filename (path, "belljar.db", NULL);
  struct stat info;
  gboolean missing = lstat (database, &info) < 0;

  if (missing && errno != ENOENT)
    return bj_fd_set_io_error (error, errno, "Looking at %s", database);
  if ((!missing && info.st_size > 0)
      || !(has_any (path, "images") || has_any (path, "projects") || bj_state_dir_has_sessions (path)))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID,
                       "The database %s is %s, but images, projects or sessions are there that only it knows of (a full disk leaves an "
                       "empty file): put a copy of it back, or move %s/images, projects and sessions away to start anew",
                       database, missing ? "missing" : "empty", path);
}

guint64
bj_state_dir_get_free (const char *path)
{
  struct statvfs fs;

  return statvfs (path, &fs) == 0 ? (guint64) fs.f_bavail * fs.f_frsize : 0;
}
