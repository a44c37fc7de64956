/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>
#include <sqlite3.h>

G_BEGIN_DECLS

/*
 * One SQLite connection behind a mutex, with prepared statements that are kept. Only daemon/store uses it.
 * SQL texts are constants: nothing from outside is ever part of one.
 */
typedef struct _BjDatabase BjDatabase;

/** bj_database_open: Opens or makes @path, checks it and brings its schema up to date. */
BjDatabase *bj_database_open (const char *path, GError **error);
void bj_database_free (BjDatabase *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjDatabase, bj_database_free)

/* Called for each row; column values with bj_database_dup_text() and sqlite3_column_int64(). */
typedef void (*BjDatabaseRow) (sqlite3_stmt *statement, gpointer user_data);

/* A value for one "?" of a statement. */
typedef struct
{
  const char *text; /* (nullable): NULL means number is meant */
  gint64 number;
} BjValue;

#define BJ_TEXT(value) ((BjValue) { (value) != NULL ? (value) : "", 0 })
#define BJ_NUMBER(value) ((BjValue) { NULL, (gint64) (value) })

/**
 * bj_database_run:
 * @values: one for each "?" in @sql
 * @row: (nullable): called for each row of the result
 * @changes: (out) (optional): rows changed
 * @last_id: (out) (optional): id of the row that was inserted
 *
 * Runs one statement to its end; on the disk when it returns, unless a transaction is open.
 */
gboolean bj_database_run (BjDatabase *self, const char *sql, const BjValue *values, guint n_values, BjDatabaseRow row,
                          gpointer user_data, int *changes, gint64 *last_id, GError **error);

char *bj_database_dup_text (sqlite3_stmt *statement, int column);

G_END_DECLS
