/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-store.h"

#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

typedef struct
{
  char *dir;
  char *path;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->dir = g_dir_make_tmp ("bj-store-XXXXXX", NULL);
  fixture->path = g_build_filename (fixture->dir, "belljar.db", NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  static const char *const suffixes[] = { "", "-wal", "-shm" };

  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    {
      g_autofree char *path = g_strconcat (fixture->path, suffixes[i], NULL);
      g_unlink (path);
    }
  g_assert_cmpint (g_rmdir (fixture->dir), ==, 0);
  g_free (fixture->dir);
  g_free (fixture->path);
}

static BjStore *
open_store (Fixture *fixture)
{
  g_autoptr(GError) error = NULL;
  BjStore *store = bj_store_open (fixture->path, &error);

  g_assert_no_error (error);
  return store;
}

static void
run_sql (const char *path, const char *sql)
{
  sqlite3 *db = NULL;

  g_assert_cmpint (sqlite3_open (path, &db), ==, SQLITE_OK);
  g_assert_cmpint (sqlite3_exec (db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
  sqlite3_close (db);
}

static void
put_session (BjStore *store, const char *id, gint64 started, const char *state)
{
  g_autoptr(GError) error = NULL;
  BjSessionRow row = { (char *) id, (char *) "task", (char *) "blue", (char *) "debian", 3, 4000000000u, (char *) state,
                       (char *) "", NULL, started, 0, started + 1200, 1023, 17, (char *) "tcg", (char *) "Fix it; '\"\n–",
                       (char *) "{\"check\":\"make test\"}", (char *) "00ff", G_GUINT64_CONSTANT (1) << 40 };

  g_assert_true (bj_store_put_session (store, &row, &error));
  g_assert_no_error (error);
}

static void
test_sessions (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autoptr(GPtrArray) rows = NULL;
  const BjSessionRow *row;

  put_session (store, "bbbbbbbb", 20, "running");
  put_session (store, "aaaaaaaa", 30, "running");
  put_session (store, "cccccccc", 10, "running");
  put_session (store, "bbbbbbbb", 20, "finished");
  g_clear_object (&store);

  store = open_store (fixture);
  rows = bj_store_list_sessions (store, NULL);
  g_assert_cmpuint (rows->len, ==, 3);
  g_assert_cmpstr (((BjSessionRow *) rows->pdata[0])->id, ==, "cccccccc");
  g_assert_cmpstr (((BjSessionRow *) rows->pdata[2])->id, ==, "aaaaaaaa");
  row = rows->pdata[1];
  g_assert_cmpstr (row->id, ==, "bbbbbbbb");
  g_assert_cmpstr (row->kind, ==, "task");
  g_assert_cmpstr (row->project, ==, "blue");
  g_assert_cmpstr (row->image, ==, "debian");
  g_assert_cmpuint (row->image_version, ==, 3);
  g_assert_cmpuint (row->owner_uid, ==, 4000000000u);
  g_assert_cmpstr (row->state, ==, "finished");
  g_assert_cmpstr (row->outcome, ==, "");
  g_assert_cmpstr (row->verdict, ==, ""); /* NULL is stored as "" */
  g_assert_cmpint (row->started, ==, 20);
  g_assert_cmpint (row->deadline, ==, 1220);
  g_assert_cmpuint (row->slot, ==, 1023);
  g_assert_cmpuint (row->steps, ==, 17);
  g_assert_cmpstr (row->accelerator, ==, "tcg");
  g_assert_cmpstr (row->task, ==, "Fix it; '\"\n–");
  g_assert_cmpstr (row->options, ==, "{\"check\":\"make test\"}");
  g_assert_cmpstr (row->transcript_head, ==, "00ff");
  g_assert_cmpuint (row->transcript_count, ==, G_GUINT64_CONSTANT (1) << 40);
}

static void
test_delete_session (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autoptr(GPtrArray) rows = NULL;
  g_autoptr(GPtrArray) plan = NULL;
  guint id = 0;

  put_session (store, "bbbbbbbb", 20, "running");
  g_assert_true (bj_store_add_plan (store, "bbbbbbbb", "look", &id, NULL));
  g_assert_true (bj_store_delete_session (store, "bbbbbbbb", NULL));
  g_assert_true (bj_store_delete_session (store, "bbbbbbbb", NULL));
  rows = bj_store_list_sessions (store, NULL);
  g_assert_cmpuint (rows->len, ==, 0);
  plan = bj_store_list_plan (store, "bbbbbbbb", NULL);
  g_assert_cmpuint (plan->len, ==, 0);
}

static void
test_projects_and_images (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  BjProjectRow project = { (char *) "blue", 1000, 1001, 5, G_MAXINT64, (char *) "none", (char *) "abc", 12 };
  BjImageRow image = { (char *) "debian", 1, (char *) "Debian 12", (char *) "debian", (char *) "frozen",
                       (char *) "sha256:00", 123, -7, G_MAXUINT64, 99, 1 };
  g_autoptr(GPtrArray) projects = NULL;
  g_autoptr(GPtrArray) images = NULL;
  const BjProjectRow *p;
  const BjImageRow *i;

  g_assert_true (bj_store_put_project (store, &project, NULL));
  project.name = (char *) "amber";
  g_assert_true (bj_store_put_project (store, &project, NULL));
  g_assert_true (bj_store_delete_project (store, "blue", NULL));
  projects = bj_store_list_projects (store, NULL);
  g_assert_cmpuint (projects->len, ==, 1);
  p = projects->pdata[0];
  g_assert_cmpstr (p->name, ==, "amber");
  g_assert_cmpuint (p->owner_uid, ==, 1000);
  g_assert_cmpuint (p->owner_gid, ==, 1001);
  g_assert_cmpuint (p->quota, ==, 5);
  g_assert_cmpuint (p->used, ==, G_MAXINT64);
  g_assert_cmpstr (p->head, ==, "abc");
  g_assert_cmpint (p->created, ==, 12);

  for (image.version = 10; image.version > 7; image.version--)
    g_assert_true (bj_store_put_image (store, &image, NULL));
  g_assert_true (bj_store_delete_image (store, "debian", 9, NULL));
  images = bj_store_list_images (store, NULL);
  g_assert_cmpuint (images->len, ==, 2);
  i = images->pdata[1];
  g_assert_cmpuint (i->version, ==, 10);
  g_assert_cmpstr (i->os, ==, "Debian 12");
  g_assert_cmpstr (i->digest, ==, "sha256:00");
  g_assert_cmpint (i->mtime_ns, ==, -7);
  g_assert_cmpuint (i->inode, ==, G_MAXUINT64);
  g_assert_cmpuint (i->api_version, ==, 1);
}

static void
test_plan (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autoptr(GPtrArray) plan = NULL;
  g_autoptr(GError) error = NULL;
  guint id = 0;

  for (guint i = 1; i <= 3; i++)
    {
      g_assert_true (bj_store_add_plan (store, "aaaaaaaa", "step", &id, NULL));
      g_assert_cmpuint (id, ==, i);
    }
  g_assert_true (bj_store_add_plan (store, "bbbbbbbb", "other", &id, NULL));
  g_assert_cmpuint (id, ==, 1);
  g_assert_true (bj_store_update_plan (store, "aaaaaaaa", 2, "done", NULL));
  g_assert_false (bj_store_update_plan (store, "aaaaaaaa", 4, "done", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  plan = bj_store_list_plan (store, "aaaaaaaa", NULL);
  g_assert_cmpuint (plan->len, ==, 3);
  g_assert_cmpstr (((BjPlanRow *) plan->pdata[1])->status, ==, "done");
  g_assert_cmpstr (((BjPlanRow *) plan->pdata[2])->status, ==, "todo");
}

static void
test_settings (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autofree char *value = NULL;

  g_assert_null (bj_store_dup_setting (store, "default-image"));
  g_assert_true (bj_store_set_setting (store, "default-image", "a", NULL));
  g_assert_true (bj_store_set_setting (store, "default-image", "b", NULL));
  value = bj_store_dup_setting (store, "default-image");
  g_assert_cmpstr (value, ==, "b");
}

/* A second store on the same file stands for the daemon after a crash: the first never closed its entries. */
static void
test_journal (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autoptr(BjStore) after = NULL;
  g_autoptr(GPtrArray) entries = NULL;
  g_autoptr(GError) failure = g_error_new_literal (BJ_ERROR, BJ_ERROR_FAILED, "no such disk");
  g_autoptr(GError) error = NULL;
  gint64 first = bj_journal_begin (store, "session/aaaaaaaa", "machine-start", "{\"slot\":3}", NULL);
  gint64 second = bj_journal_begin (store, "image/debian", "build", NULL, NULL);
  gint64 third = bj_journal_begin (store, "session/aaaaaaaa", "share", NULL, NULL);

  g_assert_cmpint (first, >, 0);
  g_assert_cmpint (second, >, first);
  g_assert_true (bj_journal_end (store, second, failure, NULL));
  after = open_store (fixture);
  entries = bj_journal_list_open (after, NULL);
  g_assert_cmpuint (entries->len, ==, 2);
  g_assert_cmpint (((BjJournalEntry *) entries->pdata[0])->id, ==, first);
  g_assert_cmpstr (((BjJournalEntry *) entries->pdata[0])->subject, ==, "session/aaaaaaaa");
  g_assert_cmpstr (((BjJournalEntry *) entries->pdata[0])->data, ==, "{\"slot\":3}");
  g_assert_cmpstr (((BjJournalEntry *) entries->pdata[1])->action, ==, "share");
  g_assert_true (bj_journal_end (after, first, NULL, NULL));
  g_assert_true (bj_journal_end (after, third, NULL, NULL));
  g_assert_false (bj_journal_end (after, third, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_pointer (&entries, g_ptr_array_unref);
  entries = bj_journal_list_open (after, NULL);
  g_assert_cmpuint (entries->len, ==, 0);
}

static void
test_migration (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = NULL;
  g_autoptr(GPtrArray) projects = NULL;
  g_autoptr(GPtrArray) entries = NULL;
  g_autofree char *sql = NULL;

  g_assert_true (g_file_get_contents (SCHEMA_1, &sql, NULL, NULL));
  run_sql (fixture->path, sql);
  store = open_store (fixture);
  projects = bj_store_list_projects (store, NULL);
  g_assert_cmpuint (projects->len, ==, 1);
  g_assert_cmpstr (((BjProjectRow *) projects->pdata[0])->name, ==, "old");
  entries = bj_journal_list_open (store, NULL);
  g_assert_cmpuint (entries->len, ==, 1);
  g_assert_cmpstr (((BjJournalEntry *) entries->pdata[0])->action, ==, "machine-start");
  put_session (store, "bbbbbbbb", 20, "running");
  g_clear_object (&store);
  store = open_store (fixture); /* and it does not migrate twice */
}

static void
test_newer (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(GError) error = NULL;

  g_object_unref (open_store (fixture));
  run_sql (fixture->path, "PRAGMA user_version = 1000");
  g_assert_null (bj_store_open (fixture->path, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, fixture->path));
  g_assert_nonnull (strstr (error->message, "schema 1000"));
}

static void
expect_damaged (Fixture *fixture)
{
  g_autoptr(GError) error = NULL;

  g_assert_null (bj_store_open (fixture->path, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "is damaged"));
  g_assert_nonnull (strstr (error->message, fixture->path));
  g_assert_nonnull (strstr (error->message, "move it away"));
}

static void
test_no_database (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *garbage = g_strnfill (8192, 'x');

  g_assert_true (g_file_set_contents (fixture->path, garbage, 8192, NULL));
  expect_damaged (fixture);
}

static void
test_bad_pages (Fixture *fixture, gconstpointer unused)
{
  g_autofree char *content = NULL;
  gsize length = 0;

  g_object_unref (open_store (fixture));
  g_assert_true (g_file_get_contents (fixture->path, &content, &length, NULL));
  memset (content + 4096, 0xff, length - 4096); /* a good header over bad pages */
  g_assert_true (g_file_set_contents (fixture->path, content, (gssize) length, NULL));
  g_test_expect_message ("belljar-database", G_LOG_LEVEL_WARNING, "*");
  expect_damaged (fixture);
  g_test_assert_expected_messages ();
}

static void
test_unwritable (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_build_filename (fixture->dir, "none", "belljar.db", NULL);

  g_assert_null (bj_store_open (path, &error));
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, path));
}

static void
test_mode (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autofree char *wal = g_strconcat (fixture->path, "-wal", NULL);
  struct stat info;

  g_assert_nonnull (store);
  g_assert_cmpint (stat (fixture->path, &info), ==, 0);
  g_assert_cmpint (info.st_mode & 0777, ==, 0600);
  g_assert_cmpint (stat (wal, &info), ==, 0);
  g_assert_cmpint (info.st_mode & 0777, ==, 0600);
}

static gpointer
write_many (gpointer data)
{
  for (guint i = 0; i < 50; i++)
    {
      gint64 id = bj_journal_begin (data, "session/x", "act", NULL, NULL);

      g_assert_cmpint (id, >, 0);
      g_assert_true (bj_journal_end (data, id, NULL, NULL));
    }
  return NULL;
}

static void
test_threads (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjStore) store = open_store (fixture);
  g_autoptr(GPtrArray) entries = NULL;
  GThread *threads[2];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("write", write_many, store);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  entries = bj_journal_list_open (store, NULL);
  g_assert_cmpuint (entries->len, ==, 0);
  g_assert_cmpint (bj_journal_begin (store, "s", "a", NULL, NULL), ==, 101);
}

#define ADD(name, func) g_test_add ("/store/" name, Fixture, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("sessions", test_sessions);
  ADD ("delete-session", test_delete_session);
  ADD ("projects-and-images", test_projects_and_images);
  ADD ("plan", test_plan);
  ADD ("settings", test_settings);
  ADD ("journal", test_journal);
  ADD ("migration", test_migration);
  ADD ("newer", test_newer);
  ADD ("no-database", test_no_database);
  ADD ("bad-pages", test_bad_pages);
  ADD ("unwritable", test_unwritable);
  ADD ("mode", test_mode);
  ADD ("threads", test_threads);
  return g_test_run ();
}
