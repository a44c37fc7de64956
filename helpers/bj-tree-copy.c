/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-name.h"
#include "bj-tree.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define CHUNK (1024 * 1024)
#define LEVELS_MAX 500
#define REPORT_EVERY_US 200000

/* One run. */
typedef struct
{
  BjTreeAnswer *answer;
  gboolean leave_git; /* a .git is not copied */
  guint64 total;      /* bytes that will be copied, counted first */
  guint64 done;
  guint64 files;
  gint64 reported; /* when, monotonic */
  gboolean unreadable; /* the last file could not be read to its end */
  guint8 *chunk;   /* (owned) */
} BjCopy;

static void
report (BjCopy *self, guint64 bytes)
{
  self->done += bytes;
  if (g_get_monotonic_time () - self->reported < REPORT_EVERY_US)
    return;
  self->reported = g_get_monotonic_time ();
  fprintf (stderr, "progress %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n", self->done, MAX (self->total, self->done));
}

static gboolean
skip (BjCopy *self, const char *path, const char *name, const char *why)
{
  bj_tree_answer_warn (self->answer, path, name, why);
  return TRUE;
}

static void
count_folder (BjCopy *self, int folder, guint level)
{
  g_autoptr(GPtrArray) names = level < LEVELS_MAX ? bj_tree_list (folder, NULL) : NULL;

  for (guint i = 0; names != NULL && i < names->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);
      g_auto(BjFd) below = -1;
      struct stat st;

      if (fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        continue;
      if (S_ISREG (st.st_mode))
        self->total += (guint64) st.st_size;
      else if (S_ISDIR (st.st_mode))
        below = bj_tree_open (folder, name, O_RDONLY | O_DIRECTORY);
      if (below >= 0)
        count_folder (self, below, level + 1);
    }
}

static gboolean
copy_bytes (BjCopy *self, int from, int to, GError **error)
{
  guint64 left = BJ_TREE_FILE_MAX;

  while (left > 0)
    {
      gssize n = read (from, self->chunk, CHUNK);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        {
          self->unreadable = TRUE;
          return bj_fd_set_io_error (error, errno, "Reading a file");
        }
      if (n == 0)
        return TRUE;
      if (!bj_fd_write_all (to, self->chunk, (gsize) n, error))
        return FALSE;
      left -= MIN (left, (guint64) n);
      report (self, (guint64) n);
      if (self->done > BJ_TREE_BYTES_MAX)
        return bj_error_set (error, BJ_ERROR_LIMIT, "More than 4 GiB are not copied at once");
    }
  return bj_error_set (error, BJ_ERROR_LIMIT, "A file larger than 1 GiB is not copied");
}

/* What stands there under this name is replaced, never written through: it may be a link or have other names. */
static gboolean
copy_file (BjCopy *self, int from, int to_folder, const char *name, mode_t mode, GError **error)
{
  g_autofree char *draft = g_strdup_printf (".belljar-copy-%08x", g_random_int ());
  g_auto(BjFd) to = bj_tree_open (to_folder, draft, O_WRONLY | O_CREAT | O_EXCL);

  if (to < 0)
    return bj_fd_set_io_error (error, errno, "Making a file");
  if (copy_bytes (self, from, to, error))
    {
      self->files++;
      if (fchmod (to, mode & 0111 ? 0755 : 0644) == 0 && renameat (to_folder, draft, to_folder, name) == 0)
        return TRUE;
      bj_fd_set_io_error (error, errno, "Putting a file in its place");
    }
  unlinkat (to_folder, draft, 0);
  return FALSE;
}

/* One file that cannot be read does not end the copy of the others; what does end it names the file. */
static gboolean
copy_named_file (BjCopy *self, int from, int to_folder, const char *path, const char *name, mode_t mode, GError **error)
{
  g_autofree char *whole = *path != '\0' ? g_strdup_printf ("%s/%s", path, name) : g_strdup (name);
  g_autofree char *shown = bj_tree_name_show (whole);
  g_autoptr(GError) failure = NULL;

  self->unreadable = FALSE;
  if (copy_file (self, from, to_folder, name, mode, &failure))
    return TRUE;
  if (self->unreadable)
    return skip (self, path, name, "was left out: it could not be read");
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "“%s”: ", shown);
  return FALSE;
}

static gboolean
copy_link (BjCopy *self, int from_folder, int to_folder, const char *path, const char *name, GError **error)
{
  char target[PATH_MAX + 1] = { 0 };
  gssize n = readlinkat (from_folder, name, target, PATH_MAX);

  if (n <= 0)
    return skip (self, path, name, "was left out: the link could not be read");
  if (symlinkat (target, to_folder, name) == 0
      || (errno == EEXIST && unlinkat (to_folder, name, 0) == 0 && symlinkat (target, to_folder, name) == 0))
    {
      self->files++;
      return TRUE;
    }
  return skip (self, path, name, "was left out: a folder stands in its place");
}

static int
open_or_make_folder (int folder, const char *name)
{
  if (mkdirat (folder, name, 0755) < 0 && errno != EEXIST)
    return -1;
  return bj_tree_open (folder, name, O_RDONLY | O_DIRECTORY);
}

static gboolean copy_folder (BjCopy *self, int from, int to, const char *path, guint level, GError **error);

static gboolean
copy_subfolder (BjCopy *self, int from, int to_folder, const char *path, const char *name, guint level, GError **error)
{
  g_autofree char *below = *path != '\0' ? g_strdup_printf ("%s/%s", path, name) : g_strdup (name);
  g_auto(BjFd) to = -1;

  if (level >= LEVELS_MAX)
    return skip (self, path, name, "was left out: nested too deep");
  to = open_or_make_folder (to_folder, name);
  if (to < 0)
    return skip (self, path, name, "was left out: the folder could not be made, something else stands in its place");
  return copy_folder (self, from, to, below, level + 1, error);
}

static gboolean
copy_name (BjCopy *self, int from, int to, const char *path, const char *name, guint level, GError **error)
{
  g_auto(BjFd) fd = -1;
  struct stat st;

  if (self->leave_git && bj_tree_name_is_dot_git (name))
    return skip (self, path, name, "was left out: a project has its own history");
  if (fstatat (from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return TRUE;
  if (S_ISLNK (st.st_mode))
    return copy_link (self, from, to, path, name, error);
  if (!S_ISREG (st.st_mode) && !S_ISDIR (st.st_mode))
    return skip (self, path, name, "was left out: it is neither file, link nor folder");
  fd = bj_tree_open (from, name, S_ISDIR (st.st_mode) ? O_RDONLY | O_DIRECTORY : O_RDONLY);
  if (fd < 0 || fstat (fd, &st) < 0)
    return skip (self, path, name, "was left out: it could not be opened");
  if (S_ISDIR (st.st_mode))
    return copy_subfolder (self, fd, to, path, name, level, error);
  if (!S_ISREG (st.st_mode) || (guint64) st.st_size > BJ_TREE_FILE_MAX)
    return skip (self, path, name, "was left out: it is larger than 1 GiB or changed meanwhile");
  if (self->files >= BJ_TREE_FILES_MAX)
    return bj_error_set (error, BJ_ERROR_LIMIT, "More than a million files are not copied at once");
  return copy_named_file (self, fd, to, path, name, st.st_mode, error);
}

static gboolean
copy_folder (BjCopy *self, int from, int to, const char *path, guint level, GError **error)
{
  g_autoptr(GPtrArray) names = bj_tree_list (from, NULL);

  if (names == NULL)
    return skip (self, path, "", "was left out: the folder could not be listed");
  for (guint i = 0; i < names->len; i++)
    if (!copy_name (self, from, to, path, g_ptr_array_index (names, i), level, error))
      return FALSE;
  return TRUE;
}

static gboolean
fail_at_path (int number, const char *const *parts, guint n_parts, GError **error)
{
  g_autoptr(GString) path = g_string_new (NULL);
  g_autofree char *shown = NULL;

  for (guint i = 0; i < n_parts; i++)
    g_string_append_printf (path, "%s%s", i > 0 ? "/" : "", parts[i]);
  shown = bj_tree_name_show (path->str);
  if (number == ENOENT)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no “%s” in the project", shown);
  if (number == ENOTDIR || number == ELOOP)
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” leads through something that is no folder", shown);
  return bj_fd_set_io_error (error, number, "Opening “%s”", n_parts > 0 ? shown : "the folder");
}

/* Goes down from @top along @path, @n_parts of it; missing folders are made if @make. Returns: fd or -1 */
static int
descend (int top, const char *const *parts, guint n_parts, gboolean make, GError **error)
{
  g_auto(BjFd) at = bj_tree_open (top, ".", O_RDONLY | O_DIRECTORY);

  for (guint i = 0; at >= 0 && i < n_parts; i++)
    {
      int below = make ? open_or_make_folder (at, parts[i]) : bj_tree_open (at, parts[i], O_RDONLY | O_DIRECTORY);
      int saved = errno;

      bj_fd_clear (&at);
      at = below;
      errno = saved;
    }
  if (at < 0)
    fail_at_path (errno, parts, n_parts, error);
  return g_steal_fd (&at);
}

static gboolean
check_path (GStrv parts, GError **error)
{
  for (guint i = 0; parts[i] != NULL; i++)
    if (bj_tree_name_is_refused (parts[i]) || strlen (parts[i]) > 255)
      return bj_error_set (error, BJ_ERROR_INVALID, "The path has a part that is not allowed in a project");
  return TRUE;
}

/* in: fd 3 is a file or folder of the caller's and 4 is work/. out: 3 is work/ and 4 a folder of the caller's. */
static gboolean
copy_in (BjCopy *self, GStrv parts, GError **error)
{
  guint n = g_strv_length (parts);
  g_auto(BjFd) to = -1;
  g_auto(BjFd) from = -1;
  struct stat st;

  if (fstat (3, &st) < 0)
    return bj_fd_set_io_error (error, errno, "Looking at the source");
  if (S_ISREG (st.st_mode))
    {
      if (n == 0)
        return bj_error_set (error, BJ_ERROR_INVALID, "A single file needs a name in the project");
      to = descend (4, (const char *const *) parts, n - 1, TRUE, error);
      self->total = (guint64) st.st_size;
      return to >= 0 && copy_file (self, 3, to, parts[n - 1], st.st_mode, error);
    }
  if (!S_ISDIR (st.st_mode))
    return bj_error_set (error, BJ_ERROR_INVALID, "Only a file or a folder can be copied into a project");
  from = descend (3, NULL, 0, FALSE, error);
  to = from >= 0 ? descend (4, (const char *const *) parts, n, TRUE, error) : -1;
  if (to < 0)
    return FALSE;
  count_folder (self, from, 1);
  return copy_folder (self, from, to, "", 1, error);
}

static gboolean
copy_out (BjCopy *self, GStrv parts, GError **error)
{
  guint n = g_strv_length (parts);
  g_auto(BjFd) from = descend (3, (const char *const *) parts, n > 0 ? n - 1 : 0, FALSE, error);
  g_auto(BjFd) to = from >= 0 ? descend (4, NULL, 0, FALSE, error) : -1;
  struct stat st;

  if (to < 0)
    return FALSE;
  if (n == 0)
    {
      count_folder (self, from, 1);
      return copy_folder (self, from, to, "", 1, error);
    }
  if (fstatat (from, parts[n - 1], &st, AT_SYMLINK_NOFOLLOW) < 0)
    return fail_at_path (errno, (const char *const *) parts, n, error);
  return copy_name (self, from, to, "", parts[n - 1], 1, error);
}

/* copy in|out PATH keep-git|leave-git; fd 3: from, 4: to */
gboolean
bj_tree_copy (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autofree guint8 *chunk = g_malloc (CHUNK);
  BjCopy self = { .answer = answer, .leave_git = g_str_equal (args[2], "leave-git"), .chunk = chunk };
  g_auto(GStrv) parts = *args[1] != '\0' ? g_strsplit (args[1], "/", -1) : g_new0 (char *, 1);
  gboolean in = g_str_equal (args[0], "in");

  umask (0);
  if (!check_path (parts, error))
    return FALSE;
  bj_tree_confine ((const int[]) { 3, 4 }, (const gboolean[]) { FALSE, TRUE }, 2);
  if (in ? !copy_in (&self, parts, error) : !copy_out (&self, parts, error))
    return FALSE;
  bj_tree_answer_add (answer, "files", "%" G_GUINT64_FORMAT, self.files);
  bj_tree_answer_add (answer, "bytes", "%" G_GUINT64_FORMAT, self.done);
  return TRUE;
}
