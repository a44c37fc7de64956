/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-match.h"
#include "bj-tree.h"

#include "bj-error.h"

#include <git2/sys/repository.h>
#include <string.h>

/* One run. */
typedef struct
{
  git_odb *odb;
  git_repository *repository;
  BjTreeMatch *match;
} BjProtect;

static gboolean
is_tree (const git_tree_entry *entry)
{
  return entry != NULL && git_tree_entry_filemode_raw (entry) == GIT_FILEMODE_TREE;
}

static gboolean
open_subtree (BjProtect *self, const git_tree_entry *entry, git_tree **tree, GError **error)
{
  *tree = NULL;
  if (!is_tree (entry))
    return TRUE;
  if (git_tree_lookup (tree, self->repository, git_tree_entry_id (entry)) < 0)
    return bj_tree_git_error (error, "Reading a tree");
  return TRUE;
}

static void
add_entry (GPtrArray *made, const git_tree_entry *entry)
{
  if (entry != NULL)
    g_ptr_array_add (made, bj_tree_entry_new (git_tree_entry_name (entry), git_tree_entry_filemode_raw (entry),
                                              git_tree_entry_id (entry)));
}

static gboolean compose (BjProtect *self, git_tree *old, git_tree *new, const char *path, guint level, GPtrArray *made,
                         GError **error);

/* An entry of either tree that no pattern matches itself, though what is in it may be matched. */
static gboolean
compose_entry (BjProtect *self, const git_tree_entry *old, const git_tree_entry *new, const char *path, guint level,
               GPtrArray *made, GError **error)
{
  g_autoptr(git_tree) old_tree = NULL;
  g_autoptr(git_tree) new_tree = NULL;
  g_autoptr(GPtrArray) below = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tree_entry_free);
  git_oid id;

  if (!is_tree (old) && !is_tree (new))
    {
      add_entry (made, new);
      return TRUE;
    }
  if (!open_subtree (self, old, &old_tree, error) || !open_subtree (self, new, &new_tree, error))
    return FALSE;
  if (!compose (self, old_tree, new_tree, path, level + 1, below, error))
    return FALSE;
  if (below->len == 0)
    {
      /* Nothing protected was in the old folder: a file that stands in its place may stay. */
      add_entry (made, is_tree (new) ? NULL : new);
      return TRUE;
    }
  if (!bj_tree_put_entries (self->odb, below, &id, error))
    return FALSE;
  g_ptr_array_add (made, bj_tree_entry_new (git_tree_entry_name (old != NULL ? old : new), GIT_FILEMODE_TREE, &id));
  return TRUE;
}

static gboolean
take_name (BjProtect *self, git_tree *old, git_tree *new, const char *name, const char *folder, guint level,
           GPtrArray *made, GError **error)
{
  const git_tree_entry *before = old != NULL ? git_tree_entry_byname (old, name) : NULL;
  const git_tree_entry *after = new != NULL ? git_tree_entry_byname (new, name) : NULL;
  g_autofree char *path = *folder != '\0' ? g_strdup_printf ("%s/%s", folder, name) : g_strdup (name);

  if (bj_tree_match_path (self->match, path, is_tree (before) || is_tree (after)))
    {
      add_entry (made, before);
      return TRUE;
    }
  return compose_entry (self, before, after, path, level, made, error);
}

static void
collect_names (git_tree *tree, GHashTable *names)
{
  for (size_t i = 0; tree != NULL && i < git_tree_entrycount (tree); i++)
    g_hash_table_add (names, g_strdup (git_tree_entry_name (git_tree_entry_byindex (tree, i))));
}

static gboolean
compose (BjProtect *self, git_tree *old, git_tree *new, const char *path, guint level, GPtrArray *made, GError **error)
{
  g_autoptr(GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTableIter iter;
  gpointer name;

  if (level > BJ_TREE_DEPTH_MAX + 1)
    return bj_error_set (error, BJ_ERROR_LIMIT, "The tree is nested too deep");
  collect_names (old, names);
  collect_names (new, names);
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    if (!take_name (self, old, new, name, path, level, made, error))
      return FALSE;
  return TRUE;
}

/* protect OLD NEW PATTERN…; fd 3: the objects, 4: for new ones */
gboolean
bj_tree_protect (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (3, 4, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(git_tree) old = NULL;
  g_autoptr(git_tree) new = NULL;
  g_autoptr(BjTreeMatch) match = bj_tree_match_new (args + 2);
  g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tree_entry_free);
  BjProtect self = { .odb = odb, .match = match };
  char hex[GIT_OID_HEXSZ + 1];
  git_oid id;

  if (odb == NULL)
    return FALSE;
  bj_tree_confine ((const int[]) { 3, 4 }, (const gboolean[]) { FALSE, TRUE }, 2);
  if (git_repository_wrap_odb (&repository, odb) < 0)
    return bj_tree_git_error (error, "Opening the objects");
  self.repository = repository;
  if (!bj_tree_lookup (repository, args[0], &old, error) || !bj_tree_lookup (repository, args[1], &new, error))
    return FALSE;
  if (!compose (&self, old, new, "", 1, made, error) || !bj_tree_put_entries (odb, made, &id, error))
    return FALSE;
  git_oid_tostr (hex, sizeof hex, &id);
  bj_tree_answer_add (answer, "tree", "%s", hex);
  return TRUE;
}
