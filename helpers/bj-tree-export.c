/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-name.h"
#include "bj-tree.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <archive.h>
#include <archive_entry.h>
#include <git2/sys/repository.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#define LINK_MAX_BYTES 4096

typedef struct archive BjArchive;
typedef struct archive_entry BjArchiveEntry;

static void
free_archive (BjArchive *archive)
{
  archive_write_free (archive);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjArchive, free_archive)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjArchiveEntry, archive_entry_free)

/* One run. */
typedef struct
{
  BjArchive *archive;
  git_repository *repository;
  guint64 entries;
} BjExport;

static gboolean
archive_failed (BjExport *self, GError **error)
{
  return bj_error_set (error, BJ_ERROR_FAILED, "Writing the archive: %s", archive_error_string (self->archive));
}

static BjArchiveEntry *
entry_new (const char *path, mode_t type, mode_t mode)
{
  BjArchiveEntry *entry = archive_entry_new ();

  archive_entry_copy_pathname (entry, path);
  archive_entry_set_filetype (entry, type);
  archive_entry_set_perm (entry, mode);
  archive_entry_set_uid (entry, 0);
  archive_entry_set_gid (entry, 0);
  archive_entry_set_mtime (entry, 0, 0);
  archive_entry_set_size (entry, 0);
  return entry;
}

/* A name that is not UTF-8 is a warning for libarchive, and stored as it is. */
static gboolean
put_header (BjExport *self, BjArchiveEntry *entry, GError **error)
{
  int result = archive_write_header (self->archive, entry);

  return result == ARCHIVE_OK || result == ARCHIVE_WARN || archive_failed (self, error);
}

static gboolean
put_file (BjExport *self, const char *path, const git_tree_entry *from, GError **error)
{
  g_autoptr(git_blob) blob = NULL;
  g_autoptr(BjArchiveEntry) entry = NULL;
  guint32 mode = git_tree_entry_filemode_raw (from);
  const char *data;
  gsize size, done = 0;

  if (git_blob_lookup (&blob, self->repository, git_tree_entry_id (from)) < 0)
    return bj_tree_git_error (error, "Reading a file");
  data = git_blob_rawcontent (blob);
  size = (gsize) git_blob_rawsize (blob);
  if (mode == GIT_FILEMODE_LINK)
    {
      g_autofree char *target = g_strndup (data, MIN (size, LINK_MAX_BYTES));

      entry = entry_new (path, S_IFLNK, 0777);
      archive_entry_copy_symlink (entry, target);
      return put_header (self, entry, error);
    }
  entry = entry_new (path, S_IFREG, mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644);
  archive_entry_set_size (entry, (la_int64_t) size);
  if (!put_header (self, entry, error))
    return FALSE;
  while (done < size)
    {
      la_ssize_t n = archive_write_data (self->archive, data + done, MIN (size - done, 1024 * 1024));

      if (n <= 0)
        return archive_failed (self, error);
      done += (gsize) n;
    }
  return TRUE;
}

static gboolean put_tree (BjExport *self, const char *path, const git_oid *id, guint level, GError **error);

static gboolean
put_entry (BjExport *self, const char *folder, const git_tree_entry *from, guint level, GError **error)
{
  const char *name = git_tree_entry_name (from);
  g_autofree char *path = *folder != '\0' ? g_strdup_printf ("%s/%s", folder, name) : g_strdup (name);
  g_autoptr(BjArchiveEntry) entry = NULL;

  if (bj_tree_name_is_refused (name))
    return bj_error_set (error, BJ_ERROR_INVALID, "The tree holds a name that is not allowed");
  switch (git_tree_entry_filemode_raw (from))
    {
    case GIT_FILEMODE_TREE:
      entry = entry_new (path, S_IFDIR, 0755);
      return put_header (self, entry, error) && put_tree (self, path, git_tree_entry_id (from), level + 1, error);
    case GIT_FILEMODE_BLOB:
    case GIT_FILEMODE_BLOB_EXECUTABLE:
    case GIT_FILEMODE_LINK:
      return put_file (self, path, from, error);
    default:
      return bj_error_set (error, BJ_ERROR_INVALID, "The tree holds something that is neither file, link nor folder");
    }
}

static gboolean
put_tree (BjExport *self, const char *path, const git_oid *id, guint level, GError **error)
{
  g_autoptr(git_tree) tree = NULL;

  if (level > BJ_TREE_DEPTH_MAX + 1)
    return bj_error_set (error, BJ_ERROR_LIMIT, "The tree is nested too deep");
  if (git_tree_lookup (&tree, self->repository, id) < 0)
    return bj_tree_git_error (error, "Reading a tree");
  for (size_t i = 0; i < git_tree_entrycount (tree); i++)
    if (!put_entry (self, path, git_tree_entry_byindex (tree, i), level, error))
      return FALSE;
  return TRUE;
}

/* export TREE; fd 3: the objects, 4: where the archive goes */
gboolean
bj_tree_export (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (3, -1, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(BjArchive) archive = archive_write_new ();
  BjExport self = { .archive = archive };
  git_oid id;

  if (odb == NULL || !bj_tree_parse_id (args[0], &id, error))
    return FALSE;
  setlocale (LC_CTYPE, "C.UTF-8"); /* names that are UTF-8 need no mark then */
  bj_tree_confine ((const int[]) { 3 }, (const gboolean[]) { FALSE }, 1);
  if (git_repository_wrap_odb (&repository, odb) < 0)
    return bj_tree_git_error (error, "Opening the objects");
  git_libgit2_opts (GIT_OPT_SET_CACHE_OBJECT_LIMIT, GIT_OBJECT_BLOB, (size_t) 0);
  self.repository = repository;
  archive_write_set_format_pax_restricted (archive);
  if (archive_write_open_fd (archive, 4) != ARCHIVE_OK)
    return archive_failed (&self, error);
  if (!put_tree (&self, "", &id, 1, error))
    return FALSE;
  return archive_write_close (archive) == ARCHIVE_OK || archive_failed (&self, error);
}

/* blob TREE PATH MAX; fd 3: the objects. Prints "none" or "blob SIZE", a newline and the bytes. */
gboolean
bj_tree_blob (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (3, -1, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(git_tree) tree = NULL;
  g_autoptr(git_tree_entry) entry = NULL;
  g_autoptr(git_odb_object) object = NULL;
  g_autofree char *head = NULL;
  guint64 max = 0;
  size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;

  if (odb == NULL || !g_ascii_string_to_unsigned (args[2], 10, 0, BJ_TREE_FILE_MAX, &max, error))
    return FALSE;
  bj_tree_confine ((const int[]) { 3 }, (const gboolean[]) { FALSE }, 1);
  if (git_repository_wrap_odb (&repository, odb) < 0)
    return bj_tree_git_error (error, "Opening the objects");
  if (!bj_tree_lookup (repository, args[0], &tree, error))
    return FALSE;
  if (tree == NULL || git_tree_entry_bypath (&entry, tree, args[1]) < 0
      || (git_tree_entry_filemode_raw (entry) & S_IFMT) != S_IFREG)
    return bj_fd_write_all (STDOUT_FILENO, "none\n", 5, error);
  if (git_odb_read_header (&size, &type, odb, git_tree_entry_id (entry)) < 0)
    return bj_tree_git_error (error, "Reading a file");
  if (size > max)
    return bj_error_set (error, BJ_ERROR_LIMIT, "The file is larger than %" G_GUINT64_FORMAT " bytes", max);
  if (git_odb_read (&object, odb, git_tree_entry_id (entry)) < 0)
    return bj_tree_git_error (error, "Reading a file");
  head = g_strdup_printf ("blob %" G_GSIZE_FORMAT "\n", git_odb_object_size (object));
  return bj_fd_write_all (STDOUT_FILENO, head, strlen (head), error)
         && bj_fd_write_all (STDOUT_FILENO, git_odb_object_data (object), git_odb_object_size (object), error);
}
