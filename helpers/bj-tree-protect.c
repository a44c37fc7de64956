/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-match.h"
#include "bj-tree-module.h"
#include "bj-tree.h"

#include "bj-error.h"

#include <git2/sys/repository.h>
#include <string.h>

#define ADDED_PREFIX "+"
#define PYTHON_PREFIX "python:"

/* One run. */
typedef struct
{
  git_odb *odb;
  git_repository *repository;
  BjTreeMatch *match;
  BjTreeMatch *added;  /* only what the old tree has not is taken away */
  GHashTable *python;  /* (element-type utf8): folders that Python looks through for modules */
} BjProtect;

/* A folder in both trees. */
typedef struct
{
  const char *path; /* "" is the top */
  guint level;
  git_tree *old; /* (nullable) */
  git_tree *new; /* (nullable) */
  gboolean keep_old; /* nothing may be added here */
  gboolean is_module; /* becomes one of Python's own modules, or a test, with an __init__ */
  gboolean is_python; /* Python looks for modules here */
  gboolean has_tests; /* a protected file lies here */
  GHashTable *stems;  /* of protected files: "test_x" for "test_x.c" */
} BjPlace;

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

static gboolean compose (BjProtect *self, BjPlace *place, GPtrArray *made, GError **error);

/* An entry of either tree that no pattern matches itself, though what is in it may be matched. */
static gboolean
compose_entry (BjProtect *self, BjPlace *below, const git_tree_entry *old, const git_tree_entry *new, GPtrArray *made,
               GError **error)
{
  g_autoptr(git_tree) old_tree = NULL;
  g_autoptr(git_tree) new_tree = NULL;
  g_autoptr(GPtrArray) inside = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tree_entry_free);
  git_oid id;

  if (!is_tree (old) && !is_tree (new))
    {
      add_entry (made, new);
      return TRUE;
    }
  if (!open_subtree (self, old, &old_tree, error) || !open_subtree (self, new, &new_tree, error))
    return FALSE;
  below->old = old_tree;
  below->new = new_tree;
  if (!compose (self, below, inside, error))
    return FALSE;
  if (inside->len == 0)
    {
      /* Nothing protected was in the old folder: a file that stands in its place may stay. */
      add_entry (made, is_tree (new) ? NULL : new);
      return TRUE;
    }
  if (!bj_tree_put_entries (self->odb, inside, &id, error))
    return FALSE;
  g_ptr_array_add (made, bj_tree_entry_new (git_tree_entry_name (old != NULL ? old : new), GIT_FILEMODE_TREE, &id));
  return TRUE;
}

static const git_tree_entry *
find_entry (git_tree *tree, const char *name)
{
  return tree != NULL ? git_tree_entry_byname (tree, name) : NULL;
}

static char *
dup_stem (const char *name)
{
  const char *dot = strrchr (name, '.');

  return dot != NULL && dot != name ? g_strndup (name, (gsize) (dot - name)) : g_strdup (name);
}

/* Whether a test's runner could take the new entry @name for a part of itself, or for the test. */
static gboolean
is_runner_input (const BjPlace *place, const char *name, const git_tree_entry *new)
{
  g_autofree char *stem = dup_stem (name);
  g_autofree char *first = g_strndup (name, strcspn (name, "."));

  if (is_tree (new))
    return FALSE;
  if ((place->is_module || place->has_tests) && g_str_has_prefix (name, "__init__."))
    return TRUE;
  if (place->is_python && (bj_tree_module_is_file (name)
                           || (git_tree_entry_filemode_raw (new) == GIT_FILEMODE_LINK && bj_tree_module_is_folder (name))))
    return TRUE;
  return bj_tree_module_is_product (name)
         && (g_hash_table_contains (place->stems, stem) || g_hash_table_contains (place->stems, first));
}

/* Another kind of entry under the same name is an added one, too. */
static gboolean
is_added (const git_tree_entry *old, const git_tree_entry *new)
{
  guint kind = 0170000;

  return new != NULL && (old == NULL || (git_tree_entry_filemode_raw (old) & kind) != (git_tree_entry_filemode_raw (new) & kind));
}

static gboolean
take_name (BjProtect *self, const BjPlace *place, const char *name, gboolean is_protected, GPtrArray *made, GError **error)
{
  const git_tree_entry *before = find_entry (place->old, name);
  const git_tree_entry *after = find_entry (place->new, name);
  gboolean folder = is_tree (before) || is_tree (after);
  g_autofree char *path = *place->path != '\0' ? g_strdup_printf ("%s/%s", place->path, name) : g_strdup (name);
  BjPlace below = { .path = path, .level = place->level + 1, .keep_old = place->keep_old };

  below.keep_old |= (folder || is_added (before, after)) && bj_tree_match_path (self->added, path, folder);
  if (is_protected || (is_added (before, after) && (below.keep_old || is_runner_input (place, name, after))))
    {
      add_entry (made, before);
      return TRUE;
    }
  below.is_module = (place->is_python && bj_tree_module_is_folder (name)) || g_hash_table_contains (place->stems, name);
  return compose_entry (self, &below, before, after, made, error);
}

static void
collect_names (BjProtect *self, const BjPlace *place, git_tree *tree, GHashTable *names)
{
  for (size_t i = 0; tree != NULL && i < git_tree_entrycount (tree); i++)
    {
      const char *name = git_tree_entry_name (git_tree_entry_byindex (tree, i));
      g_autofree char *path = *place->path != '\0' ? g_strdup_printf ("%s/%s", place->path, name) : g_strdup (name);
      gboolean folder = is_tree (find_entry (place->old, name)) || is_tree (find_entry (place->new, name));

      if (!g_hash_table_contains (names, name))
        g_hash_table_insert (names, g_strdup (name), GINT_TO_POINTER (bj_tree_match_path (self->match, path, folder)));
    }
}

/* What lies here decides what else here is dangerous. */
static void
look_around (BjProtect *self, BjPlace *place, GHashTable *names)
{
  gboolean is_package = find_entry (place->old, "__init__.py") != NULL;
  GHashTableIter iter;
  gpointer name, is_protected;

  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, &is_protected))
    if (is_protected != NULL && !is_tree (find_entry (place->old, name)))
      {
        g_hash_table_add (place->stems, dup_stem (name));
        place->has_tests |= g_str_has_suffix (name, ".py");
      }
  place->is_python = place->level == 1
                     || (!is_package && (place->has_tests || g_hash_table_contains (self->python, place->path)));
}

static gboolean
compose (BjProtect *self, BjPlace *place, GPtrArray *made, GError **error)
{
  g_autoptr(GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr(GHashTable) stems = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTableIter iter;
  gpointer name, is_protected;

  if (place->level > BJ_TREE_DEPTH_MAX + 1)
    return bj_error_set (error, BJ_ERROR_LIMIT, "The tree is nested too deep");
  collect_names (self, place, place->old, names);
  collect_names (self, place, place->new, names);
  place->stems = stems;
  look_around (self, place, names);
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, &is_protected))
    if (!take_name (self, place, name, is_protected != NULL, made, error))
      return FALSE;
  return TRUE;
}

/* The patterns of one kind, without the @prefix that says so. */
static GPtrArray *
pick_patterns (const char *const *patterns, const char *prefix)
{
  GPtrArray *picked = g_ptr_array_new ();

  for (guint i = 0; patterns[i] != NULL; i++)
    {
      gboolean plain = !g_str_has_prefix (patterns[i], ADDED_PREFIX) && !g_str_has_prefix (patterns[i], PYTHON_PREFIX);

      if (prefix == NULL ? plain : g_str_has_prefix (patterns[i], prefix))
        g_ptr_array_add (picked, (gpointer) (patterns[i] + (prefix != NULL ? strlen (prefix) : 0)));
    }
  g_ptr_array_add (picked, NULL);
  return picked;
}

static BjTreeMatch *
make_match (const char *const *patterns, const char *prefix)
{
  g_autoptr(GPtrArray) picked = pick_patterns (patterns, prefix);

  return bj_tree_match_new ((const char *const *) picked->pdata);
}

static GHashTable *
make_python (const char *const *patterns)
{
  g_autoptr(GPtrArray) picked = pick_patterns (patterns, PYTHON_PREFIX);
  GHashTable *folders = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i + 1 < picked->len; i++)
    g_hash_table_add (folders, g_ptr_array_index (picked, i));
  return folders;
}

BjTreeMatch *
bj_tree_protect_match_all (const char *const *patterns)
{
  g_autoptr(GPtrArray) all = pick_patterns (patterns, NULL);
  g_autoptr(GPtrArray) added = pick_patterns (patterns, ADDED_PREFIX);

  g_ptr_array_set_size (all, (int) all->len - 1);
  g_ptr_array_extend (all, added, NULL, NULL);
  return bj_tree_match_new ((const char *const *) all->pdata);
}

/*
 * protect OLD NEW PATTERN…; fd 3: the objects, 4: for new ones
 *
 * PATTERN: what is as it was in OLD; +PATTERN: what OLD has not is taken away; python:FOLDER: Python looks for modules there.
 */
gboolean
bj_tree_protect (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (3, 4, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(git_tree) old = NULL;
  g_autoptr(git_tree) new = NULL;
  g_autoptr(BjTreeMatch) match = make_match (args + 2, NULL);
  g_autoptr(BjTreeMatch) added = make_match (args + 2, ADDED_PREFIX);
  g_autoptr(GHashTable) python = make_python (args + 2);
  g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tree_entry_free);
  BjProtect self = { .odb = odb, .match = match, .added = added, .python = python };
  BjPlace top = { .path = "", .level = 1 };
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
  top.old = old;
  top.new = new;
  if (!compose (&self, &top, made, error) || !bj_tree_put_entries (odb, made, &id, error))
    return FALSE;
  git_oid_tostr (hex, sizeof hex, &id);
  bj_tree_answer_add (answer, "tree", "%s", hex);
  return TRUE;
}
