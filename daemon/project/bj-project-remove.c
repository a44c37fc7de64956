/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-folder.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define LEVELS_MAX 64 /* deeper folders are moved to the top first, so that depth costs no descriptors */
#define PASSES_MAX 100000

/* One run. */
typedef struct
{
  int top;
  guint64 lifted;
} BjRemove;

static gboolean empty_folder (BjRemove *self, int folder, guint level, GError **error);

static gboolean
lift (BjRemove *self, int folder, const char *name, GError **error)
{
  for (guint i = 0; i < 1000; i++)
    {
      g_autofree char *at_top = g_strdup_printf (".belljar-lifted-%" G_GUINT64_FORMAT, self->lifted++);

      if (renameat2 (folder, name, self->top, at_top, RENAME_NOREPLACE) == 0)
        return TRUE;
      if (errno != EEXIST)
        break;
    }
  return bj_fd_set_io_error (error, errno, "Removing a deeply nested folder");
}

static gboolean
remove_subfolder (BjRemove *self, int folder, const char *name, guint level, GError **error)
{
  g_auto(BjFd) fd = -1;

  if (level >= LEVELS_MAX)
    return lift (self, folder, name, error);
  fd = openat (folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EACCES && fchmodat (folder, name, 0700, 0) == 0) /* not root: ours but without permission */
    fd = openat (folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Removing a folder");
  if (geteuid () != 0)
    fchmod (fd, 0700);
  return empty_folder (self, fd, level + 1, error);
}

static gboolean
remove_entry (BjRemove *self, int folder, const char *name, guint level, GError **error)
{
  if (unlinkat (folder, name, 0) == 0 || errno == ENOENT)
    return TRUE;
  if (errno != EISDIR && errno != EPERM)
    return bj_fd_set_io_error (error, errno, "Removing a file");
  if (unlinkat (folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
    return TRUE;
  if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
    return bj_fd_set_io_error (error, errno, "Removing a folder");
  if (!remove_subfolder (self, folder, name, level, error))
    return FALSE;
  if (level >= LEVELS_MAX || unlinkat (folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
    return TRUE;
  return bj_fd_set_io_error (error, errno, "Removing a folder");
}

static gboolean
empty_folder (BjRemove *self, int folder, guint level, GError **error)
{
  g_autoptr(GPtrArray) names = bj_project_folder_list (folder, error);

  if (names == NULL)
    return FALSE;
  for (guint i = 0; i < names->len; i++)
    if (!remove_entry (self, folder, g_ptr_array_index (names, i), level, error))
      return FALSE;
  return TRUE;
}

gboolean
bj_project_folder_remove (int parent, const char *name, GError **error)
{
  g_auto(BjFd) top = openat (parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  BjRemove self = { .top = top };

  if (top < 0 && errno == ENOENT)
    return TRUE;
  if (top < 0)
    return bj_fd_set_io_error (error, errno, "Removing the folder %s", name);
  for (guint pass = 0; pass < PASSES_MAX; pass++)
    {
      if (!empty_folder (&self, top, 1, error))
        return FALSE;
      if (unlinkat (parent, name, AT_REMOVEDIR) == 0)
        return TRUE;
      if (errno != ENOTEMPTY && errno != EEXIST)
        return bj_fd_set_io_error (error, errno, "Removing the folder %s", name);
    }
  return bj_error_set (error, BJ_ERROR_FAILED, "Removing the folder %s: somebody keeps putting files into it", name);
}
