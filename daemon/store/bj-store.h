/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * What the daemon knows, in SQLite (WAL, synchronous=FULL), with numbered migrations; a newer schema is refused.
 * Thread-safe. Rows are plain structs; strings in them are owned by the row.
 */
#define BJ_TYPE_STORE (bj_store_get_type ())
G_DECLARE_FINAL_TYPE (BjStore, bj_store, BJ, STORE, GObject)

/** bj_store_open: @path: STATE/belljar.db, ":memory:" for tests */
BjStore *bj_store_open (const char *path, GError **error);

typedef struct
{
  char *id;
  char *kind; /* task or open */
  char *project; /* "" without one */
  char *image;
  guint image_version;
  guint32 owner_uid;
  char *state;
  char *outcome;  /* "" while it works */
  char *verdict;  /* "" while it works */
  gint64 started; /* seconds since 1970 */
  gint64 finished;
  gint64 deadline;
  guint slot;
  guint steps;
  char *accelerator;
  char *task;
  char *options;         /* JSON object: check, memory-mib, cpus, network, model … */
  char *transcript_head; /* hex SHA-256 of the newest record */
  guint64 transcript_count;
} BjSessionRow;

void bj_session_row_free (BjSessionRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjSessionRow, bj_session_row_free)

gboolean bj_store_put_session (BjStore *self, const BjSessionRow *row, GError **error); /* insert or replace */
gboolean bj_store_delete_session (BjStore *self, const char *id, GError **error);
/** bj_store_list_sessions: Returns: (transfer container) (element-type BjSessionRow): oldest first */
GPtrArray *bj_store_list_sessions (BjStore *self, GError **error);

typedef struct
{
  char *name;
  guint32 owner_uid;
  guint32 owner_gid;
  guint64 quota;
  guint64 used;
  char *backend;
  char *head;
  gint64 created;
} BjProjectRow;

void bj_project_row_free (BjProjectRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjProjectRow, bj_project_row_free)

gboolean bj_store_put_project (BjStore *self, const BjProjectRow *row, GError **error);
gboolean bj_store_delete_project (BjStore *self, const char *name, GError **error);
GPtrArray *bj_store_list_projects (BjStore *self, GError **error);

typedef struct
{
  char *name;
  guint version;
  char *os;
  char *recipe;
  char *state;
  char *digest;
  guint64 size;
  gint64 mtime_ns;
  guint64 inode;
  gint64 built_at;
  guint api_version;
} BjImageRow;

void bj_image_row_free (BjImageRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjImageRow, bj_image_row_free)

gboolean bj_store_put_image (BjStore *self, const BjImageRow *row, GError **error);
gboolean bj_store_delete_image (BjStore *self, const char *name, guint version, GError **error);
GPtrArray *bj_store_list_images (BjStore *self, GError **error);

typedef struct
{
  guint id;
  char *text;
  char *status;
} BjPlanRow;

void bj_plan_row_free (BjPlanRow *row);
gboolean bj_store_add_plan (BjStore *self, const char *session, const char *text, guint *id, GError **error);
gboolean bj_store_update_plan (BjStore *self, const char *session, guint id, const char *status, GError **error);
GPtrArray *bj_store_list_plan (BjStore *self, const char *session, GError **error);

/* What is to be done in a project, by a person's own words. */
#define BJ_TASKS_MAX 1000 /* in one project */
#define BJ_TASK_TEXT_MAX 4096

typedef struct
{
  guint id; /* from 1; never given twice in a project */
  char *text;
  char *status; /* todo, doing, done or dropped */
  gint64 created; /* seconds since 1970 */
  gint64 changed;
} BjTaskRow;

void bj_task_row_free (BjTaskRow *row);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjTaskRow, bj_task_row_free)

/* A session that works, or worked, on an entry. */
typedef struct
{
  guint task;
  char *session;
  gint64 at;
  char *outcome; /* "" while it works */
  char *verdict;
} BjTaskSessionRow;

void bj_task_session_row_free (BjTaskSessionRow *row);

/** bj_task_status_is_valid: Pure. */
gboolean bj_task_status_is_valid (const char *status);

/** bj_store_add_task: Puts it last. BJ_ERROR_LIMIT: there are BJ_TASKS_MAX already */
gboolean bj_store_add_task (BjStore *self, const char *project, const char *text, guint *id, GError **error);
/**
 * bj_store_update_task:
 * @text: (nullable): %NULL leaves it
 * @status: (nullable): %NULL leaves it
 * @position: 1 is the first place, one past the end is the last; 0 leaves it
 */
gboolean bj_store_update_task (BjStore *self, const char *project, guint id, const char *text, const char *status,
                               guint position, GError **error);
/** bj_store_dup_task: Returns: (transfer full): or %NULL with BJ_ERROR_NOT_FOUND */
BjTaskRow *bj_store_dup_task (BjStore *self, const char *project, guint id, GError **error);
/** bj_store_list_tasks: Returns: (transfer container) (element-type BjTaskRow): in their order */
GPtrArray *bj_store_list_tasks (BjStore *self, const char *project, GError **error);
/** bj_store_list_task_sessions: Returns: (transfer container) (element-type BjTaskSessionRow): newest first */
GPtrArray *bj_store_list_task_sessions (BjStore *self, const char *project, GError **error);
/** bj_store_begin_task: The entry is doing, and @session, whose row need not be there yet, works on it. */
gboolean bj_store_begin_task (BjStore *self, const char *project, guint id, const char *session, GError **error);
/**
 * bj_store_settle_tasks:
 * Notes with each entry how the sessions that have ended since ended. One that still is doing becomes done when its session's
 * check passed in a fresh machine (proved or passes), else todo.
 */
gboolean bj_store_settle_tasks (BjStore *self, GError **error);
/** bj_store_recover_tasks: At start, when no session works: settles, also for sessions and projects that are gone. */
gboolean bj_store_recover_tasks (BjStore *self, GError **error);

/** bj_store_dup_setting: Returns: (transfer full) (nullable): a small named value, for example "default-image" */
char *bj_store_dup_setting (BjStore *self, const char *key);
gboolean bj_store_set_setting (BjStore *self, const char *key, const char *value, GError **error);

/*
 * The intent journal: a row before each action that changes the world, closed with its outcome after it.
 * An entry that is still open at start says what was under way when the daemon died.
 */
typedef struct
{
  gint64 id;
  gint64 at;     /* seconds since 1970 */
  char *subject; /* for example "session/abcdefgh" or "image/debian" */
  char *action;  /* for example "machine-start" */
  char *data;    /* JSON object with what undoing needs */
  char *outcome; /* "" while open, then "done" or an error message */
} BjJournalEntry;

void bj_journal_entry_free (BjJournalEntry *entry);
/** bj_journal_begin: Durable before it returns. Returns: the entry's id, or 0 */
gint64 bj_journal_begin (BjStore *self, const char *subject, const char *action, const char *data, GError **error);
/** bj_journal_end: @failure: (nullable): %NULL when the action succeeded */
gboolean bj_journal_end (BjStore *self, gint64 id, const GError *failure, GError **error);
/** bj_journal_list_open: Returns: (transfer container) (element-type BjJournalEntry): oldest first */
GPtrArray *bj_journal_list_open (BjStore *self, GError **error);

G_END_DECLS
