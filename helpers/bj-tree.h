/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>
#include <git2.h>
#include <sys/stat.h>

G_BEGIN_DECLS

/*
 * belljar-tree: the only program that reads what a guest wrote below a project's folder. It gets file descriptors (3, 4, 5) and
 * no paths, runs in a sandbox, and answers on standard output with lines "KEY VALUE" that end with a line "end".
 */
#define BJ_TREE_DEPTH_MAX 128
#define BJ_TREE_FILES_MAX (1000 * 1000)
#define BJ_TREE_FILE_MAX (G_GUINT64_CONSTANT (1) << 30)
#define BJ_TREE_BYTES_MAX (G_GUINT64_CONSTANT (4) << 30)
#define BJ_TREE_WARNINGS_MAX 100
#define BJ_TREE_DIFF_MAX 2000

#define BJ_TREE_QUARANTINE 4 /* fd of the folder for new objects, in the commands that make some */

/* Folder names that a guest's .git gets; never part of a tree. */
#define BJ_TREE_ASIDE ".git-from-guest-"

/* What a command found out. */
typedef struct
{
  GString *text;    /* (owned): the answer so far */
  guint warnings;   /* how many stand in it */
  guint64 left_out; /* how many did not fit */
} BjTreeAnswer;

void bj_tree_answer_init (BjTreeAnswer *answer);
void bj_tree_answer_clear (BjTreeAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjTreeAnswer, bj_tree_answer_clear)
void bj_tree_answer_add (BjTreeAnswer *answer, const char *key, const char *format, ...) G_GNUC_PRINTF (3, 4);
/** bj_tree_answer_warn: @folder, @name: raw bytes, escaped here; @what: the rest of the sentence */
void bj_tree_answer_warn (BjTreeAnswer *answer, const char *folder, const char *name, const char *what);
gboolean bj_tree_answer_print (BjTreeAnswer *answer, GError **error);

/* Folders by descriptor only. */

/** bj_tree_open: Like openat2() beneath @folder: no links, no other file system, never blocks. Returns: fd or -1 with errno */
int bj_tree_open (int folder, const char *name, int flags);
/** bj_tree_list: Returns: (transfer full): names in @folder in byte order, without "." and ".."; %NULL on failure */
GPtrArray *bj_tree_list (int folder, GError **error);
/** bj_tree_confine: Landlock, where the kernel has it: from now on only what lies below the @n_fds folders can be opened */
void bj_tree_confine (const int *fds, const gboolean *writable, guint n_fds);

/* Git objects, without a repository and its configuration. */

/** bj_tree_odb_new: @objects: fd of a folder of objects, only read; @quarantine: fd of a folder for new ones, or -1 */
git_odb *bj_tree_odb_new (int objects, int quarantine, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_odb, git_odb_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_odb_object, git_odb_object_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_repository, git_repository_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_tree, git_tree_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_tree_entry, git_tree_entry_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_blob, git_blob_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_diff, git_diff_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_patch, git_patch_free)
/** bj_tree_git_error: Returns: always %FALSE; @error gets libgit2's last message */
gboolean bj_tree_git_error (GError **error, const char *what);
/** bj_tree_put: Writes an object into the quarantine unless it is there already. */
gboolean bj_tree_put (git_odb *odb, gconstpointer data, gsize length, git_object_t type, git_oid *id, GError **error);
/** bj_tree_parse_id: @text: 40 hexadecimal digits */
gboolean bj_tree_parse_id (const char *text, git_oid *id, GError **error);
/** bj_tree_lookup: @id: "-" is the empty tree, which gives %NULL without error */
gboolean bj_tree_lookup (git_repository *repository, const char *id, git_tree **tree, GError **error);

/** bj_tree_compare: @args: two ids for bj_tree_lookup(); @options: initialized, completed here */
gboolean bj_tree_compare (git_repository *repository, const char *const *args, git_diff_options *options, git_diff **diff,
                          GError **error);

/* The entries of one tree, as git sorts and writes them. */
typedef struct
{
  char *name; /* (owned) */
  guint32 mode;
  git_oid id;
} BjTreeEntry;

void bj_tree_entry_free (BjTreeEntry *entry);
BjTreeEntry *bj_tree_entry_new (const char *name, guint32 mode, const git_oid *id);
/** bj_tree_put_entries: @entries: (element-type BjTreeEntry): any order */
gboolean bj_tree_put_entries (git_odb *odb, GPtrArray *entries, git_oid *id, GError **error);

/* Each command: @args after its own name. The caller prints the answer. */
gboolean bj_tree_own (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_write (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_diff (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_status (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_patch (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_protect (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_export (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_blob (const char *const *args, BjTreeAnswer *answer, GError **error);
gboolean bj_tree_copy (const char *const *args, BjTreeAnswer *answer, GError **error);

G_END_DECLS
