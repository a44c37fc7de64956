/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-tree.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-project-folder.h"
#include "bj-project-protect.h"
#include "bj-sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define QUARANTINE "quarantine-"
#define OBJECTS_MAX (4 * 1000 * 1000)
#define OBJECTS_BYTES_MAX (G_GUINT64_CONSTANT (6) << 30)
#define ANSWER_MAX (256 * 1024 * 1024) /* 2,000 entries of the longest paths */
#define SHORT_TIMEOUT_S 300
#define LONG_TIMEOUT_S 1800
#define PATTERNS_MAX 500

/* One start of the helper. */
typedef struct
{
  const char *const *args;
  int fds[3]; /* 0 ends the list */
  uid_t uid;
  gid_t gid;
  gboolean as_root;
  guint timeout_s;
  gsize max_output;
  BjSpawnLine on_line;
  gpointer user_data;
} BjHelperRun;

/* The helper's own sentence is for people; how it is started is not. */
static void
keep_sentence (GError **error)
{
  static const char marker[] = " failed with exit code 1: ";
  const char *found = error != NULL && *error != NULL ? strstr ((*error)->message, marker) : NULL;
  g_autofree char *sentence = found != NULL ? g_strdup (found + strlen (marker)) : NULL;

  if (sentence != NULL && *sentence != '\0')
    {
      g_free ((*error)->message);
      (*error)->message = g_steal_pointer (&sentence);
    }
}

static gboolean
run_helper (const BjProjectTree *self, const BjHelperRun *run, GBytes **output, GCancellable *cancellable, GError **error)
{
  BjSandbox sandbox = { .uid = run->uid, .gid = run->gid, .program = self->helper, .arguments = run->args,
                        .keep_root_for_chown = run->as_root };
  g_auto(GStrv) argv = bj_sandbox_dup_argv (&sandbox);
  BjSpawn spawn = { .argv = (const char *const *) argv, .timeout_s = run->timeout_s, .max_output = run->max_output,
                    .on_line = run->on_line, .user_data = run->user_data };

  memcpy (spawn.pass_fd, run->fds, sizeof run->fds);
  if (bj_spawn_run (&spawn, output, cancellable, error))
    return TRUE;
  keep_sentence (error);
  return FALSE;
}

static gboolean
ask_helper (const BjProjectTree *self, const BjHelperRun *run, BjProjectAnswer *answer, GCancellable *cancellable,
            GError **error)
{
  g_autoptr(GBytes) output = NULL;

  return run_helper (self, run, &output, cancellable, error) && bj_project_answer_parse (output, answer, error);
}

static int
open_objects (const BjProjectTree *self, GError **error)
{
  g_auto(BjFd) objects = bj_project_folder_open (self->repo, "objects", geteuid (), error);

  return objects < 0 ? -1 : bj_sandbox_open_folder (objects, FALSE, error);
}

/* New objects are made here by a helper, and looked at before they become part of the repository. */
static char *
make_quarantine (const BjProjectTree *self, uid_t uid, gid_t gid, int *fd, GError **error)
{
  g_autofree char *name = g_strdup_printf (QUARANTINE "%08x%08x", g_random_int (), g_random_int ());
  g_auto(BjFd) folder = bj_project_folder_make (self->repo, name, 0700, error);

  if (folder < 0)
    return NULL;
  if (geteuid () == 0 && fchown (folder, uid, gid) < 0)
    {
      bj_fd_set_io_error (error, errno, "Preparing the folder for new objects");
      return NULL;
    }
  *fd = g_steal_fd (&folder);
  return g_steal_pointer (&name);
}

static gboolean
is_hex (const char *name, gsize length)
{
  return strlen (name) == length && strspn (name, "0123456789abcdef") == length;
}

/* One run of taking objects over. */
typedef struct
{
  guint64 count;
  guint64 bytes;
} BjAbsorb;

static gboolean
absorb_file (BjAbsorb *self, int from, int to, const char *name, GError **error)
{
  g_auto(BjFd) fd = openat (from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) < 0 || !S_ISREG (st.st_mode) || st.st_nlink != 1)
    return bj_error_set (error, BJ_ERROR_FAILED, "The helper left something that is not an object");
  self->count++;
  self->bytes += (guint64) st.st_size;
  if (self->count > OBJECTS_MAX || self->bytes > OBJECTS_BYTES_MAX)
    return bj_error_set (error, BJ_ERROR_LIMIT, "The project is too large: more than 6 GiB of new objects");
  if ((geteuid () == 0 && fchown (fd, 0, 0) < 0) || fchmod (fd, 0444) < 0)
    return bj_fd_set_io_error (error, errno, "Taking an object over");
  if (renameat2 (from, name, to, name, RENAME_NOREPLACE) == 0 || errno == EEXIST)
    return TRUE;
  return bj_fd_set_io_error (error, errno, "Taking an object over");
}

static gboolean
absorb_folder (BjAbsorb *self, int quarantine, int objects, const char *name, GError **error)
{
  g_auto(BjFd) from = openat (quarantine, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  g_autoptr(GPtrArray) names = from >= 0 ? bj_project_folder_list (from, error) : NULL;
  g_auto(BjFd) to = -1;

  if (names == NULL)
    return from >= 0 || bj_error_set (error, BJ_ERROR_FAILED, "The helper left something that is not a folder of objects");
  if (mkdirat (objects, name, 0755) == 0)
    fchmodat (objects, name, 0755, 0);
  to = bj_project_folder_open (objects, name, geteuid (), error);
  if (to < 0)
    return FALSE;
  for (guint i = 0; i < names->len; i++)
    if (is_hex (g_ptr_array_index (names, i), 38) && !absorb_file (self, from, to, g_ptr_array_index (names, i), error))
      return FALSE;
  return TRUE;
}

static gboolean
absorb (const BjProjectTree *self, int quarantine, GError **error)
{
  g_auto(BjFd) objects = bj_project_folder_open (self->repo, "objects", geteuid (), error);
  g_autoptr(GPtrArray) names = objects >= 0 ? bj_project_folder_list (quarantine, error) : NULL;
  BjAbsorb taken = { 0 };

  for (guint i = 0; names != NULL && i < names->len; i++)
    if (is_hex (g_ptr_array_index (names, i), 2)
        && !absorb_folder (&taken, quarantine, objects, g_ptr_array_index (names, i), error))
      return FALSE;
  return names != NULL;
}

/* @run lacks its quarantine at fds[@slot]. */
static gboolean
ask_with_quarantine (const BjProjectTree *self, BjHelperRun *run, guint slot, BjProjectAnswer *answer,
                     GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) quarantine = -1;
  g_auto(BjFd) door = -1;
  g_autofree char *name = make_quarantine (self, run->uid, run->gid, &quarantine, error);
  gboolean ok;

  if (name == NULL)
    return FALSE;
  door = bj_sandbox_open_folder (quarantine, TRUE, error);
  run->fds[slot] = door;
  ok = door >= 0 && ask_helper (self, run, answer, cancellable, error);
  if (ok && answer->tree == NULL)
    ok = bj_error_set (error, BJ_ERROR_FAILED, "The helper belljar-tree named no tree");
  if (ok)
    ok = absorb (self, quarantine, error);
  return bj_project_folder_remove (self->repo, name, ok ? error : NULL) && ok;
}

gboolean
bj_project_tree_forget_drafts (int repo, GError **error)
{
  g_autoptr(GPtrArray) names = bj_project_folder_list (repo, error);

  for (guint i = 0; names != NULL && i < names->len; i++)
    if (g_str_has_prefix (g_ptr_array_index (names, i), QUARANTINE)
        && !bj_project_folder_remove (repo, g_ptr_array_index (names, i), error))
      return FALSE;
  return names != NULL;
}

gboolean
bj_project_tree_own (const BjProjectTree *self, BjProjectAnswer *answer, GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) work = bj_sandbox_open_folder (self->work, TRUE, error);
  g_autofree char *uid = g_strdup_printf ("%u", self->uid);
  g_autofree char *gid = g_strdup_printf ("%u", self->gid);
  g_autofree char *first = g_strdup_printf ("%u", BJ_PROJECT_GUEST_UID_FIRST);
  g_autofree char *last = g_strdup_printf ("%u", BJ_PROJECT_GUEST_UID_LAST);
  const char *args[] = { "own", uid, gid, first, last, NULL };
  BjHelperRun run = { .args = args, .fds = { work }, .as_root = TRUE, .timeout_s = LONG_TIMEOUT_S };

  return work >= 0 && ask_helper (self, &run, answer, cancellable, error);
}

gboolean
bj_project_tree_write (const BjProjectTree *self, BjProjectAnswer *answer, GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) work = bj_sandbox_open_folder (self->work, FALSE, error);
  g_auto(BjFd) objects = work >= 0 ? open_objects (self, error) : -1;
  const char *args[] = { "write", NULL };
  BjHelperRun run = { .args = args, .fds = { work, -1, objects }, .uid = self->uid, .gid = self->gid,
                      .timeout_s = LONG_TIMEOUT_S };

  return objects >= 0 && ask_with_quarantine (self, &run, 1, answer, cancellable, error);
}

/* The arguments of @command: two trees, @patterns and what no session may add. Strings are not copied; @never owns its own. */
static GPtrArray *
make_args (const char *command, const char *old_tree, const char *new_tree, const char *const *patterns, GStrv never)
{
  GPtrArray *args = g_ptr_array_new ();

  g_ptr_array_add (args, (gpointer) command);
  g_ptr_array_add (args, (gpointer) old_tree);
  g_ptr_array_add (args, (gpointer) new_tree);
  g_ptr_array_add (args, (gpointer) "belljar.ini");
  for (guint i = 0; patterns != NULL && patterns[i] != NULL && i < PATTERNS_MAX; i++)
    g_ptr_array_add (args, (gpointer) patterns[i]);
  for (guint i = 0; never[i] != NULL; i++)
    g_ptr_array_add (args, never[i]);
  g_ptr_array_add (args, NULL);
  return args;
}

gboolean
bj_project_tree_diff (const BjProjectTree *self, const char *old_tree, const char *new_tree,
                      const char *const *patterns, BjProjectAnswer *answer, GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) objects = open_objects (self, error);
  g_auto(GStrv) never = bj_project_never_added ();
  g_autoptr(GPtrArray) args = make_args ("diff", old_tree != NULL ? old_tree : "-", new_tree, patterns, never);
  BjHelperRun run = { .args = (const char *const *) args->pdata, .fds = { objects }, .uid = BJ_PROJECT_HELPER_UID,
                      .gid = BJ_PROJECT_HELPER_UID, .timeout_s = SHORT_TIMEOUT_S, .max_output = ANSWER_MAX };

  return objects >= 0 && ask_helper (self, &run, answer, cancellable, error);
}

/* A tree of work/ as it is now, in a folder that goes away again. */
typedef struct
{
  int repo;   /* (not owned) */
  char *name; /* (owned): of the folder */
  BjFd objects, quarantine;
  char *tree; /* (owned) */
} BjDraft;

static void
draft_clear (BjDraft *draft)
{
  g_autoptr(GError) error = NULL;

  if (draft->name != NULL && !bj_project_folder_remove (draft->repo, draft->name, &error))
    g_warning ("Removing %s of a project: %s", draft->name, error->message);
  g_clear_pointer (&draft->name, g_free);
  g_clear_pointer (&draft->tree, g_free);
  bj_fd_clear (&draft->objects);
  bj_fd_clear (&draft->quarantine);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjDraft, draft_clear)
#define BJ_DRAFT_INIT { -1, NULL, -1, -1, NULL }

static gboolean
write_draft (const BjProjectTree *self, BjDraft *draft, BjProjectAnswer *answer, GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) work = bj_sandbox_open_folder (self->work, FALSE, error);
  g_auto(BjFd) folder = -1;
  g_auto(BjFd) door = -1;
  const char *args[] = { "write", NULL };
  BjHelperRun run = { .args = args, .uid = self->uid, .gid = self->gid, .timeout_s = SHORT_TIMEOUT_S };

  draft->repo = self->repo;
  draft->objects = work >= 0 ? open_objects (self, error) : -1;
  if (draft->objects < 0)
    return FALSE;
  draft->name = make_quarantine (self, self->uid, self->gid, &folder, error);
  if (draft->name == NULL)
    return FALSE;
  door = bj_sandbox_open_folder (folder, TRUE, error);
  draft->quarantine = door >= 0 ? bj_sandbox_open_folder (folder, FALSE, error) : -1;
  if (draft->quarantine < 0)
    return FALSE;
  memcpy (run.fds, (const int[]) { work, door, draft->objects }, sizeof run.fds);
  if (!ask_helper (self, &run, answer, cancellable, error))
    return FALSE;
  draft->tree = g_strdup (answer->tree);
  return draft->tree != NULL || bj_error_set (error, BJ_ERROR_FAILED, "The helper belljar-tree named no tree");
}

gboolean
bj_project_tree_status (const BjProjectTree *self, const char *old_tree, BjProjectAnswer *written, BjProjectAnswer *differs,
                        GCancellable *cancellable, GError **error)
{
  g_auto(BjDraft) draft = BJ_DRAFT_INIT;
  const char *args[] = { "status", old_tree, NULL, NULL };
  BjHelperRun run = { .args = args, .uid = self->uid, .gid = self->gid, .timeout_s = SHORT_TIMEOUT_S, .max_output = ANSWER_MAX };

  if (!write_draft (self, &draft, written, cancellable, error))
    return FALSE;
  args[2] = draft.tree;
  run.fds[0] = draft.objects;
  run.fds[1] = draft.quarantine;
  return ask_helper (self, &run, differs, cancellable, error);
}

gboolean
bj_project_tree_patch (const BjProjectTree *self, const char *old_tree, const char *path, gsize max, GBytes **patch,
                       GCancellable *cancellable, GError **error)
{
  g_auto(BjDraft) draft = BJ_DRAFT_INIT;
  g_auto(BjProjectAnswer) written = { 0 };
  g_autofree char *limit = g_strdup_printf ("%" G_GSIZE_FORMAT, max);
  const char *args[] = { "patch", old_tree, NULL, limit, path, NULL };
  BjHelperRun run = { .args = args, .uid = self->uid, .gid = self->gid, .timeout_s = SHORT_TIMEOUT_S, .max_output = max + 64 };
  g_autoptr(GBytes) output = NULL;

  if (!write_draft (self, &draft, &written, cancellable, error))
    return FALSE;
  args[2] = draft.tree;
  run.fds[0] = draft.objects;
  run.fds[1] = draft.quarantine;
  return run_helper (self, &run, &output, cancellable, error) && bj_project_answer_parse_blob (output, max, patch, error);
}

gboolean
bj_project_tree_protect (const BjProjectTree *self, const char *old_tree, const char *new_tree,
                         const char *const *patterns, BjProjectAnswer *answer, GError **error)
{
  g_auto(BjFd) objects = open_objects (self, error);
  g_auto(GStrv) never = bj_project_never_added ();
  g_autoptr(GPtrArray) args = make_args ("protect", old_tree, new_tree, patterns, never);
  BjHelperRun run = { .args = (const char *const *) args->pdata, .fds = { objects, -1 }, .uid = BJ_PROJECT_HELPER_UID,
                      .gid = BJ_PROJECT_HELPER_UID, .timeout_s = SHORT_TIMEOUT_S };

  return objects >= 0 && ask_with_quarantine (self, &run, 1, answer, NULL, error);
}

gboolean
bj_project_tree_export (const BjProjectTree *self, const char *tree, int fd, GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) objects = open_objects (self, error);
  g_auto(BjProjectAnswer) answer = { 0 };
  const char *args[] = { "export", tree, NULL };
  BjHelperRun run = { .args = args, .fds = { objects, fd }, .uid = BJ_PROJECT_HELPER_UID, .gid = BJ_PROJECT_HELPER_UID,
                      .timeout_s = LONG_TIMEOUT_S };

  return objects >= 0 && ask_helper (self, &run, &answer, cancellable, error);
}

gboolean
bj_project_tree_read_blob (const BjProjectTree *self, const char *tree, const char *path, gsize max, GBytes **blob,
                           GError **error)
{
  g_auto(BjFd) objects = open_objects (self, error);
  g_autoptr(GBytes) output = NULL;
  g_autofree char *limit = g_strdup_printf ("%" G_GSIZE_FORMAT, max);
  const char *args[] = { "blob", tree, path, limit, NULL };
  BjHelperRun run = { .args = args, .fds = { objects }, .uid = BJ_PROJECT_HELPER_UID, .gid = BJ_PROJECT_HELPER_UID,
                      .timeout_s = SHORT_TIMEOUT_S, .max_output = max + 64 };

  return objects >= 0 && run_helper (self, &run, &output, NULL, error)
         && bj_project_answer_parse_blob (output, max, blob, error);
}

/* A caller's fd may belong to another mount namespace and then has to go as it is: only the caller's own rights apply to it. */
static int
open_callers (int fd, gboolean writable)
{
  struct stat st;
  int door = -1;

  if (fstat (fd, &st) == 0 && S_ISDIR (st.st_mode))
    door = bj_sandbox_open_folder (fd, writable, NULL);
  return door >= 0 ? door : fcntl (fd, F_DUPFD_CLOEXEC, 10);
}

gboolean
bj_project_tree_copy (const BjProjectTree *self, const BjProjectCopy *copy, BjProjectAnswer *answer,
                      GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) work = bj_sandbox_open_folder (self->work, copy->in, error);
  g_auto(BjFd) theirs = open_callers (copy->fd, !copy->in);
  const char *args[] = { "copy", copy->in ? "in" : "out", copy->path, copy->in ? "leave-git" : "keep-git", NULL };
  BjHelperRun run = { .args = args, .uid = copy->uid, .gid = copy->gid, .timeout_s = LONG_TIMEOUT_S,
                      .on_line = copy->on_line, .user_data = copy->user_data };

  if (work < 0)
    return FALSE;
  if (theirs < 0)
    return bj_fd_set_io_error (error, errno, "Taking the caller's folder");
  run.fds[0] = copy->in ? theirs : work;
  run.fds[1] = copy->in ? work : theirs;
  return ask_helper (self, &run, answer, cancellable, error);
}
