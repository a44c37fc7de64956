/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-database"

#include "bj-database.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>

#define BUSY_MS 5000

struct _BjDatabase
{
  GMutex lock;
  sqlite3 *db;
  char *path;
  GHashTable *statements; /* (element-type utf8 sqlite3_stmt): keys are constants */
};

/* Step N of the ladder leads from schema N to N + 1; the schema's number is PRAGMA user_version. Never change a step that
 * was released: add one. */
static const char *const migrations[] = {
  /* 1: the first schema */
  "CREATE TABLE sessions (id TEXT PRIMARY KEY, kind TEXT NOT NULL, project TEXT NOT NULL, image TEXT NOT NULL,"
  "  image_version INTEGER NOT NULL, owner_uid INTEGER NOT NULL, state TEXT NOT NULL, outcome TEXT NOT NULL,"
  "  verdict TEXT NOT NULL, started INTEGER NOT NULL, finished INTEGER NOT NULL, deadline INTEGER NOT NULL,"
  "  slot INTEGER NOT NULL, steps INTEGER NOT NULL, accelerator TEXT NOT NULL, task TEXT NOT NULL,"
  "  options TEXT NOT NULL, transcript_head TEXT NOT NULL, transcript_count INTEGER NOT NULL) STRICT;"
  "CREATE TABLE projects (name TEXT PRIMARY KEY, owner_uid INTEGER NOT NULL, owner_gid INTEGER NOT NULL,"
  "  quota INTEGER NOT NULL, used INTEGER NOT NULL, backend TEXT NOT NULL, head TEXT NOT NULL,"
  "  created INTEGER NOT NULL) STRICT;"
  "CREATE TABLE images (name TEXT NOT NULL, version INTEGER NOT NULL, os TEXT NOT NULL, recipe TEXT NOT NULL,"
  "  state TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,"
  "  inode INTEGER NOT NULL, built_at INTEGER NOT NULL, api_version INTEGER NOT NULL,"
  "  PRIMARY KEY (name, version)) STRICT;"
  "CREATE TABLE plan (session TEXT NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL, status TEXT NOT NULL,"
  "  PRIMARY KEY (session, id)) STRICT;"
  "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
  "CREATE TABLE journal (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, subject TEXT NOT NULL,"
  "  action TEXT NOT NULL, data TEXT NOT NULL, outcome TEXT NOT NULL) STRICT;",
  /* 2: open entries are found without reading the whole journal */
  "CREATE INDEX journal_open ON journal (id) WHERE outcome = '';",
  /* 3: what is to be done in a project, and the sessions that worked on it */
  "CREATE TABLE tasks (project TEXT NOT NULL, id INTEGER NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL,"
  "  status TEXT NOT NULL, created INTEGER NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY (project, id)) STRICT;"
  "CREATE TABLE task_sessions (project TEXT NOT NULL, task INTEGER NOT NULL, session TEXT NOT NULL, at INTEGER NOT NULL,"
  "  outcome TEXT NOT NULL, verdict TEXT NOT NULL, PRIMARY KEY (project, task, session)) STRICT;",
};

static gboolean
set_sqlite_error (BjDatabase *self, int code, GError **error)
{
  const char *text = self->db != NULL ? sqlite3_errmsg (self->db) : sqlite3_errstr (code);
  int primary = code & 0xff;

  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB)
    return bj_error_set (error, BJ_ERROR_FAILED,
                         "The database %s is damaged (%s). Restore it from a backup, or move it away together with its "
                         "-wal and -shm files to begin with an empty one: the folders of projects and images stay, but "
                         "Belljar no longer knows them",
                         self->path, text);
  if (primary == SQLITE_FULL)
    return bj_error_set (error, BJ_ERROR_NO_SPACE, "The disk of %s is full: make room there", self->path);
  return bj_error_set (error, BJ_ERROR_FAILED, "The database %s: %s", self->path, text);
}

static gboolean
execute (BjDatabase *self, const char *sql, GError **error)
{
  int code = sqlite3_exec (self->db, sql, NULL, NULL, NULL);

  return code == SQLITE_OK || set_sqlite_error (self, code, error);
}

/* The new number and the step are one transaction: a crash leaves either schema, never half of one. */
static gboolean
migrate_step (BjDatabase *self, guint from, GError **error)
{
  g_autofree char *sql
      = g_strdup_printf ("BEGIN IMMEDIATE; %s PRAGMA user_version = %u; COMMIT;", migrations[from], from + 1);

  if (execute (self, sql, error))
    return TRUE;
  sqlite3_exec (self->db, "ROLLBACK", NULL, NULL, NULL);
  g_prefix_error (error, "Migration to schema %u: ", from + 1);
  return FALSE;
}

static void
read_number (sqlite3_stmt *statement, gpointer user_data)
{
  *(gint64 *) user_data = sqlite3_column_int64 (statement, 0);
}

static gboolean
migrate (BjDatabase *self, GError **error)
{
  gint64 version = 0;

  if (!bj_database_run (self, "PRAGMA user_version", NULL, 0, read_number, &version, NULL, NULL, error))
    return FALSE;
  if (version < 0 || version > (gint64) G_N_ELEMENTS (migrations))
    return bj_error_set (error, BJ_ERROR_FAILED,
                         "The database %s has schema %" G_GINT64_FORMAT ", this Belljar knows up to %u: it was written by a "
                         "newer version. Install that version again, or use another --state-dir",
                         self->path, version, (guint) G_N_ELEMENTS (migrations));
  for (guint from = (guint) version; from < G_N_ELEMENTS (migrations); from++)
    {
      g_info ("Database %s: schema %u becomes %u", self->path, from, from + 1);
      if (!migrate_step (self, from, error))
        return FALSE;
    }
  return TRUE;
}

static void
read_check (sqlite3_stmt *statement, gpointer user_data)
{
  char **answer = user_data;

  if (*answer == NULL)
    *answer = bj_database_dup_text (statement, 0);
}

static gboolean
check (BjDatabase *self, GError **error)
{
  g_autofree char *answer = NULL;

  if (!bj_database_run (self, "PRAGMA quick_check(1)", NULL, 0, read_check, &answer, NULL, NULL, error))
    return FALSE;
  if (g_strcmp0 (answer, "ok") == 0)
    return TRUE;
  g_warning ("%s: %s", self->path, answer);
  return set_sqlite_error (self, SQLITE_CORRUPT, error);
}

/* SQLite makes its side files with the mode of the main one. */
static gboolean
make_private (const char *path, GError **error)
{
  g_auto(BjFd) fd = -1;

  if (g_str_equal (path, ":memory:"))
    return TRUE;
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  return fd >= 0 || bj_fd_set_io_error (error, errno, "Opening the database %s", path);
}

static void
finalize_statement (gpointer statement)
{
  sqlite3_finalize (statement);
}

BjDatabase *
bj_database_open (const char *path, GError **error)
{
  g_autoptr(BjDatabase) self = g_new0 (BjDatabase, 1);
  int code;

  g_mutex_init (&self->lock);
  self->path = g_strdup (path);
  self->statements = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, finalize_statement);
  if (!make_private (path, error))
    return NULL;
  code = sqlite3_open_v2 (path, &self->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
  if (code != SQLITE_OK)
    {
      set_sqlite_error (self, code, error);
      return NULL;
    }
  sqlite3_busy_timeout (self->db, BUSY_MS);
  sqlite3_extended_result_codes (self->db, 1);
  if (!execute (self, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;", error)
      || !check (self, error) || !migrate (self, error))
    return NULL;
  return g_steal_pointer (&self);
}

void
bj_database_free (BjDatabase *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->statements); /* statements end before their connection */
  sqlite3_close (self->db);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self);
}

char *
bj_database_dup_text (sqlite3_stmt *statement, int column)
{
  const char *text = (const char *) sqlite3_column_text (statement, column);

  return g_strdup (text != NULL ? text : "");
}

static sqlite3_stmt *
prepare (BjDatabase *self, const char *sql, const BjValue *values, guint n_values, GError **error)
{
  sqlite3_stmt *statement = g_hash_table_lookup (self->statements, sql);
  int code = SQLITE_OK;

  if (statement == NULL)
    {
      code = sqlite3_prepare_v3 (self->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
      if (code == SQLITE_OK)
        g_hash_table_insert (self->statements, (gpointer) sql, statement);
    }
  for (guint i = 0; i < n_values && code == SQLITE_OK; i++)
    if (values[i].text != NULL)
      code = sqlite3_bind_text (statement, (int) i + 1, values[i].text, -1, SQLITE_STATIC);
    else
      code = sqlite3_bind_int64 (statement, (int) i + 1, values[i].number);
  if (code == SQLITE_OK)
    return statement;
  set_sqlite_error (self, code, error);
  return NULL;
}

static gboolean
run_locked (BjDatabase *self, sqlite3_stmt *statement, BjDatabaseRow row, gpointer user_data, GError **error)
{
  int code;

  while ((code = sqlite3_step (statement)) == SQLITE_ROW)
    if (row != NULL)
      row (statement, user_data);
  if (code != SQLITE_DONE)
    set_sqlite_error (self, code, error);
  sqlite3_reset (statement);
  sqlite3_clear_bindings (statement);
  return code == SQLITE_DONE;
}

gboolean
bj_database_run (BjDatabase *self, const char *sql, const BjValue *values, guint n_values, BjDatabaseRow row,
                 gpointer user_data, int *changes, gint64 *last_id, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  sqlite3_stmt *statement = prepare (self, sql, values, n_values, error);

  if (statement == NULL || !run_locked (self, statement, row, user_data, error))
    return FALSE;
  if (changes != NULL)
    *changes = sqlite3_changes (self->db);
  if (last_id != NULL)
    *last_id = sqlite3_last_insert_rowid (self->db);
  return TRUE;
}
