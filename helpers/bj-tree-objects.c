/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>
#include <string.h>
#include <zlib.h>

#define COMPRESSION 1 /* a tree is written while somebody waits */

gboolean
bj_tree_git_error (GError **error, const char *what)
{
  const git_error *last = git_error_last ();

  return bj_error_set (error, BJ_ERROR_FAILED, "%s: %s", what, last != NULL ? last->message : "unknown failure of libgit2");
}

git_odb *
bj_tree_odb_new (int objects, int quarantine, GError **error)
{
  g_autoptr(git_odb) odb = NULL;
  git_odb_backend *loose = NULL;
  g_autofree char *old = g_strdup_printf ("/proc/self/fd/%d", objects);
  g_autofree char *made = g_strdup_printf ("/proc/self/fd/%d", quarantine);

  if (git_odb_new (&odb) < 0 || git_odb_add_disk_alternate (odb, old) < 0)
    {
      bj_tree_git_error (error, "Opening the objects");
      return NULL;
    }
  if (quarantine < 0)
    return g_steal_pointer (&odb);
  if (git_odb_backend_loose (&loose, made, COMPRESSION, 0, 0700, 0400) < 0 || git_odb_add_backend (odb, loose, 10) < 0)
    {
      bj_tree_git_error (error, "Opening the folder for new objects");
      return NULL;
    }
  return g_steal_pointer (&odb);
}

/* Header and content as git keeps them in a file of their own. Returns: (transfer full): %NULL if zlib fails */
static GByteArray *
deflate_object (gconstpointer data, gsize length, git_object_t type)
{
  g_autoptr(GByteArray) packed = g_byte_array_new ();
  g_autofree char *head = g_strdup_printf ("%s %" G_GSIZE_FORMAT, git_object_type2string (type), length);
  z_stream stream = { .next_in = (Bytef *) head, .avail_in = (uInt) strlen (head) + 1 };
  int result;

  if (length > G_MAXINT32 || deflateInit (&stream, COMPRESSION) != Z_OK)
    return NULL;
  g_byte_array_set_size (packed, (guint) deflateBound (&stream, length + stream.avail_in) + 64);
  stream.next_out = packed->data;
  stream.avail_out = packed->len;
  result = deflate (&stream, Z_NO_FLUSH);
  stream.next_in = (Bytef *) data;
  stream.avail_in = (uInt) length;
  result = result == Z_OK ? deflate (&stream, Z_FINISH) : result;
  g_byte_array_set_size (packed, (guint) stream.total_out);
  deflateEnd (&stream);
  return result == Z_STREAM_END ? g_steal_pointer (&packed) : NULL;
}

/*
 * Straight to its name: the daemon takes the quarantine over as a whole or not at all, so there is no need for a temporary
 * name. For thousands of small files that is twice as fast as libgit2's own writing.
 */
static gboolean
write_loose (const git_oid *id, GByteArray *packed, GError **error)
{
  char hex[GIT_OID_HEXSZ + 1];
  g_autofree char *folder = g_strndup (git_oid_tostr (hex, sizeof hex, id), 2);
  g_autofree char *path = g_strdup_printf ("%s/%s", folder, hex + 2);
  g_auto(BjFd) fd = openat (BJ_TREE_QUARANTINE, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

  if (fd < 0 && errno == ENOENT)
    {
      mkdirat (BJ_TREE_QUARANTINE, folder, 0700);
      fd = openat (BJ_TREE_QUARANTINE, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
    }
  if (fd < 0)
    return errno == EEXIST || bj_fd_set_io_error (error, errno, "Writing an object");
  return bj_fd_write_all (fd, packed->data, packed->len, error);
}

gboolean
bj_tree_put (git_odb *odb, gconstpointer data, gsize length, git_object_t type, git_oid *id, GError **error)
{
  g_autoptr(GByteArray) packed = NULL;

  if (git_odb_hash (id, data, length, type) < 0)
    return bj_tree_git_error (error, "Hashing an object");
  if (git_odb_exists_ext (odb, id, GIT_ODB_LOOKUP_NO_REFRESH))
    return TRUE;
  packed = deflate_object (data, length, type);
  if (packed == NULL)
    return bj_error_set (error, BJ_ERROR_FAILED, "Compressing an object failed");
  return write_loose (id, packed, error);
}

gboolean
bj_tree_parse_id (const char *text, git_oid *id, GError **error)
{
  if (text == NULL || strlen (text) != GIT_OID_HEXSZ || git_oid_fromstr (id, text) < 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "\"%s\" is not the id of an object", text != NULL ? text : "");
  return TRUE;
}

gboolean
bj_tree_lookup (git_repository *repository, const char *id, git_tree **tree, GError **error)
{
  git_oid oid;

  *tree = NULL;
  if (g_strcmp0 (id, "-") == 0)
    return TRUE;
  if (!bj_tree_parse_id (id, &oid, error))
    return FALSE;
  if (git_tree_lookup (tree, repository, &oid) < 0)
    return bj_tree_git_error (error, "Reading a tree");
  return TRUE;
}

BjTreeEntry *
bj_tree_entry_new (const char *name, guint32 mode, const git_oid *id)
{
  BjTreeEntry *entry = g_new0 (BjTreeEntry, 1);

  entry->name = g_strdup (name);
  entry->mode = mode;
  entry->id = *id;
  return entry;
}

void
bj_tree_entry_free (BjTreeEntry *entry)
{
  g_free (entry->name);
  g_free (entry);
}

/* Git sorts a folder as if its name ended with a slash. */
static int
compare_entries (gconstpointer a, gconstpointer b)
{
  const BjTreeEntry *x = *(const BjTreeEntry *const *) a;
  const BjTreeEntry *y = *(const BjTreeEntry *const *) b;
  gsize length_x = strlen (x->name), length_y = strlen (y->name);
  gsize common = MIN (length_x, length_y);
  int order = memcmp (x->name, y->name, common);
  guint8 next_x = (guint8) x->name[common], next_y = (guint8) y->name[common];

  if (order != 0)
    return order;
  if (next_x == 0 && x->mode == GIT_FILEMODE_TREE)
    next_x = '/';
  if (next_y == 0 && y->mode == GIT_FILEMODE_TREE)
    next_y = '/';
  return (int) next_x - (int) next_y;
}

gboolean
bj_tree_put_entries (git_odb *odb, GPtrArray *entries, git_oid *id, GError **error)
{
  g_autoptr(GByteArray) tree = g_byte_array_new ();

  g_ptr_array_sort (entries, compare_entries);
  for (guint i = 0; i < entries->len; i++)
    {
      BjTreeEntry *entry = g_ptr_array_index (entries, i);
      g_autofree char *head = g_strdup_printf ("%o %s", entry->mode, entry->name);

      g_byte_array_append (tree, (const guint8 *) head, (guint) strlen (head) + 1);
      g_byte_array_append (tree, entry->id.id, GIT_OID_RAWSZ);
    }
  return bj_tree_put (odb, tree->data != NULL ? tree->data : (const guint8 *) "", tree->len, GIT_OBJECT_TREE, id, error);
}
