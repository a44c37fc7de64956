/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree.h"

#include "bj-error.h"

#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>
#include <string.h>

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

gboolean
bj_tree_put (git_odb *odb, gconstpointer data, gsize length, git_object_t type, git_oid *id, GError **error)
{
  if (git_odb_hash (id, data, length, type) < 0)
    return bj_tree_git_error (error, "Hashing an object");
  if (git_odb_exists_ext (odb, id, GIT_ODB_LOOKUP_NO_REFRESH))
    return TRUE;
  if (git_odb_write (id, odb, data, length, type) < 0)
    return bj_tree_git_error (error, "Writing an object");
  return TRUE;
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
