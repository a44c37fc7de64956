/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree.h"

#include "bj-fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int
bj_tree_open (int folder, const char *name, int flags)
{
  struct open_how how = {
    .flags = (guint64) (flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
    .mode = flags & O_CREAT ? 0600 : 0,
    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
  };

  for (;;)
    {
      long fd = syscall (SYS_openat2, folder, name, &how, sizeof how);

      /* EAGAIN: something was renamed while the kernel looked. */
      if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
        return (int) fd;
    }
}

static void
close_stream (DIR *stream)
{
  closedir (stream);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (DIR, close_stream)

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

GPtrArray *
bj_tree_list (int folder, GError **error)
{
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_auto(BjFd) fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_autoptr(DIR) stream = fd >= 0 ? fdopendir (fd) : NULL;
  struct dirent *entry;

  if (stream == NULL)
    {
      bj_fd_set_io_error (error, errno, "Listing a folder");
      return NULL;
    }
  fd = -1; /* the stream's now */
  for (errno = 0; (entry = readdir (stream)) != NULL; errno = 0)
    if (strcmp (entry->d_name, ".") != 0 && strcmp (entry->d_name, "..") != 0)
      g_ptr_array_add (names, g_strdup (entry->d_name));
  if (errno != 0)
    {
      bj_fd_set_io_error (error, errno, "Listing a folder");
      return NULL;
    }
  g_ptr_array_sort (names, compare_names);
  return g_steal_pointer (&names);
}

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define EVERYTHING ((G_GUINT64_CONSTANT (1) << 14) - 1) /* of ABI 2, the first that allows renaming between folders */

/* The second lock on the door: the sandbox's mounts are the first. An old kernel has only that one. */
void
bj_tree_confine (const int *fds, const gboolean *writable, guint n_fds)
{
  struct landlock_ruleset_attr attributes = { .handled_access_fs = EVERYTHING };
  g_auto(BjFd) rules = -1;

  prctl (PR_SET_DUMPABLE, 0);
  if (syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 2)
    return;
  rules = (int) syscall (SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
  for (guint i = 0; rules >= 0 && i < n_fds; i++)
    {
      struct landlock_path_beneath_attr rule = { .parent_fd = fds[i],
                                                 .allowed_access = writable[i] ? EVERYTHING : (guint64) READS };

      syscall (SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
  if (rules >= 0 && prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
    syscall (SYS_landlock_restrict_self, rules, 0);
}
