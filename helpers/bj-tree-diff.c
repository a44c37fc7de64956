/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-match.h"
#include "bj-tree-module.h"
#include "bj-tree-name.h"
#include "bj-tree.h"

#include "bj-error.h"

#include <git2/sys/repository.h>
#include <string.h>

#define LINES_FILE_MAX (2 * 1024 * 1024)
#define LINES_TOTAL_MAX (G_GUINT64_CONSTANT (128) << 20)

static const char *
status_name (git_delta_t status)
{
  switch (status)
    {
    case GIT_DELTA_ADDED:
      return "added";
    case GIT_DELTA_DELETED:
      return "deleted";
    case GIT_DELTA_TYPECHANGE:
      return "typechange";
    default:
      return "modified";
    }
}

static guint64
side_size (git_odb *odb, const git_diff_file *file)
{
  size_t size = 0;
  git_object_t type;

  if (git_oid_is_zero (&file->id) || git_odb_read_header (&size, &type, odb, &file->id) < 0)
    return 0;
  return size;
}

/* Lines of one file, -1 where counting them makes no sense. @budget: bytes that may still be compared */
static void
count_lines (git_diff *diff, size_t index, git_odb *odb, guint64 *budget, int *added, int *removed)
{
  const git_diff_delta *delta = git_diff_get_delta (diff, index);
  guint64 size = side_size (odb, &delta->old_file) + side_size (odb, &delta->new_file);
  g_autoptr(git_patch) patch = NULL;
  size_t n_added = 0, n_removed = 0;

  *added = *removed = -1;
  if (size > LINES_FILE_MAX || size > *budget)
    return;
  *budget -= size;
  if (git_patch_from_diff (&patch, diff, index) < 0 || patch == NULL)
    return;
  if (git_patch_get_delta (patch)->flags & GIT_DIFF_FLAG_BINARY)
    return;
  if (git_patch_line_stats (NULL, &n_added, &n_removed, patch) < 0)
    return;
  *added = (int) n_added;
  *removed = (int) n_removed;
}

/* What a reader must not miss comes first: what tests rest on, then what was there before. */
typedef enum
{
  BJ_RANK_PROTECTED,
  BJ_RANK_CHANGED,
  BJ_RANK_ADDED,
  BJ_RANKS,
} BjRank;

static const char *
delta_path (const git_diff_delta *delta)
{
  return delta->status == GIT_DELTA_DELETED ? delta->old_file.path : delta->new_file.path;
}

static gboolean
is_protected (BjTreeMatch *match, const char *path)
{
  g_autofree char *folder = g_strdup (path);

  if (bj_tree_match_path (match, path, FALSE) || (strchr (path, '/') == NULL && bj_tree_module_is_file (path)))
    return TRUE;
  for (char *slash = strchr (folder, '/'); slash != NULL; slash = strchr (slash + 1, '/'))
    {
      *slash = '\0';
      if (bj_tree_match_path (match, folder, TRUE))
        return TRUE;
      *slash = '/';
    }
  return FALSE;
}

static BjRank
rank (BjTreeMatch *match, const git_diff_delta *delta)
{
  if (is_protected (match, delta_path (delta)))
    return BJ_RANK_PROTECTED;
  return delta->status == GIT_DELTA_ADDED ? BJ_RANK_ADDED : BJ_RANK_CHANGED;
}

static void
add_entry (git_diff *diff, size_t index, git_odb *odb, guint64 *budget, BjTreeAnswer *answer)
{
  const git_diff_delta *delta = git_diff_get_delta (diff, index);
  gboolean encoded;
  g_autofree char *text = bj_tree_name_encode (delta_path (delta), &encoded);
  int added, removed;

  count_lines (diff, index, odb, budget, &added, &removed);
  bj_tree_answer_add (answer, "entry", "%s %d %d %d %s", status_name (delta->status), added, removed, encoded, text);
}

/* All are counted; of very many, those of the first ranks are named. */
static void
add_entries (git_diff *diff, git_odb *odb, BjTreeMatch *match, BjTreeAnswer *answer)
{
  size_t n = git_diff_num_deltas (diff);
  guint64 budget = LINES_TOTAL_MAX;
  guint left = BJ_TREE_DIFF_MAX;
  g_autofree guint8 *ranks = g_new (guint8, n + 1);

  for (size_t i = 0; i < n; i++)
    ranks[i] = (guint8) rank (match, git_diff_get_delta (diff, i));
  bj_tree_answer_add (answer, "files", "%zu", n);
  for (guint8 wanted = 0; wanted < BJ_RANKS; wanted++)
    for (size_t i = 0; i < n && left > 0; i++)
      if (ranks[i] == wanted)
        {
          add_entry (diff, i, odb, &budget, answer);
          left--;
        }
}

gboolean
bj_tree_compare (git_repository *repository, const char *const *args, git_diff_options *options, git_diff **diff, GError **error)
{
  g_autoptr(git_tree) old = NULL;
  g_autoptr(git_tree) new = NULL;

  if (!bj_tree_lookup (repository, args[0], &old, error) || !bj_tree_lookup (repository, args[1], &new, error))
    return FALSE;
  options->flags |= GIT_DIFF_INCLUDE_TYPECHANGE;
  options->ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
  options->max_size = LINES_FILE_MAX;
  return git_diff_tree_to_tree (diff, repository, old, new, options) >= 0 || bj_tree_git_error (error, "Comparing two trees");
}

/* @quarantine: fd of more objects, or -1 */
static gboolean
diff_trees (const char *const *args, int quarantine, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (3, quarantine, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(git_diff) diff = NULL;
  g_autoptr(BjTreeMatch) match = bj_tree_protect_match_all (args + 2);
  git_diff_options options;

  if (odb == NULL)
    return FALSE;
  bj_tree_confine ((const int[]) { 3, 4 }, (const gboolean[]) { FALSE, FALSE }, quarantine < 0 ? 1 : 2);
  if (git_repository_wrap_odb (&repository, odb) < 0)
    return bj_tree_git_error (error, "Opening the objects");
  git_diff_options_init (&options, GIT_DIFF_OPTIONS_VERSION);
  options.context_lines = 0;
  if (!bj_tree_compare (repository, args, &options, &diff, error))
    return FALSE;
  add_entries (diff, odb, match, answer);
  return TRUE;
}

/* diff OLD NEW PATTERN…; fd 3: the objects; PATTERN: what comes first, as in protect */
gboolean
bj_tree_diff (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  return diff_trees (args, -1, answer, error);
}

/* status OLD NEW; fd 3: the objects, 4: those of NEW that are not among them */
gboolean
bj_tree_status (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  return diff_trees (args, BJ_TREE_QUARANTINE, answer, error);
}
