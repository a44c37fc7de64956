/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-progress.h"
#include "bj-store.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * Projects: STATE/projects/NAME/{work/,repo.git/,project.ini}. The folder NAME is the owner's with mode 0700, work/ is the
 * owner's, repo.git is root's. The daemon itself never opens a file below work/ and never parses a git object that came from there:
 * the helper belljar-tree does (helpers/), in a sandbox, with fds from us. All functions block (worker threads only).
 */
#define BJ_TYPE_PROJECT_STORE (bj_project_store_get_type ())
G_DECLARE_FINAL_TYPE (BjProjectStore, bj_project_store, BJ, PROJECT_STORE, GObject)

/** bj_project_store_new: @dir: STATE/projects; @helper: absolute path of belljar-tree */
BjProjectStore *bj_project_store_new (BjStore *store, const char *dir, const char *helper);

gboolean bj_project_store_create (BjProjectStore *self, const char *name, uid_t uid, gid_t gid, GError **error);
gboolean bj_project_store_delete (BjProjectStore *self, const char *name, GError **error);
/** bj_project_store_lookup: Returns: (transfer full): a copy of its row, or BJ_ERROR_NOT_FOUND with the fix in the message */
BjProjectRow *bj_project_store_lookup (BjProjectStore *self, const char *name, GError **error);
GPtrArray *bj_project_store_list (BjProjectStore *self);
/** bj_project_store_open_work: Returns: an O_PATH|O_DIRECTORY fd of work/, owned by the caller, or -1 */
int bj_project_store_open_work (BjProjectStore *self, const char *name, GError **error);
char *bj_project_store_dup_work_path (BjProjectStore *self, const char *name);

/* What writing a tree saw. */
typedef struct
{
  char *tree;        /* hex object id */
  GStrv warnings;    /* what was left out and why, one sentence each, untrusted names already escaped; capped */
  guint64 files;
  guint64 bytes;
} BjTreeResult;

void bj_tree_result_clear (BjTreeResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjTreeResult, bj_tree_result_clear)

/**
 * bj_project_store_write_tree:
 * Sets ownership below work/ to the owner's (links not followed), moves a guest's .git aside (work/.git-from-guest-N is left out of
 * trees), and writes every regular file and symbolic link into repo.git as a tree. FIFOs, devices, sockets are left out
 * with a warning; so is what passes the caps (1 million files, 4 GiB in all, 1 GiB a file, depth 128).
 */
gboolean bj_project_store_write_tree (BjProjectStore *self, const char *name, BjTreeResult *result,
                                      GCancellable *cancellable, GError **error);

/** bj_project_store_head: Returns: (transfer full) (nullable): newest commit; %NULL without error when there is none */
char *bj_project_store_head (BjProjectStore *self, const char *name, char **tree, GError **error);

/**
 * bj_project_store_commit:
 * @trailers: (nullable): "Key: value" lines after the message
 * @author: "owner" or the project's name
 *
 * Commits exactly @tree on top of HEAD (branch main). Returns: (transfer full): commit id
 */
char *bj_project_store_commit (BjProjectStore *self, const char *name, const char *tree, const char *author,
                               const char *message, const char *const *trailers, GError **error);

/**
 * bj_project_store_diff:
 * @old_tree: (nullable): %NULL is the empty tree
 * @first: (nullable): patterns as for bj_project_store_restore_protected(); what matches comes first, then what changed, then
 *   what was added
 * @total: (out) (optional): how many files differ, also those that are not in the array
 * Returns: (transfer full): array of {path, path_encoded (bool, when the name is not UTF-8 and percent-escaped), status (added, modified,
 *   deleted, typechange), added, removed (lines, -1 binary)}, at most 2,000 entries
 */
JsonArray *bj_project_store_diff (BjProjectStore *self, const char *name, const char *old_tree, const char *new_tree,
                                  const char *const *first, guint64 *total, GError **error);

/**
 * bj_project_store_status:
 * @total: (out): how many files differ, also those that are not in the array
 * @warnings: (out) (transfer full): what could not be part of a tree now
 *
 * What differs in work/ from the newest commit at this moment, while a guest may write there: nothing is changed, given away, moved
 * or kept. Returns: (transfer full): as bj_project_store_diff() does
 */
JsonArray *bj_project_store_status (BjProjectStore *self, const char *name, guint64 *total, GStrv *warnings,
                                    GCancellable *cancellable, GError **error);
/**
 * bj_project_store_patch:
 * @path: (nullable): only this file or folder
 * @cut: (out): whether more than @max bytes differ
 *
 * Likewise, as a unified diff: hostile bytes.
 */
GBytes *bj_project_store_patch (BjProjectStore *self, const char *name, const char *path, gsize max, gboolean *cut,
                                GCancellable *cancellable, GError **error);

/**
 * bj_project_store_restore_protected:
 * @patterns: file or folder names and globs relative to the top: [check] protect, default test folders, files a command names
 * Returns: (transfer full): the tree @new_tree with every path that matches taken from @old_tree (added ones removed); the same id
 *   when nothing differs
 */
char *bj_project_store_restore_protected (BjProjectStore *self, const char *name, const char *old_tree,
                                          const char *new_tree, const char *const *patterns, GError **error);

/** bj_project_store_export_tar: Writes @tree as a tar archive (pax) to @fd: owner 0, times 0, links kept */
gboolean bj_project_store_export_tar (BjProjectStore *self, const char *name, const char *tree, int fd,
                                      GCancellable *cancellable, GError **error);

/** bj_project_store_read_blob: Returns: (transfer full) (nullable): a file of @tree, %NULL without error if it is not there */
GBytes *bj_project_store_read_blob (BjProjectStore *self, const char *name, const char *tree, const char *path,
                                    gsize max, GError **error);

/** bj_project_store_log: Returns: (transfer full): array of {commit, time, subject, verdict, session}, newest first */
JsonArray *bj_project_store_log (BjProjectStore *self, const char *name, guint count, GError **error);

/**
 * bj_project_store_copy_in:
 * @source: fd of a folder or regular file; copies with the owner's rights only
 * @left_out: (out) (optional) (transfer full): what was not copied and why, a line each, at most 101
 */
gboolean bj_project_store_copy_in (BjProjectStore *self, const char *name, int source, const char *path,
                                   BjProgress *progress, GCancellable *cancellable, GStrv *left_out, GError **error);
/** bj_project_store_copy_out: @destination: fd of a folder of @uid; copies with the rights of @uid only */
gboolean bj_project_store_copy_out (BjProjectStore *self, const char *name, int destination, uid_t uid, gid_t gid,
                                    const char *path, BjProgress *progress, GCancellable *cancellable, GStrv *left_out,
                                    GError **error);

/* belljar.ini of a project's tree: [check] command, setup, protect, network; [machine] memory. */
typedef struct
{
  char *check;    /* "" when not declared */
  char *setup;    /* "" when not declared */
  GStrv protect;
  gboolean network;
  guint memory_mib; /* 0: default */
} BjProjectSettings;

void bj_project_settings_clear (BjProjectSettings *settings);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjProjectSettings, bj_project_settings_clear)
/** bj_project_settings_parse: Errors name line and key. Pure. */
gboolean bj_project_settings_parse (GBytes *ini, BjProjectSettings *settings, GError **error);

/* signal "changed" (const char *name): emitted in the thread that changed it */

G_END_DECLS
