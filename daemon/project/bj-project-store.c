/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-store.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-name.h"
#include "bj-project-folder.h"
#include "bj-project-git.h"
#include "bj-project-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BUSY_WAIT_S 120
#define DRAFT ".new-"
#define TRASH ".trash-"

struct _BjProjectStore
{
  GObject parent_instance;

  BjStore *store;
  char *dir;    /* (owned) */
  char *helper; /* (owned) */
  GMutex mutex;
  GCond cond;
  GHashTable *held; /* (owned) (element-type utf8): names of projects that somebody changes right now */
  int projects;     /* fd of @dir, opened at first use; guarded by @mutex */
};

G_DEFINE_TYPE (BjProjectStore, bj_project_store, G_TYPE_OBJECT)

enum
{
  CHANGED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

void
bj_tree_result_clear (BjTreeResult *result)
{
  g_clear_pointer (&result->tree, g_free);
  g_clear_pointer (&result->warnings, g_strfreev);
}

static void
bj_project_store_finalize (GObject *object)
{
  BjProjectStore *self = BJ_PROJECT_STORE (object);

  bj_fd_clear (&self->projects);
  g_clear_object (&self->store);
  g_hash_table_unref (self->held);
  g_mutex_clear (&self->mutex);
  g_cond_clear (&self->cond);
  g_free (self->dir);
  g_free (self->helper);
  G_OBJECT_CLASS (bj_project_store_parent_class)->finalize (object);
}

static void
bj_project_store_class_init (BjProjectStoreClass *class)
{
  G_OBJECT_CLASS (class)->finalize = bj_project_store_finalize;
  signals[CHANGED] = g_signal_new ("changed", BJ_TYPE_PROJECT_STORE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                   G_TYPE_STRING);
}

static void
bj_project_store_init (BjProjectStore *self)
{
  g_mutex_init (&self->mutex);
  g_cond_init (&self->cond);
  self->held = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->projects = -1;
}

BjProjectStore *
bj_project_store_new (BjStore *store, const char *dir, const char *helper)
{
  BjProjectStore *self = g_object_new (BJ_TYPE_PROJECT_STORE, NULL);

  self->store = g_object_ref (store);
  self->dir = g_strdup (dir);
  self->helper = g_strdup (helper);
  return self;
}

/* What an interrupted create or delete left behind. */
static void
sweep (int projects)
{
  g_autoptr(GPtrArray) names = bj_project_folder_list (projects, NULL);

  for (guint i = 0; names != NULL && i < names->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);
      g_autoptr(GError) error = NULL;

      if ((g_str_has_prefix (name, DRAFT) || g_str_has_prefix (name, TRASH))
          && !bj_project_folder_remove (projects, name, &error))
        g_warning ("Removing %s of an interrupted run: %s", name, error->message);
    }
}

/* Returns: the fd, the store's own, or -1 */
static int
open_projects (BjProjectStore *self, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->mutex);
  g_auto(BjFd) fd = -1;

  if (self->projects >= 0)
    return self->projects;
  if (g_mkdir_with_parents (self->dir, 0711) == 0)
    fd = open (self->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || fchmod (fd, 0711) < 0)
    {
      bj_fd_set_io_error (error, errno, "Opening the folder of projects %s", self->dir);
      return -1;
    }
  sweep (fd);
  self->projects = g_steal_fd (&fd);
  return self->projects;
}

/* One writer at a time in one project. */
typedef struct
{
  BjProjectStore *store; /* NULL when nothing is held */
  char *name;            /* (owned) */
} BjProjectHold;

static void
hold_clear (BjProjectHold *hold)
{
  if (hold->store == NULL)
    return;
  g_mutex_lock (&hold->store->mutex);
  g_hash_table_remove (hold->store->held, hold->name);
  g_cond_broadcast (&hold->store->cond);
  g_mutex_unlock (&hold->store->mutex);
  g_clear_pointer (&hold->name, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjProjectHold, hold_clear)

static gboolean
hold_project (BjProjectStore *self, const char *name, BjProjectHold *hold, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->mutex);
  gint64 until = g_get_monotonic_time () + BUSY_WAIT_S * G_TIME_SPAN_SECOND;

  while (g_hash_table_contains (self->held, name))
    if (!g_cond_wait_until (&self->cond, &self->mutex, until))
      return bj_error_set (error, BJ_ERROR_BUSY, "The project %s is being changed: try again when that is done", name);
  g_hash_table_add (self->held, g_strdup (name));
  *hold = (BjProjectHold) { self, g_strdup (name) };
  return TRUE;
}

static BjProjectRow *
copy_row (const BjProjectRow *row)
{
  BjProjectRow *copy = g_new0 (BjProjectRow, 1);

  *copy = *row;
  copy->name = g_strdup (row->name);
  copy->backend = g_strdup (row->backend);
  copy->head = g_strdup (row->head);
  return copy;
}

GPtrArray *
bj_project_store_list (BjProjectStore *self)
{
  g_autoptr(GError) error = NULL;
  GPtrArray *rows = bj_store_list_projects (self->store, &error);

  if (rows != NULL)
    return rows;
  g_warning ("Listing the projects: %s", error->message);
  return g_ptr_array_new_with_free_func ((GDestroyNotify) bj_project_row_free);
}

BjProjectRow *
bj_project_store_lookup (BjProjectStore *self, const char *name, GError **error)
{
  g_autoptr(GPtrArray) rows = bj_store_list_projects (self->store, error);

  if (rows == NULL)
    return NULL;
  for (guint i = 0; i < rows->len; i++)
    {
      const BjProjectRow *row = g_ptr_array_index (rows, i);

      if (g_strcmp0 (row->name, name) == 0)
        return copy_row (row);
    }
  bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no project \"%s\": make it with \"belljar project create\"",
                bj_name_is_valid (name) ? name : "?");
  return NULL;
}

/* A project with its folders open, for one operation. */
typedef struct
{
  BjProjectRow *row; /* (owned) */
  BjFd folder, work, repo;
  BjProjectTree tree;
} BjOpenProject;

static void
open_project_clear (BjOpenProject *open)
{
  g_clear_pointer (&open->row, bj_project_row_free);
  bj_fd_clear (&open->folder);
  bj_fd_clear (&open->work);
  bj_fd_clear (&open->repo);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjOpenProject, open_project_clear)
#define BJ_OPEN_PROJECT_INIT { NULL, -1, -1, -1, { 0 } }

static gboolean
open_project (BjProjectStore *self, const char *name, BjOpenProject *open, GError **error)
{
  int projects = open_projects (self, error);

  if (projects < 0)
    return FALSE;
  open->row = bj_project_store_lookup (self, name, error);
  if (open->row == NULL)
    return FALSE;
  open->folder = bj_project_folder_open (projects, name, open->row->owner_uid, error);
  if (open->folder < 0)
    return FALSE;
  open->work = bj_project_folder_open (open->folder, "work", open->row->owner_uid, error);
  if (open->work < 0)
    return FALSE;
  open->repo = bj_project_folder_open_repo (projects, name, error);
  open->tree = (BjProjectTree) { self->helper, open->row->owner_uid, open->row->owner_gid, open->work, open->repo };
  return open->repo >= 0;
}

static gboolean
write_project_ini (int folder, const char *name, GError **error)
{
  g_autofree char *text = g_strdup_printf ("[project]\nname=%s\nversion=1\n", name);
  g_auto(BjFd) fd = openat (folder, "project.ini", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Writing project.ini");
  return bj_fd_write_all (fd, text, strlen (text), error);
}

/* Everything is made under a name that nobody else can reach, and given away at the end. */
static gboolean
fill_draft (BjProjectStore *self, int draft, const char *draft_name, const BjProjectRow *row, GError **error)
{
  g_autofree char *repo_path = g_build_filename (self->dir, draft_name, "repo.git", NULL);
  g_auto(BjFd) repo = bj_project_folder_make (draft, "repo.git", 0700, error);
  g_auto(BjFd) work = repo >= 0 ? bj_project_folder_make (draft, "work", 0755, error) : -1;
  gboolean root = geteuid () == 0;

  if (work < 0 || !bj_project_git_init (repo_path, error) || !write_project_ini (draft, row->name, error))
    return FALSE;
  if (fchmod (repo, 0700) < 0 || fchmodat (repo, "objects", 0755, 0) < 0)
    return bj_fd_set_io_error (error, errno, "Preparing the repository");
  if (root && (fchown (work, row->owner_uid, row->owner_gid) < 0 || fchown (draft, row->owner_uid, row->owner_gid) < 0))
    return bj_fd_set_io_error (error, errno, "Giving the project to its owner");
  return TRUE;
}

static gboolean
make_folders (BjProjectStore *self, int projects, const BjProjectRow *row, GError **error)
{
  g_autofree char *draft_name = g_strdup_printf (DRAFT "%08x%08x", g_random_int (), g_random_int ());
  g_auto(BjFd) draft = bj_project_folder_make (projects, draft_name, 0700, error);

  if (draft < 0)
    return FALSE;
  if (fill_draft (self, draft, draft_name, row, error))
    {
      if (renameat2 (projects, draft_name, projects, row->name, RENAME_NOREPLACE) == 0)
        return TRUE;
      if (errno == EEXIST)
        bj_error_set (error, BJ_ERROR_EXISTS, "There is a folder %s/%s that no project knows: move it away first", self->dir,
                      row->name);
      else
        bj_fd_set_io_error (error, errno, "Making the project %s", row->name);
    }
  bj_project_folder_remove (projects, draft_name, NULL);
  return FALSE;
}

gboolean
bj_project_store_create (BjProjectStore *self, const char *name, uid_t uid, gid_t gid, GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_autoptr(BjProjectRow) known = NULL;
  BjProjectRow row = { .name = (char *) name, .owner_uid = uid, .owner_gid = gid, .backend = (char *) "none",
                       .head = (char *) "", .created = g_get_real_time () / G_USEC_PER_SEC };
  int projects;

  if (!bj_name_is_valid (name))
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "That is not a name for a project: use small letters, digits, \".\", \"_\" and \"-\", 63 at most");
  if (!hold_project (self, name, &hold, error))
    return FALSE;
  projects = open_projects (self, error);
  if (projects < 0)
    return FALSE;
  known = bj_project_store_lookup (self, name, NULL);
  if (known != NULL)
    return bj_error_set (error, BJ_ERROR_EXISTS, "There is a project \"%s\" already", name);
  if (!make_folders (self, projects, &row, error))
    return FALSE;
  if (!bj_store_put_project (self->store, &row, error))
    {
      bj_project_folder_remove (projects, name, NULL);
      return FALSE;
    }
  g_signal_emit (self, signals[CHANGED], 0, name);
  return TRUE;
}

gboolean
bj_project_store_delete (BjProjectStore *self, const char *name, GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_autoptr(BjProjectRow) row = NULL;
  g_autofree char *trash = g_strdup_printf (TRASH "%08x%08x", g_random_int (), g_random_int ());
  int projects = open_projects (self, error);

  if (projects < 0 || !hold_project (self, name, &hold, error))
    return FALSE;
  row = bj_project_store_lookup (self, name, error);
  if (row == NULL)
    return FALSE;
  if (renameat2 (projects, name, projects, trash, RENAME_NOREPLACE) < 0 && errno != ENOENT)
    return bj_fd_set_io_error (error, errno, "Deleting the project %s", name);
  if (!bj_store_delete_project (self->store, name, error))
    return FALSE;
  g_signal_emit (self, signals[CHANGED], 0, name);
  return bj_project_folder_remove (projects, trash, error);
}

int
bj_project_store_open_work (BjProjectStore *self, const char *name, GError **error)
{
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  int fd;

  if (!open_project (self, name, &open, error))
    return -1;
  fd = openat (open.work, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    bj_fd_set_io_error (error, errno, "Opening the project %s", name);
  return fd;
}

char *
bj_project_store_dup_work_path (BjProjectStore *self, const char *name)
{
  return g_build_filename (self->dir, name, "work", NULL);
}

static void
append_warnings (GPtrArray *all, BjProjectAnswer *answer)
{
  for (guint i = 0; i < answer->warnings->len; i++)
    g_ptr_array_add (all, g_strdup (g_ptr_array_index (answer->warnings, i)));
}

static gboolean
remember (BjProjectStore *self, BjProjectRow *row, GError **error)
{
  if (!bj_store_put_project (self->store, row, error))
    return FALSE;
  g_signal_emit (self, signals[CHANGED], 0, row->name);
  return TRUE;
}

gboolean
bj_project_store_write_tree (BjProjectStore *self, const char *name, BjTreeResult *result, GCancellable *cancellable,
                             GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_auto(BjProjectAnswer) owned = { 0 };
  g_auto(BjProjectAnswer) written = { 0 };
  g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func (g_free);

  *result = (BjTreeResult) { 0 };
  if (!hold_project (self, name, &hold, error) || !open_project (self, name, &open, error)
      || !bj_project_tree_forget_drafts (open.repo, error))
    return FALSE;
  if (!bj_project_tree_own (&open.tree, &owned, cancellable, error)
      || !bj_project_tree_write (&open.tree, &written, cancellable, error))
    return FALSE;
  append_warnings (warnings, &owned);
  append_warnings (warnings, &written);
  g_ptr_array_add (warnings, NULL);
  result->tree = g_steal_pointer (&written.tree);
  result->files = written.files;
  result->bytes = written.bytes;
  result->warnings = (GStrv) g_ptr_array_free (g_steal_pointer (&warnings), FALSE);
  open.row->used = written.bytes;
  return remember (self, open.row, error);
}

char *
bj_project_store_head (BjProjectStore *self, const char *name, char **tree, GError **error)
{
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;

  if (tree != NULL)
    *tree = NULL;
  return open_project (self, name, &open, error) ? bj_project_git_head (open.repo, tree, error) : NULL;
}

/* Returns: (transfer full): the owner's login name, as far as it is one that git can hold */
static char *
dup_login (uid_t uid)
{
  struct passwd found, *entry = NULL;
  char buffer[4096];

  if (getpwuid_r (uid, &found, buffer, sizeof buffer, &entry) == 0 && entry != NULL && *entry->pw_name != '\0'
      && strpbrk (entry->pw_name, "<>\n@ ") == NULL)
    return g_strdup (entry->pw_name);
  return g_strdup_printf ("uid-%u", uid);
}

char *
bj_project_store_commit (BjProjectStore *self, const char *name, const char *tree, const char *author, const char *message,
                         const char *const *trailers, GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_autofree char *who = NULL;
  g_autofree char *id = NULL;

  if (!hold_project (self, name, &hold, error) || !open_project (self, name, &open, error))
    return NULL;
  who = g_strcmp0 (author, "owner") == 0 ? dup_login (open.row->owner_uid) : g_strdup (name);
  id = bj_project_git_commit (open.repo, tree, who, message, trailers, error);
  if (id == NULL)
    return NULL;
  g_free (open.row->head);
  open.row->head = g_strdup (id);
  return remember (self, open.row, error) ? g_steal_pointer (&id) : NULL;
}

static gboolean
check_ids (const char *first, const char *second, GError **error)
{
  if (bj_project_id_is_valid (first) && bj_project_id_is_valid (second))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "That is not the id of a tree: it needs 40 hexadecimal digits");
}

JsonArray *
bj_project_store_diff (BjProjectStore *self, const char *name, const char *old_tree, const char *new_tree,
                       const char *const *first, guint64 *total, GError **error)
{
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_auto(BjProjectAnswer) answer = { 0 };

  if (!check_ids (old_tree != NULL ? old_tree : new_tree, new_tree, error) || !open_project (self, name, &open, error)
      || !bj_project_tree_diff (&open.tree, old_tree, new_tree, first, &answer, NULL, error))
    return NULL;
  if (total != NULL)
    *total = answer.files;
  return g_steal_pointer (&answer.entries);
}

/* Returns: whether @tree is set to what work/ is compared with, "-" without a commit */
static gboolean
find_newest (BjOpenProject *open, char **tree, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autofree char *head = bj_project_git_head (open->repo, tree, &failure);

  if (failure != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
  if (head == NULL)
    *tree = g_strdup ("-");
  return TRUE;
}

JsonArray *
bj_project_store_status (BjProjectStore *self, const char *name, guint64 *total, GStrv *warnings, GCancellable *cancellable,
                         GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_auto(BjProjectAnswer) written = { 0 };
  g_auto(BjProjectAnswer) differs = { 0 };
  g_autofree char *tree = NULL;

  if (!hold_project (self, name, &hold, error) || !open_project (self, name, &open, error)
      || !find_newest (&open, &tree, error)
      || !bj_project_tree_status (&open.tree, tree, &written, &differs, cancellable, error))
    return NULL;
  g_ptr_array_add (written.warnings, NULL);
  *warnings = g_strdupv ((char **) written.warnings->pdata);
  *total = differs.files;
  return g_steal_pointer (&differs.entries);
}

GBytes *
bj_project_store_patch (BjProjectStore *self, const char *name, const char *path, gsize max, gboolean *cut,
                        GCancellable *cancellable, GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_autoptr(GBytes) patch = NULL;
  g_autofree char *tree = NULL;

  if (!hold_project (self, name, &hold, error) || !open_project (self, name, &open, error)
      || !find_newest (&open, &tree, error)
      || !bj_project_tree_patch (&open.tree, tree, path != NULL ? path : "", max + 1, &patch, cancellable, error))
    return NULL;
  *cut = g_bytes_get_size (patch) > max;
  return *cut ? g_bytes_new_from_bytes (patch, 0, max) : g_steal_pointer (&patch);
}

char *
bj_project_store_restore_protected (BjProjectStore *self, const char *name, const char *old_tree, const char *new_tree,
                                    const char *const *patterns, GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_auto(BjProjectAnswer) answer = { 0 };

  if (!check_ids (old_tree, new_tree, error) || !hold_project (self, name, &hold, error)
      || !open_project (self, name, &open, error)
      || !bj_project_tree_protect (&open.tree, old_tree, new_tree, patterns, &answer, error))
    return NULL;
  return g_steal_pointer (&answer.tree);
}

gboolean
bj_project_store_export_tar (BjProjectStore *self, const char *name, const char *tree, int fd, GCancellable *cancellable,
                             GError **error)
{
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;

  return check_ids (tree, tree, error) && open_project (self, name, &open, error)
         && bj_project_tree_export (&open.tree, tree, fd, cancellable, error);
}

GBytes *
bj_project_store_read_blob (BjProjectStore *self, const char *name, const char *tree, const char *path, gsize max,
                            GError **error)
{
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  GBytes *blob = NULL;

  if (!check_ids (tree, tree, error) || !open_project (self, name, &open, error)
      || !bj_project_tree_read_blob (&open.tree, tree, path, max, &blob, error))
    return NULL;
  return blob;
}

JsonArray *
bj_project_store_log (BjProjectStore *self, const char *name, guint count, GError **error)
{
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;

  return open_project (self, name, &open, error) ? bj_project_git_log (open.repo, count, error) : NULL;
}

static void
on_copy_line (const char *line, gpointer progress)
{
  g_auto(GStrv) words = g_strsplit (line, " ", 4);
  guint64 done = 0, total = 0;

  if (g_strv_length (words) == 3 && strcmp (words[0], "progress") == 0
      && g_ascii_string_to_unsigned (words[1], 10, 0, G_MAXINT64, &done, NULL)
      && g_ascii_string_to_unsigned (words[2], 10, 1, G_MAXINT64, &total, NULL))
    bj_progress_set (progress, MIN (1.0, (double) done / (double) total));
}

static gboolean
copy (BjProjectStore *self, const char *name, BjProjectCopy *how, BjProgress *progress, GCancellable *cancellable,
      GStrv *left_out, GError **error)
{
  g_auto(BjProjectHold) hold = { 0 };
  g_auto(BjOpenProject) open = BJ_OPEN_PROJECT_INIT;
  g_auto(BjProjectAnswer) answer = { 0 };

  if ((how->in && !hold_project (self, name, &hold, error)) || !open_project (self, name, &open, error))
    return FALSE;
  if (how->in)
    {
      how->uid = open.row->owner_uid;
      how->gid = open.row->owner_gid;
    }
  how->on_line = on_copy_line;
  how->user_data = progress;
  if (!bj_project_tree_copy (&open.tree, how, &answer, cancellable, error))
    return FALSE;
  for (guint i = 0; i < answer.warnings->len; i++)
    g_message ("Copying %s the project %s: %s", how->in ? "into" : "out of", name,
               (const char *) g_ptr_array_index (answer.warnings, i));
  g_ptr_array_add (answer.warnings, NULL);
  if (left_out != NULL)
    *left_out = g_strdupv ((char **) answer.warnings->pdata);
  bj_progress_set (progress, 1.0);
  return TRUE;
}

gboolean
bj_project_store_copy_in (BjProjectStore *self, const char *name, int source, const char *path, BjProgress *progress,
                          GCancellable *cancellable, GStrv *left_out, GError **error)
{
  BjProjectCopy how = { .fd = source, .path = path != NULL ? path : "", .in = TRUE };

  return copy (self, name, &how, progress, cancellable, left_out, error);
}

gboolean
bj_project_store_copy_out (BjProjectStore *self, const char *name, int destination, uid_t uid, gid_t gid, const char *path,
                           BjProgress *progress, GCancellable *cancellable, GStrv *left_out, GError **error)
{
  BjProjectCopy how = { .fd = destination, .uid = uid, .gid = gid, .path = path != NULL ? path : "" };

  return copy (self, name, &how, progress, cancellable, left_out, error);
}
