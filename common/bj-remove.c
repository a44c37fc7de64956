/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-remove.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROUNDS_MAX 1000000

/*
 * Depth is not bounded by our stack or by open files: each round walks down to a folder without sub-folders, empties it,
 * and starts again from the top of the tree. A folder on the way is moved up to the top, so that every walk is short.
 */
typedef struct
{
  int top; /* the tree's own folder */
  dev_t device;
  guint serial;
} BjRemoval;

/* Root alone comes into folders, and moves them, whatever their modes say. */
static gboolean
unlock (int fd, const char *name)
{
  return geteuid () != 0 && fchmodat (fd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Moves a folder to the top under a name that is free there. */
static gboolean
lift (BjRemoval *removal, int fd, const char *name, GError **error)
{
  int failure = EEXIST;

  while (failure == EEXIST || failure == ENOTEMPTY)
    {
      g_autofree char *moved = g_strdup_printf (".belljar-remove-%u", removal->serial++);

      if (renameat (fd, name, removal->top, moved) == 0)
        return TRUE;
      failure = errno;
      if (failure == EACCES && unlock (fd, name) && renameat (fd, name, removal->top, moved) == 0)
        return TRUE;
    }
  return bj_fd_set_io_error (error, failure, "Moving a folder that is to be removed");
}

/* Empties @fd of everything but folders; folders are moved to the top under names of our own. */
static gboolean
empty_folder (BjRemoval *removal, int fd, GError **error)
{
  g_auto(BjFd) copy = openat (fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy >= 0 ? fdopendir (copy) : NULL;
  struct dirent *entry;
  gboolean ok = TRUE;

  if (entries == NULL)
    return bj_fd_set_io_error (error, errno, "Listing a folder");
  copy = -1;
  while (ok && (entry = readdir (entries)) != NULL)
    {
      if (g_str_equal (entry->d_name, ".") || g_str_equal (entry->d_name, ".."))
        continue;
      if (unlinkat (fd, entry->d_name, 0) == 0 || errno == ENOENT)
        continue;
      if (errno != EISDIR && errno != EPERM)
        ok = bj_fd_set_io_error (error, errno, "Removing a file");
      else if (unlinkat (fd, entry->d_name, AT_REMOVEDIR) < 0 && fd != removal->top)
        ok = lift (removal, fd, entry->d_name, error);
    }
  closedir (entries);
  return ok;
}

/* Returns: (transfer full) (nullable): the name of a folder in the top one */
static char *
find_folder (BjRemoval *removal)
{
  g_auto(BjFd) copy = openat (removal->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy >= 0 ? fdopendir (copy) : NULL;
  struct dirent *entry;
  char *name = NULL;

  if (entries == NULL)
    return NULL;
  copy = -1;
  while (name == NULL && (entry = readdir (entries)) != NULL)
    if (!g_str_equal (entry->d_name, ".") && !g_str_equal (entry->d_name, ".."))
      name = g_strdup (entry->d_name);
  closedir (entries);
  return name;
}

static gboolean
remove_folder (BjRemoval *removal, const char *name, GError **error)
{
  struct stat info;
  g_auto(BjFd) fd = openat (removal->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  if (fd < 0 && errno == EACCES && unlock (removal->top, name))
    fd = openat (removal->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat (fd, &info) < 0)
    return bj_fd_set_io_error (error, errno, "Opening a folder that is to be removed");
  if (info.st_dev != removal->device)
    return bj_error_set (error, BJ_ERROR_BUSY, "Something is still mounted below");
  fchmod (fd, 0700); /* one of ours may be read-only */
  if (!empty_folder (removal, fd, error))
    return FALSE;
  if (unlinkat (removal->top, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY || errno == EEXIST)
    return TRUE;
  return bj_fd_set_io_error (error, errno, "Removing a folder");
}

gboolean
bj_remove_tree (const char *path, GError **error)
{
  BjRemoval removal = { 0 };
  struct stat info;
  g_auto(BjFd) top = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  if (top < 0)
    {
      if (unlink (path) == 0 || errno == ENOENT)
        return TRUE;
      return bj_fd_set_io_error (error, errno, "Removing %s", path);
    }
  if (fstat (top, &info) < 0)
    return bj_fd_set_io_error (error, errno, "Removing %s", path);
  removal.top = top;
  removal.device = info.st_dev;
  for (guint round = 0; round < ROUNDS_MAX; round++)
    {
      g_autofree char *name = NULL;

      if (!empty_folder (&removal, top, error))
        break;
      name = find_folder (&removal);
      if (name == NULL)
        return rmdir (path) == 0 || bj_fd_set_io_error (error, errno, "Removing %s", path);
      if (!remove_folder (&removal, name, error))
        break;
    }
  g_prefix_error (error, "Removing %s: ", path);
  return FALSE;
}
