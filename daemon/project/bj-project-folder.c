/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-folder.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int
open_beneath (int parent, const char *path)
{
  struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                          .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

  for (;;)
    {
      long fd = syscall (SYS_openat2, parent, path, &how, sizeof how);

      if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
        return (int) fd;
    }
}

int
bj_project_folder_open (int parent, const char *path, uid_t uid, GError **error)
{
  g_auto(BjFd) fd = open_beneath (parent, path);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) < 0)
    {
      bj_fd_set_io_error (error, errno, "Opening the project folder %s", path);
      return -1;
    }
  if (st.st_uid != uid)
    {
      bj_error_set (error, BJ_ERROR_DENIED, "The project folder %s belongs to user %u instead of %u: give it back with chown",
                    path, st.st_uid, uid);
      return -1;
    }
  return g_steal_fd (&fd);
}

int
bj_project_folder_open_repo (int projects, const char *name, GError **error)
{
  g_autofree char *path = g_strconcat (name, "/repo.git", NULL);
  g_auto(BjFd) fd = bj_project_folder_open (projects, path, geteuid (), error);
  struct stat st;

  if (fd < 0)
    return -1;
  if (fstat (fd, &st) < 0 || (st.st_mode & 077) != 0)
    {
      bj_error_set (error, BJ_ERROR_DENIED, "%s is open to others: its history cannot be trusted (chmod 700 if it is yours)",
                    path);
      return -1;
    }
  return g_steal_fd (&fd);
}

int
bj_project_folder_make (int parent, const char *name, mode_t mode, GError **error)
{
  g_auto(BjFd) fd = -1;

  if (mkdirat (parent, name, 0700) == 0)
    fd = open_beneath (parent, name);
  if (fd < 0 || fchmod (fd, mode) < 0)
    {
      bj_fd_set_io_error (error, errno, "Making the folder %s", name);
      return -1;
    }
  return g_steal_fd (&fd);
}

static void
close_stream (DIR *stream)
{
  closedir (stream);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (DIR, close_stream)

GPtrArray *
bj_project_folder_list (int folder, GError **error)
{
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_auto(BjFd) fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_autoptr(DIR) stream = fd >= 0 ? fdopendir (fd) : NULL;
  struct dirent *entry;

  if (stream == NULL)
    {
      bj_fd_set_io_error (error, errno, "Listing a project folder");
      return NULL;
    }
  fd = -1; /* the stream's now */
  for (errno = 0; (entry = readdir (stream)) != NULL; errno = 0)
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      g_ptr_array_add (names, g_strdup (entry->d_name));
  if (errno != 0)
    {
      bj_fd_set_io_error (error, errno, "Listing a project folder");
      return NULL;
    }
  return g_steal_pointer (&names);
}
