/* SPDX-License-Identifier: GPL-3.0-or-later */

/* What is to be done in a project. Each function is one step, or steps that may be cut off between any two: what is left open then,
 * bj_store_recover_tasks() settles. */

#include "bj-error.h"
#include "bj-store-private.h"

#define ENDED "('finished', 'failed', 'cancelled')"

void
bj_task_row_free (BjTaskRow *row)
{
  if (row == NULL)
    return;
  g_free (row->text);
  g_free (row->status);
  g_free (row);
}

void
bj_task_session_row_free (BjTaskSessionRow *row)
{
  if (row == NULL)
    return;
  g_free (row->session);
  g_free (row->outcome);
  g_free (row->verdict);
  g_free (row);
}

gboolean
bj_task_status_is_valid (const char *status)
{
  static const char *const all[] = { "todo", "doing", "done", "dropped", NULL };

  return g_strv_contains (all, status);
}

static gint64
get_now (void)
{
  return g_get_real_time () / G_USEC_PER_SEC;
}

static gboolean
run (BjStore *self, const char *sql, const BjValue *values, guint n_values, int *changes, GError **error)
{
  return bj_database_run (bj_store_get_database (self), sql, values, n_values, NULL, NULL, changes, NULL, error);
}

static void
read_number (sqlite3_stmt *statement, gpointer user_data)
{
  *(guint *) user_data = (guint) sqlite3_column_int64 (statement, 0);
}

/* Why nothing was inserted. Always FALSE. */
static gboolean
set_refusal (BjStore *self, const char *project, GError **error)
{
  const BjValue value = BJ_TEXT (project);
  guint known = 0;

  if (!bj_database_run (bj_store_get_database (self), "SELECT count(*) FROM projects WHERE name = ?", &value, 1, read_number,
                        &known, NULL, NULL, error))
    return FALSE;
  if (known == 0)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no project “%s”: see belljar projects", project);
  return bj_error_set (error, BJ_ERROR_LIMIT, "The task list of the project “%s” has %d items already, which is the most", project,
                       BJ_TASKS_MAX);
}

gboolean
bj_store_add_task (BjStore *self, const char *project, const char *text, guint *id, GError **error)
{
  const BjValue values[] = { BJ_TEXT (project),      BJ_TEXT (text),    BJ_NUMBER (get_now ()), BJ_NUMBER (get_now ()),
                             BJ_TEXT (project), BJ_NUMBER (BJ_TASKS_MAX), BJ_TEXT (project) };

  *id = 0;
  if (!bj_database_run (bj_store_get_database (self),
                        "INSERT INTO tasks (project, id, position, text, status, created, changed)"
                        " SELECT ?, coalesce(max(id), 0) + 1, coalesce(max(position), 0) + 1, ?, 'todo', ?, ?"
                        " FROM tasks WHERE project = ?"
                        " HAVING count(*) < ? AND EXISTS (SELECT 1 FROM projects WHERE name = ?) RETURNING id",
                        values, G_N_ELEMENTS (values), read_number, id, NULL, NULL, error))
    return FALSE;
  return *id > 0 || set_refusal (self, project, error);
}

static gboolean
set_not_found (const char *project, guint id, GError **error)
{
  return bj_error_set (error, BJ_ERROR_NOT_FOUND, "The task list of the project “%s” has no item %u: see belljar project tasks %s",
                       project, id, project);
}

/* The others are numbered 2, 4, 6 …; the one that moves gets the odd number before the one whose place it takes. */
static gboolean
move (BjStore *self, const char *project, guint id, guint position, GError **error)
{
  const BjValue values[] = { BJ_TEXT (project), BJ_NUMBER (id), BJ_NUMBER (id), BJ_NUMBER (MIN (position, BJ_TASKS_MAX + 1)),
                             BJ_TEXT (project) };

  return run (self,
              "WITH others AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY position, id) AS place FROM tasks"
              " WHERE project = ? AND id != ?)"
              " UPDATE tasks SET position = CASE id WHEN ? THEN 2 * ? - 1"
              " ELSE (SELECT 2 * place FROM others WHERE others.id = tasks.id) END WHERE project = ?",
              values, G_N_ELEMENTS (values), NULL, error);
}

gboolean
bj_store_update_task (BjStore *self, const char *project, guint id, const char *text, const char *status, guint position,
                      GError **error)
{
  const BjValue values[] = { BJ_TEXT (text), BJ_TEXT (status), BJ_NUMBER (get_now ()), BJ_TEXT (project), BJ_NUMBER (id) };
  int changes = 0;

  if (!run (self,
            "UPDATE tasks SET text = coalesce(nullif(?, ''), text), status = coalesce(nullif(?, ''), status), changed = ?"
            " WHERE project = ? AND id = ?",
            values, G_N_ELEMENTS (values), &changes, error))
    return FALSE;
  if (changes == 0)
    return set_not_found (project, id, error);
  return position == 0 || move (self, project, id, position, error);
}

static void
read_task (sqlite3_stmt *statement, gpointer user_data)
{
  BjTaskRow *row = g_new0 (BjTaskRow, 1);

  row->id = (guint) sqlite3_column_int64 (statement, 0);
  row->text = bj_database_dup_text (statement, 1);
  row->status = bj_database_dup_text (statement, 2);
  row->created = sqlite3_column_int64 (statement, 3);
  row->changed = sqlite3_column_int64 (statement, 4);
  g_ptr_array_add (user_data, row);
}

BjTaskRow *
bj_store_dup_task (BjStore *self, const char *project, guint id, GError **error)
{
  const BjValue values[] = { BJ_TEXT (project), BJ_NUMBER (id) };
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_task_row_free);

  if (!bj_database_run (bj_store_get_database (self),
                        "SELECT id, text, status, created, changed FROM tasks WHERE project = ? AND id = ?", values,
                        G_N_ELEMENTS (values), read_task, rows, NULL, NULL, error))
    return NULL;
  if (rows->len > 0)
    return g_ptr_array_steal_index (rows, 0);
  set_not_found (project, id, error);
  return NULL;
}

GPtrArray *
bj_store_list_tasks (BjStore *self, const char *project, GError **error)
{
  const BjValue value = BJ_TEXT (project);
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_task_row_free);

  if (!bj_database_run (bj_store_get_database (self),
                        "SELECT id, text, status, created, changed FROM tasks WHERE project = ? ORDER BY position, id", &value, 1,
                        read_task, rows, NULL, NULL, error))
    return NULL;
  return g_steal_pointer (&rows);
}

static void
read_session (sqlite3_stmt *statement, gpointer user_data)
{
  BjTaskSessionRow *row = g_new0 (BjTaskSessionRow, 1);

  row->task = (guint) sqlite3_column_int64 (statement, 0);
  row->session = bj_database_dup_text (statement, 1);
  row->at = sqlite3_column_int64 (statement, 2);
  row->outcome = bj_database_dup_text (statement, 3);
  row->verdict = bj_database_dup_text (statement, 4);
  g_ptr_array_add (user_data, row);
}

GPtrArray *
bj_store_list_task_sessions (BjStore *self, const char *project, GError **error)
{
  const BjValue value = BJ_TEXT (project);
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_task_session_row_free);

  if (!bj_database_run (bj_store_get_database (self),
                        "SELECT task, session, at, outcome, verdict FROM task_sessions WHERE project = ?"
                        " ORDER BY task, at DESC, rowid DESC",
                        &value, 1, read_session, rows, NULL, NULL, error))
    return NULL;
  return g_steal_pointer (&rows);
}

gboolean
bj_store_begin_task (BjStore *self, const char *project, guint id, const char *session, GError **error)
{
  const BjValue link[] = { BJ_TEXT (project), BJ_NUMBER (id), BJ_TEXT (session), BJ_NUMBER (get_now ()) };

  return run (self, "INSERT INTO task_sessions (project, task, session, at, outcome, verdict) VALUES (?, ?, ?, ?, '', '')", link,
              G_N_ELEMENTS (link), NULL, error)
         && bj_store_update_task (self, project, id, NULL, "doing", 0, error);
}

/* The status first: should we die in between, the session is still open, and the next time changes nothing twice. */
gboolean
bj_store_settle_tasks (BjStore *self, GError **error)
{
  const BjValue now = BJ_NUMBER (get_now ());

  return run (self,
              "UPDATE tasks SET changed = ?, status = CASE WHEN EXISTS (SELECT 1 FROM task_sessions AS link"
              "  JOIN sessions ON sessions.id = link.session WHERE link.project = tasks.project AND link.task = tasks.id"
              "  AND link.outcome = '' AND sessions.outcome = 'DONE' AND sessions.verdict IN ('proved', 'passes'))"
              "  THEN 'done' ELSE 'todo' END"
              " WHERE status = 'doing' AND EXISTS (SELECT 1 FROM task_sessions AS link JOIN sessions ON sessions.id = link.session"
              "  WHERE link.project = tasks.project AND link.task = tasks.id AND link.outcome = ''"
              "  AND sessions.state IN " ENDED ")",
              &now, 1, NULL, error)
         && run (self,
                 "UPDATE task_sessions SET (outcome, verdict) = (SELECT outcome, verdict FROM sessions"
                 "  WHERE sessions.id = task_sessions.session)"
                 " WHERE outcome = '' AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = task_sessions.session"
                 "  AND sessions.state IN " ENDED ")",
                 NULL, 0, NULL, error);
}

/* What was begun for a session that never came to be, or was deleted since, is open again. */
gboolean
bj_store_recover_tasks (BjStore *self, GError **error)
{
  return bj_store_settle_tasks (self, error)
         && run (self,
                 "UPDATE tasks SET status = 'todo' WHERE status = 'doing' AND EXISTS (SELECT 1 FROM task_sessions AS link"
                 " WHERE link.project = tasks.project AND link.task = tasks.id AND link.outcome = ''"
                 " AND link.session NOT IN (SELECT id FROM sessions))",
                 NULL, 0, NULL, error)
         && run (self,
                 "UPDATE task_sessions SET outcome = 'CANCELLED' WHERE outcome = ''"
                 " AND session NOT IN (SELECT id FROM sessions)",
                 NULL, 0, NULL, error)
         && run (self, "DELETE FROM task_sessions WHERE project NOT IN (SELECT name FROM projects)", NULL, 0, NULL, error)
         && run (self, "DELETE FROM tasks WHERE project NOT IN (SELECT name FROM projects)", NULL, 0, NULL, error);
}
