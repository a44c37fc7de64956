/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-run-dir.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 8

gboolean
bj_run_dir_create (const char *path, uid_t uid, GError **error)
{
  g_auto(BjFd) fd = -1;

  if (mkdir (path, 0700) < 0)
    return bj_fd_set_io_error (error, errno, "Making the machine's folder %s", path);
  fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || (geteuid () == 0 && (fchown (fd, 0, uid) < 0 || fchmod (fd, 0750) < 0)))
    return bj_fd_set_io_error (error, errno, "Handing %s to the machine", path);
  return TRUE;
}

static gboolean remove_below (int parent, const char *name, dev_t device, guint depth);

static gboolean
remove_entry (int dir, const char *name, dev_t device, guint depth)
{
  if (unlinkat (dir, name, 0) == 0 || errno == ENOENT)
    return TRUE;
  return (errno == EISDIR || errno == EPERM) && depth < MAX_DEPTH && remove_below (dir, name, device, depth + 1);
}

static gboolean
remove_below (int parent, const char *name, dev_t device, guint depth)
{
  int fd = openat (parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info;
  struct dirent *entry;
  DIR *dir;
  gboolean ok = TRUE;

  if (fd < 0)
    return errno == ENOENT;
  if (fstat (fd, &info) < 0 || info.st_dev != device || (dir = fdopendir (fd)) == NULL)
    {
      close (fd);
      return FALSE;
    }
  while ((entry = readdir (dir)) != NULL)
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      ok = remove_entry (fd, entry->d_name, device, depth) && ok;
  closedir (dir);
  return ok && unlinkat (parent, name, AT_REMOVEDIR) == 0;
}

gboolean
bj_run_dir_remove (const char *path, GError **error)
{
  g_autofree char *parent_path = g_path_get_dirname (path);
  g_autofree char *name = g_path_get_basename (path);
  g_auto(BjFd) parent = open (parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info;

  if (parent < 0)
    return errno == ENOENT || bj_fd_set_io_error (error, errno, "Opening %s", parent_path);
  if (fstatat (parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
    return errno == ENOENT || bj_fd_set_io_error (error, errno, "Looking at %s", path);
  if (!remove_below (parent, name, info.st_dev, 0))
    return bj_error_set (error, BJ_ERROR_FAILED, "The machine's folder %s could not be removed: remove it by hand", path);
  return TRUE;
}
