/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-store-private.h"

struct _BjStore
{
  GObject parent_instance;
  BjDatabase *database;
};

G_DEFINE_FINAL_TYPE (BjStore, bj_store, G_TYPE_OBJECT)

static void
bj_store_finalize (GObject *object)
{
  bj_database_free (BJ_STORE (object)->database);
  G_OBJECT_CLASS (bj_store_parent_class)->finalize (object);
}

static void
bj_store_class_init (BjStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_store_finalize;
}

static void
bj_store_init (BjStore *self)
{
}

BjDatabase *
bj_store_get_database (BjStore *self)
{
  return self->database;
}

static gboolean
run (BjStore *self, const char *sql, const BjValue *values, guint n_values, GError **error)
{
  return bj_database_run (self->database, sql, values, n_values, NULL, NULL, NULL, NULL, error);
}

static GPtrArray *
list (BjStore *self, const char *sql, const BjValue *values, guint n_values, BjDatabaseRow row, GDestroyNotify free_row,
      GError **error)
{
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func (free_row);

  if (!bj_database_run (self->database, sql, values, n_values, row, rows, NULL, NULL, error))
    return NULL;
  return g_steal_pointer (&rows);
}

BjStore *
bj_store_open (const char *path, GError **error)
{
  g_autoptr(BjStore) self = g_object_new (BJ_TYPE_STORE, NULL);

  self->database = bj_database_open (path, error);
  if (self->database == NULL)
    return NULL;
  /* What was closed long ago is of no use to anybody; open entries always stay. */
  if (!run (self, "DELETE FROM journal WHERE outcome != '' AND id <= (SELECT max(id) FROM journal) - 10000", NULL, 0,
            error))
    return NULL;
  return g_steal_pointer (&self);
}

/* Sessions */

void
bj_session_row_free (BjSessionRow *row)
{
  if (row == NULL)
    return;
  g_free (row->id);
  g_free (row->kind);
  g_free (row->project);
  g_free (row->image);
  g_free (row->state);
  g_free (row->outcome);
  g_free (row->verdict);
  g_free (row->accelerator);
  g_free (row->task);
  g_free (row->options);
  g_free (row->transcript_head);
  g_free (row);
}

gboolean
bj_store_put_session (BjStore *self, const BjSessionRow *row, GError **error)
{
  const BjValue values[] = {
    BJ_TEXT (row->id),          BJ_TEXT (row->kind),          BJ_TEXT (row->project),
    BJ_TEXT (row->image),       BJ_NUMBER (row->image_version), BJ_NUMBER (row->owner_uid),
    BJ_TEXT (row->state),       BJ_TEXT (row->outcome),       BJ_TEXT (row->verdict),
    BJ_NUMBER (row->started),   BJ_NUMBER (row->finished),    BJ_NUMBER (row->deadline),
    BJ_NUMBER (row->slot),      BJ_NUMBER (row->steps),       BJ_TEXT (row->accelerator),
    BJ_TEXT (row->task),        BJ_TEXT (row->options),       BJ_TEXT (row->transcript_head),
    BJ_NUMBER (row->transcript_count),
  };

  return run (self,
              "INSERT OR REPLACE INTO sessions (id, kind, project, image, image_version, owner_uid, state, outcome,"
              " verdict, started, finished, deadline, slot, steps, accelerator, task, options, transcript_head,"
              " transcript_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
              values, G_N_ELEMENTS (values), error);
}

gboolean
bj_store_delete_session (BjStore *self, const char *id, GError **error)
{
  const BjValue value = BJ_TEXT (id);

  /* The session goes last: should we die in between, it is still there to be deleted again. */
  return run (self, "DELETE FROM plan WHERE session = ?", &value, 1, error)
         && run (self, "DELETE FROM sessions WHERE id = ?", &value, 1, error);
}

static void
read_session (sqlite3_stmt *statement, gpointer user_data)
{
  BjSessionRow *row = g_new0 (BjSessionRow, 1);
  int column = 0;

  row->id = bj_database_dup_text (statement, column++);
  row->kind = bj_database_dup_text (statement, column++);
  row->project = bj_database_dup_text (statement, column++);
  row->image = bj_database_dup_text (statement, column++);
  row->image_version = (guint) sqlite3_column_int64 (statement, column++);
  row->owner_uid = (guint32) sqlite3_column_int64 (statement, column++);
  row->state = bj_database_dup_text (statement, column++);
  row->outcome = bj_database_dup_text (statement, column++);
  row->verdict = bj_database_dup_text (statement, column++);
  row->started = sqlite3_column_int64 (statement, column++);
  row->finished = sqlite3_column_int64 (statement, column++);
  row->deadline = sqlite3_column_int64 (statement, column++);
  row->slot = (guint) sqlite3_column_int64 (statement, column++);
  row->steps = (guint) sqlite3_column_int64 (statement, column++);
  row->accelerator = bj_database_dup_text (statement, column++);
  row->task = bj_database_dup_text (statement, column++);
  row->options = bj_database_dup_text (statement, column++);
  row->transcript_head = bj_database_dup_text (statement, column++);
  row->transcript_count = (guint64) sqlite3_column_int64 (statement, column);
  g_ptr_array_add (user_data, row);
}

GPtrArray *
bj_store_list_sessions (BjStore *self, GError **error)
{
  return list (self,
               "SELECT id, kind, project, image, image_version, owner_uid, state, outcome, verdict, started, finished,"
               " deadline, slot, steps, accelerator, task, options, transcript_head, transcript_count"
               " FROM sessions ORDER BY started, id",
               NULL, 0, read_session, (GDestroyNotify) bj_session_row_free, error);
}

/* Projects */

void
bj_project_row_free (BjProjectRow *row)
{
  if (row == NULL)
    return;
  g_free (row->name);
  g_free (row->backend);
  g_free (row->head);
  g_free (row);
}

gboolean
bj_store_put_project (BjStore *self, const BjProjectRow *row, GError **error)
{
  const BjValue values[] = { BJ_TEXT (row->name),    BJ_NUMBER (row->owner_uid), BJ_NUMBER (row->owner_gid),
                             BJ_NUMBER (row->quota), BJ_NUMBER (row->used),      BJ_TEXT (row->backend),
                             BJ_TEXT (row->head),    BJ_NUMBER (row->created) };

  return run (self,
              "INSERT OR REPLACE INTO projects (name, owner_uid, owner_gid, quota, used, backend, head, created)"
              " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
              values, G_N_ELEMENTS (values), error);
}

gboolean
bj_store_delete_project (BjStore *self, const char *name, GError **error)
{
  const BjValue value = BJ_TEXT (name);

  /* The project goes first: nobody can add to its list any more. What a crash in between leaves goes at the next start. */
  return run (self, "DELETE FROM projects WHERE name = ?", &value, 1, error)
         && run (self, "DELETE FROM task_sessions WHERE project = ?", &value, 1, error)
         && run (self, "DELETE FROM tasks WHERE project = ?", &value, 1, error);
}

static void
read_project (sqlite3_stmt *statement, gpointer user_data)
{
  BjProjectRow *row = g_new0 (BjProjectRow, 1);

  row->name = bj_database_dup_text (statement, 0);
  row->owner_uid = (guint32) sqlite3_column_int64 (statement, 1);
  row->owner_gid = (guint32) sqlite3_column_int64 (statement, 2);
  row->quota = (guint64) sqlite3_column_int64 (statement, 3);
  row->used = (guint64) sqlite3_column_int64 (statement, 4);
  row->backend = bj_database_dup_text (statement, 5);
  row->head = bj_database_dup_text (statement, 6);
  row->created = sqlite3_column_int64 (statement, 7);
  g_ptr_array_add (user_data, row);
}

GPtrArray *
bj_store_list_projects (BjStore *self, GError **error)
{
  return list (self,
               "SELECT name, owner_uid, owner_gid, quota, used, backend, head, created FROM projects ORDER BY name",
               NULL, 0, read_project, (GDestroyNotify) bj_project_row_free, error);
}

/* Images */

void
bj_image_row_free (BjImageRow *row)
{
  if (row == NULL)
    return;
  g_free (row->name);
  g_free (row->os);
  g_free (row->recipe);
  g_free (row->state);
  g_free (row->digest);
  g_free (row);
}

gboolean
bj_store_put_image (BjStore *self, const BjImageRow *row, GError **error)
{
  const BjValue values[] = { BJ_TEXT (row->name),       BJ_NUMBER (row->version), BJ_TEXT (row->os),
                             BJ_TEXT (row->recipe),     BJ_TEXT (row->state),     BJ_TEXT (row->digest),
                             BJ_NUMBER (row->size),     BJ_NUMBER (row->mtime_ns), BJ_NUMBER (row->inode),
                             BJ_NUMBER (row->built_at), BJ_NUMBER (row->api_version) };

  return run (self,
              "INSERT OR REPLACE INTO images (name, version, os, recipe, state, digest, size, mtime_ns, inode,"
              " built_at, api_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
              values, G_N_ELEMENTS (values), error);
}

gboolean
bj_store_delete_image (BjStore *self, const char *name, guint version, GError **error)
{
  const BjValue values[] = { BJ_TEXT (name), BJ_NUMBER (version) };

  return run (self, "DELETE FROM images WHERE name = ? AND version = ?", values, G_N_ELEMENTS (values), error);
}

static void
read_image (sqlite3_stmt *statement, gpointer user_data)
{
  BjImageRow *row = g_new0 (BjImageRow, 1);

  row->name = bj_database_dup_text (statement, 0);
  row->version = (guint) sqlite3_column_int64 (statement, 1);
  row->os = bj_database_dup_text (statement, 2);
  row->recipe = bj_database_dup_text (statement, 3);
  row->state = bj_database_dup_text (statement, 4);
  row->digest = bj_database_dup_text (statement, 5);
  row->size = (guint64) sqlite3_column_int64 (statement, 6);
  row->mtime_ns = sqlite3_column_int64 (statement, 7);
  row->inode = (guint64) sqlite3_column_int64 (statement, 8);
  row->built_at = sqlite3_column_int64 (statement, 9);
  row->api_version = (guint) sqlite3_column_int64 (statement, 10);
  g_ptr_array_add (user_data, row);
}

GPtrArray *
bj_store_list_images (BjStore *self, GError **error)
{
  return list (self,
               "SELECT name, version, os, recipe, state, digest, size, mtime_ns, inode, built_at, api_version"
               " FROM images ORDER BY name, version",
               NULL, 0, read_image, (GDestroyNotify) bj_image_row_free, error);
}

/* Plans */

void
bj_plan_row_free (BjPlanRow *row)
{
  if (row == NULL)
    return;
  g_free (row->text);
  g_free (row->status);
  g_free (row);
}

static void
read_id (sqlite3_stmt *statement, gpointer user_data)
{
  *(guint *) user_data = (guint) sqlite3_column_int64 (statement, 0);
}

gboolean
bj_store_add_plan (BjStore *self, const char *session, const char *text, guint *id, GError **error)
{
  const BjValue values[] = { BJ_TEXT (session), BJ_TEXT (text), BJ_TEXT (session) };

  return bj_database_run (self->database,
                          "INSERT INTO plan (session, id, text, status)"
                          " SELECT ?, coalesce(max(id), 0) + 1, ?, 'todo' FROM plan WHERE session = ? RETURNING id",
                          values, G_N_ELEMENTS (values), read_id, id, NULL, NULL, error);
}

gboolean
bj_store_update_plan (BjStore *self, const char *session, guint id, const char *status, GError **error)
{
  const BjValue values[] = { BJ_TEXT (status), BJ_TEXT (session), BJ_NUMBER (id) };
  int changes = 0;

  if (!bj_database_run (self->database, "UPDATE plan SET status = ? WHERE session = ? AND id = ?", values,
                        G_N_ELEMENTS (values), NULL, NULL, &changes, NULL, error))
    return FALSE;
  return changes == 1 || bj_error_set (error, BJ_ERROR_NOT_FOUND, "The plan has no item %u: see plan_list", id);
}

static void
read_plan (sqlite3_stmt *statement, gpointer user_data)
{
  BjPlanRow *row = g_new0 (BjPlanRow, 1);

  row->id = (guint) sqlite3_column_int64 (statement, 0);
  row->text = bj_database_dup_text (statement, 1);
  row->status = bj_database_dup_text (statement, 2);
  g_ptr_array_add (user_data, row);
}

GPtrArray *
bj_store_list_plan (BjStore *self, const char *session, GError **error)
{
  const BjValue value = BJ_TEXT (session);

  return list (self, "SELECT id, text, status FROM plan WHERE session = ? ORDER BY id", &value, 1, read_plan,
               (GDestroyNotify) bj_plan_row_free, error);
}

/* Settings */

static void
read_setting (sqlite3_stmt *statement, gpointer user_data)
{
  *(char **) user_data = bj_database_dup_text (statement, 0);
}

char *
bj_store_dup_setting (BjStore *self, const char *key)
{
  const BjValue value = BJ_TEXT (key);
  g_autoptr(GError) error = NULL;
  char *text = NULL;

  if (!bj_database_run (self->database, "SELECT value FROM settings WHERE key = ?", &value, 1, read_setting, &text, NULL,
                        NULL, &error))
    g_warning ("Reading setting %s: %s", key, error->message);
  return text;
}

gboolean
bj_store_set_setting (BjStore *self, const char *key, const char *value, GError **error)
{
  const BjValue values[] = { BJ_TEXT (key), BJ_TEXT (value) };

  return run (self, "INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", values, G_N_ELEMENTS (values), error);
}
