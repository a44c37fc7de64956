/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-copy-place.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FRESH ".belljar-copy-XXXXXX"
#define DEPTH_MAX 256 /* of folders that are there on both sides */

struct _BjPlace
{
  char *fresh;  /* (owned): path */
  char *folder; /* (owned): the one that gets it; may not be there yet */
  char *source; /* (owned) (nullable): its name in the fresh folder; NULL: all that is there */
  char *name;   /* (owned) (nullable): its name in the folder */
};

/* One walk over both sides: first to look whether it works, then to move. */
typedef struct
{
  gboolean move;
  guint depth;
} BjWalk;

void
bj_place_split (const char *path, char **folder, char **name)
{
  g_autofree char *trimmed = g_strdup (path);
  char *slash;

  for (gsize n = strlen (trimmed); n > 1 && trimmed[n - 1] == '/'; n--)
    trimmed[n - 1] = '\0';
  slash = strrchr (trimmed, '/');
  *name = g_strdup (slash != NULL ? slash + 1 : trimmed);
  *folder = slash == NULL ? g_strdup (".") : slash == trimmed ? g_strdup ("/") : g_strndup (trimmed, (gsize) (slash - trimmed));
  if (**name == '\0' || g_str_equal (*name, ".") || g_str_equal (*name, ".."))
    g_clear_pointer (name, g_free);
}

/* The nearest folder above that is there: on the file system where the copy will lie. */
static char *
find_existing (const char *folder)
{
  g_autofree char *path = g_strdup (folder);
  struct stat info;

  while (stat (path, &info) < 0 && errno == ENOENT && !g_str_equal (path, ".") && !g_str_equal (path, "/"))
    {
      char *above = g_path_get_dirname (path);

      g_free (path);
      path = above;
    }
  return g_steal_pointer (&path);
}

BjPlace *
bj_place_new (const char *destination, const char *name, GError **error)
{
  g_autoptr(BjPlace) self = g_new0 (BjPlace, 1);
  gboolean into = name == NULL || g_str_has_suffix (destination, "/") || g_file_test (destination, G_FILE_TEST_IS_DIR);
  g_autofree char *last = NULL;
  g_autofree char *folder = NULL;
  g_autofree char *existing = NULL;
  g_autofree char *fresh = NULL;

  bj_place_split (destination, &folder, &last);
  into = into || last == NULL;
  self->folder = into ? g_strdup (destination) : g_steal_pointer (&folder);
  self->source = g_strdup (name);
  self->name = into ? g_strdup (name) : g_steal_pointer (&last);
  existing = find_existing (self->folder);
  fresh = g_build_filename (existing, FRESH, NULL);
  if (g_mkdtemp (fresh) == NULL)
    {
      bj_fd_set_io_error (error, errno, _("Writing into “%s”"), existing);
      return NULL;
    }
  self->fresh = g_steal_pointer (&fresh);
  return g_steal_pointer (&self);
}

void
bj_place_free (BjPlace *self)
{
  g_autoptr(GError) error = NULL;

  if (self->fresh != NULL && !bj_remove_tree (self->fresh, &error))
    g_printerr ("belljar: %s\n", error->message);
  g_free (self->fresh);
  g_free (self->folder);
  g_free (self->source);
  g_free (self->name);
  g_free (self);
}

const char *
bj_place_get_folder (BjPlace *self)
{
  return self->fresh;
}

/* A folder without write permission of its own cannot be moved into another one, except by root. */
static gboolean
move (int from, const char *name, int to, const char *to_name, const struct stat *info, GError **error)
{
  gboolean ok = renameat (from, name, to, to_name) == 0;
  int failure = errno;

  if (!ok && failure == EACCES && S_ISDIR (info->st_mode) && fchmodat (from, name, info->st_mode | S_IRWXU, 0) == 0)
    {
      ok = renameat (from, name, to, to_name) == 0;
      failure = errno;
      fchmodat (ok ? to : from, ok ? to_name : name, info->st_mode & 0777, 0);
    }
  return ok || bj_fd_set_io_error (error, failure, _("Moving “%s” to its place"), to_name);
}

/* Returns: (transfer full) (element-type filename): names in @fd */
static GPtrArray *
list_names (int fd, GError **error)
{
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_auto(BjFd) copy = openat (fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy >= 0 ? fdopendir (copy) : NULL;
  struct dirent *entry;

  if (entries == NULL)
    {
      bj_fd_set_io_error (error, errno, _("Listing a folder"));
      return NULL;
    }
  copy = -1;
  while ((entry = readdir (entries)) != NULL)
    if (!g_str_equal (entry->d_name, ".") && !g_str_equal (entry->d_name, ".."))
      g_ptr_array_add (names, g_strdup (entry->d_name));
  closedir (entries);
  return g_steal_pointer (&names);
}

static gboolean place (BjWalk *walk, int from, const char *name, int to, const char *to_name, GError **error);

static gboolean
place_all (BjWalk *walk, int from, int to, GError **error)
{
  g_autoptr(GPtrArray) names = list_names (from, error);
  gboolean ok = names != NULL;

  for (guint i = 0; ok && i < names->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);

      ok = place (walk, from, name, to, name, error);
    }
  return ok;
}

/* Both are folders. */
static gboolean
add_to (BjWalk *walk, int from, const char *name, int to, const char *to_name, GError **error)
{
  g_auto(BjFd) from_folder = openat (from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  g_auto(BjFd) to_folder = openat (to, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  gboolean ok;

  if (from_folder < 0 || to_folder < 0)
    return bj_fd_set_io_error (error, errno, _("Opening the folder “%s”"), to_name);
  if (faccessat (to_folder, ".", W_OK, AT_EACCESS) < 0)
    return bj_fd_set_io_error (error, errno, _("Writing into “%s”"), to_name);
  if (walk->depth == DEPTH_MAX)
    return bj_error_set (error, BJ_ERROR_LIMIT, _("More than %d folders lie in one another at “%s”"), DEPTH_MAX, to_name);
  walk->depth++;
  ok = place_all (walk, from_folder, to_folder, error);
  walk->depth--;
  return ok;
}

static gboolean
place (BjWalk *walk, int from, const char *name, int to, const char *to_name, GError **error)
{
  struct stat source;
  struct stat there;

  if (fstatat (from, name, &source, AT_SYMLINK_NOFOLLOW) < 0)
    return bj_fd_set_io_error (error, errno, _("Looking for “%s” in what came"), name);
  if (fstatat (to, to_name, &there, AT_SYMLINK_NOFOLLOW) < 0)
    {
      if (errno != ENOENT)
        return bj_fd_set_io_error (error, errno, _("Looking at “%s”"), to_name);
      return !walk->move || move (from, name, to, to_name, &source, error);
    }
  if (S_ISDIR (source.st_mode) && S_ISDIR (there.st_mode))
    return add_to (walk, from, name, to, to_name, error);
  if (S_ISDIR (there.st_mode))
    return bj_error_set (error, BJ_ERROR_EXISTS, _("“%s” is a folder: a file cannot replace it"), to_name);
  if (S_ISDIR (source.st_mode))
    return bj_error_set (error, BJ_ERROR_EXISTS, _("“%s” is there already and no folder"), to_name);
  return !walk->move || move (from, name, to, to_name, &source, error);
}

/* The guest may have put more into its archive than it was asked for. */
static gboolean
check_source (BjPlace *self, int fresh, GError **error)
{
  g_autoptr(GPtrArray) names = self->source != NULL ? list_names (fresh, error) : NULL;

  if (self->source == NULL)
    return TRUE;
  if (names == NULL)
    return FALSE;
  for (guint i = 0; i < names->len; i++)
    if (!g_str_equal (g_ptr_array_index (names, i), self->source))
      return bj_error_set (error, BJ_ERROR_DENIED, _("The guest sent “%s”, which nobody asked for"),
                           (const char *) g_ptr_array_index (names, i));
  return names->len == 1 || bj_error_set (error, BJ_ERROR_NOT_FOUND, _("The guest did not send “%s”"), self->source);
}

gboolean
bj_place_finish (BjPlace *self, GError **error)
{
  g_auto(BjFd) fresh = open (self->fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  g_auto(BjFd) folder = -1;

  if (fresh < 0)
    return bj_fd_set_io_error (error, errno, _("Opening the folder “%s”"), self->fresh);
  if (!check_source (self, fresh, error))
    return FALSE;
  if (g_mkdir_with_parents (self->folder, 0777) < 0)
    return bj_fd_set_io_error (error, errno, _("Making the folder “%s”"), self->folder);
  folder = open (self->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return bj_fd_set_io_error (error, errno, _("Opening the folder “%s”"), self->folder);
  if (faccessat (folder, ".", W_OK, AT_EACCESS) < 0)
    return bj_fd_set_io_error (error, errno, _("Writing into “%s”"), self->folder);
  for (int move_it = 0; move_it < 2; move_it++)
    {
      BjWalk walk = { .move = move_it };

      if (self->source != NULL ? !place (&walk, fresh, self->source, folder, self->name, error)
                               : !place_all (&walk, fresh, folder, error))
        return FALSE;
    }
  return TRUE;
}
