/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-store.h"

static BjStore *
open_store (void)
{
  g_autoptr(GError) error = NULL;
  BjStore *store = bj_store_open (":memory:", &error);
  BjProjectRow project = { (char *) "demo", 1000, 1000, 0, 0, (char *) "none", (char *) "", 0 };

  g_assert_no_error (error);
  g_assert_true (bj_store_put_project (store, &project, NULL));
  return store;
}

static void
put_session (BjStore *store, const char *id, const char *state, const char *outcome, const char *verdict)
{
  BjSessionRow row = { (char *) id, (char *) "task", (char *) "demo", (char *) "debian", 1, 1000, (char *) state,
                       (char *) outcome, (char *) verdict, 10, 0, 20, 1, 1, (char *) "tcg", (char *) "x", (char *) "{}",
                       (char *) "", 0 };

  g_assert_true (bj_store_put_session (store, &row, NULL));
}

static guint
add (BjStore *store, const char *text)
{
  g_autoptr(GError) error = NULL;
  guint id = 0;

  g_assert_true (bj_store_add_task (store, "demo", text, &id, &error));
  g_assert_no_error (error);
  return id;
}

static void
assert_status (BjStore *store, guint id, const char *status)
{
  g_autoptr(BjTaskRow) row = bj_store_dup_task (store, "demo", id, NULL);

  g_assert_nonnull (row);
  g_assert_cmpstr (row->status, ==, status);
}

static void
assert_newest_link (BjStore *store, const char *session, const char *outcome, const char *verdict)
{
  g_autoptr(GPtrArray) links = bj_store_list_task_sessions (store, "demo", NULL);
  const BjTaskSessionRow *row;

  g_assert_cmpuint (links->len, >, 0);
  row = links->pdata[0];
  g_assert_cmpstr (row->session, ==, session);
  g_assert_cmpstr (row->outcome, ==, outcome);
  g_assert_cmpstr (row->verdict, ==, verdict);
}

static void
test_order (void)
{
  g_autoptr(BjStore) store = open_store ();
  g_autoptr(GString) order = g_string_new (NULL);
  g_autoptr(GPtrArray) rows = NULL;

  for (guint i = 1; i <= 5; i++)
    g_assert_cmpuint (add (store, "x"), ==, i);
  g_assert_true (bj_store_update_task (store, "demo", 5, NULL, NULL, 2, NULL));
  g_assert_true (bj_store_update_task (store, "demo", 1, NULL, NULL, G_MAXUINT, NULL));
  g_assert_cmpuint (add (store, "y"), ==, 6);
  g_assert_true (bj_store_update_task (store, "demo", 6, NULL, NULL, 3, NULL));
  rows = bj_store_list_tasks (store, "demo", NULL);
  for (guint i = 0; i < rows->len; i++)
    g_string_append_printf (order, "%u", ((BjTaskRow *) rows->pdata[i])->id);
  g_assert_cmpstr (order->str, ==, "526341");
}

static void
test_missing (void)
{
  g_autoptr(BjStore) store = open_store ();
  g_autoptr(GError) error = NULL;
  guint id;

  g_assert_false (bj_store_add_task (store, "nosuch", "x", &id, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_false (bj_store_update_task (store, "demo", 1, "x", NULL, 0, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_null (bj_store_dup_task (store, "demo", 1, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
}

static void
test_verdicts (void)
{
  static const struct
  {
    const char *state, *outcome, *verdict, *status, *noted;
  } cases[] = {
    { "finished", "DONE", "proved", "done", "DONE" },     { "finished", "DONE", "passes", "done", "DONE" },
    { "finished", "DONE", "passes-here", "todo", "DONE" }, { "finished", "DONE", "none", "todo", "DONE" },
    { "finished", "DONE", "failed", "todo", "DONE" },      { "failed", "FAILED", "proved", "todo", "FAILED" },
    { "cancelled", "CANCELLED", "", "todo", "CANCELLED" }, { "running", "", "", "doing", "" },
    { "needs-input", "NEEDS INPUT", "", "doing", "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(BjStore) store = open_store ();
      guint id = add (store, "x");

      g_assert_true (bj_store_begin_task (store, "demo", id, "aaaaaaaa", NULL));
      g_assert_true (bj_store_settle_tasks (store, NULL)); /* its row is not there yet */
      assert_status (store, id, "doing");
      put_session (store, "aaaaaaaa", cases[i].state, cases[i].outcome, cases[i].verdict);
      for (guint again = 0; again < 2; again++)
        {
          g_assert_true (bj_store_settle_tasks (store, NULL));
          assert_status (store, id, cases[i].status);
          assert_newest_link (store, "aaaaaaaa", cases[i].noted, *cases[i].noted != '\0' ? cases[i].verdict : "");
        }
    }
}

/* What a person said while a session worked counts. */
static void
test_person (void)
{
  g_autoptr(BjStore) store = open_store ();
  guint id = add (store, "x");

  g_assert_true (bj_store_begin_task (store, "demo", id, "aaaaaaaa", NULL));
  g_assert_true (bj_store_update_task (store, "demo", id, NULL, "dropped", 0, NULL));
  put_session (store, "aaaaaaaa", "finished", "DONE", "proved");
  g_assert_true (bj_store_settle_tasks (store, NULL));
  assert_status (store, id, "dropped");
  assert_newest_link (store, "aaaaaaaa", "DONE", "proved");
}

/* A crash between any two steps: nothing is doing for a session that never came to be, what a person set stays. */
static void
test_recover (void)
{
  g_autoptr(BjStore) store = open_store ();
  g_autoptr(GPtrArray) rows = NULL;
  guint begun = add (store, "x"), person = add (store, "y");

  g_assert_true (bj_store_begin_task (store, "demo", begun, "aaaaaaaa", NULL));
  g_assert_true (bj_store_update_task (store, "demo", person, NULL, "doing", 0, NULL));
  g_assert_true (bj_store_recover_tasks (store, NULL));
  assert_status (store, begun, "todo");
  assert_status (store, person, "doing");
  assert_newest_link (store, "aaaaaaaa", "CANCELLED", "");
  g_assert_true (bj_store_delete_project (store, "demo", NULL));
  rows = bj_store_list_tasks (store, "demo", NULL);
  g_assert_cmpuint (rows->len, ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/task-list/order", test_order);
  g_test_add_func ("/task-list/missing", test_missing);
  g_test_add_func ("/task-list/verdicts", test_verdicts);
  g_test_add_func ("/task-list/person", test_person);
  g_test_add_func ("/task-list/recover", test_recover);
  return g_test_run ();
}
