/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-project-answer.h"
#include "bj-spawn.h"

G_BEGIN_DECLS

/* Guests' files on the host, see CONTRIBUTING.md: 1024 slots of 65,536 ids. */
#define BJ_PROJECT_GUEST_UID_FIRST 1910000000u
#define BJ_PROJECT_GUEST_UID_LAST (BJ_PROJECT_GUEST_UID_FIRST + 1024u * 65536u - 1u)
#define BJ_PROJECT_HELPER_UID 1900200001u

/* What a run of the helper needs. The fds are opened and checked by the caller, and stay its own. */
typedef struct
{
  const char *helper; /* absolute path of belljar-tree */
  uid_t uid;          /* the project's owner */
  gid_t gid;
  int work; /* fd of work/, -1 where it is not needed */
  int repo; /* fd of repo.git */
} BjProjectTree;

/** bj_project_tree_own: Gives everything below work/ to the owner and moves each .git aside; warnings are in @answer. */
gboolean bj_project_tree_own (const BjProjectTree *self, BjProjectAnswer *answer, GCancellable *cancellable, GError **error);
/** bj_project_tree_write: Writes work/ as a tree into repo.git. */
gboolean bj_project_tree_write (const BjProjectTree *self, BjProjectAnswer *answer, GCancellable *cancellable, GError **error);
gboolean bj_project_tree_diff (const BjProjectTree *self, const char *old_tree, const char *new_tree,
                               const char *const *patterns, BjProjectAnswer *answer, GCancellable *cancellable, GError **error);
/**
 * bj_project_tree_status: How work/ differs from @old_tree ("-": the empty one) now. A guest may write there meanwhile; nothing in work/
 * is touched, and nothing new stays in repo.git. @written: what writing the tree warned of
 */
gboolean bj_project_tree_status (const BjProjectTree *self, const char *old_tree, BjProjectAnswer *written, BjProjectAnswer *differs,
                                 GCancellable *cancellable, GError **error);
/** bj_project_tree_patch: Likewise; @path: "" for all; @patch: (out) (transfer full): its first @max bytes */
gboolean bj_project_tree_patch (const BjProjectTree *self, const char *old_tree, const char *path, gsize max, GBytes **patch,
                                GCancellable *cancellable, GError **error);
gboolean bj_project_tree_protect (const BjProjectTree *self, const char *old_tree, const char *new_tree,
                                  const char *const *patterns, BjProjectAnswer *answer, GError **error);
gboolean bj_project_tree_export (const BjProjectTree *self, const char *tree, int fd, GCancellable *cancellable, GError **error);
gboolean bj_project_tree_read_blob (const BjProjectTree *self, const char *tree, const char *path, gsize max, GBytes **blob,
                                    GError **error);

/* One copy between a folder of somebody's and work/. */
typedef struct
{
  int fd;           /* the caller's: source of a copy in, destination of a copy out */
  uid_t uid;        /* whose rights count */
  gid_t gid;
  const char *path; /* in the project; "" is its top */
  gboolean in;
  BjSpawnLine on_line; /* "progress DONE TOTAL" in bytes */
  gpointer user_data;
} BjProjectCopy;

gboolean bj_project_tree_copy (const BjProjectTree *self, const BjProjectCopy *copy, BjProjectAnswer *answer,
                               GCancellable *cancellable, GError **error);
/** bj_project_tree_forget_drafts: Removes what an interrupted run left in repo.git. */
gboolean bj_project_tree_forget_drafts (int repo, GError **error);

G_END_DECLS
