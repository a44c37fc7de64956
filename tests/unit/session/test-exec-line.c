/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The line of the commands that people run in one session. */
#include "bj-error.h"
#include "bj-exec-line.h"

static GArray *started; /* of guint */

static void
start (gpointer call)
{
  guint number = GPOINTER_TO_UINT (call);

  g_array_append_val (started, number);
}

static gboolean
enter (BjExecLine *line, guint number, GCancellable *cancellable)
{
  g_autoptr(GError) error = NULL;
  gboolean ok = bj_exec_line_enter (line, start, GUINT_TO_POINTER (number), cancellable, &error);

  if (!ok)
    g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
  return ok;
}

static void
assert_started (guint count)
{
  g_assert_cmpuint (started->len, ==, count);
  for (guint i = 0; i < count; i++)
    g_assert_cmpuint (g_array_index (started, guint, i), ==, i);
}

static void
test_order (void)
{
  const guint all = BJ_EXEC_LINE_AT_ONCE + BJ_EXEC_LINE_WAITING;
  BjExecLine *line = bj_exec_line_new ();
  g_autoptr(GCancellable) cancellable = g_cancellable_new ();

  started = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < all; i++)
    g_assert_true (enter (line, i, cancellable));
  assert_started (BJ_EXEC_LINE_AT_ONCE);
  g_assert_false (enter (line, 1000, cancellable));
  g_assert_false (bj_exec_line_is_empty (line));
  for (guint i = 0; i < all; i++)
    {
      assert_started (MIN (i + BJ_EXEC_LINE_AT_ONCE, all));
      bj_exec_line_leave (line);
    }
  assert_started (all);
  g_assert_true (bj_exec_line_is_empty (line));
  g_assert_true (enter (line, all, cancellable)); /* and again */
  g_assert_false (bj_exec_line_is_empty (line));
  assert_started (all + 1);
  bj_exec_line_leave (line);
  bj_exec_line_free (line);
  g_array_unref (started);
}

/* Those who have gone do not keep others out, and are told so at once. */
static void
test_gone (void)
{
  BjExecLine *line = bj_exec_line_new ();
  g_autoptr(GCancellable) here = g_cancellable_new ();
  g_autoptr(GCancellable) gone = g_cancellable_new ();
  guint running = BJ_EXEC_LINE_AT_ONCE + BJ_EXEC_LINE_WAITING;

  started = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < running; i++)
    g_assert_true (enter (line, i, i < BJ_EXEC_LINE_AT_ONCE ? here : gone));
  g_cancellable_cancel (gone);
  g_assert_true (enter (line, running, here));
  g_assert_cmpuint (started->len, ==, running);
  for (guint i = 0; i < BJ_EXEC_LINE_WAITING; i++)
    bj_exec_line_leave (line);
  g_assert_cmpuint (started->len, ==, running); /* still as many as may be */
  bj_exec_line_leave (line);
  g_assert_cmpuint (started->len, ==, running + 1);
  g_assert_cmpuint (g_array_index (started, guint, running), ==, running);
  for (guint i = 0; i < BJ_EXEC_LINE_AT_ONCE; i++)
    bj_exec_line_leave (line);
  bj_exec_line_free (line);
  g_array_unref (started);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/exec-line/order", test_order);
  g_test_add_func ("/exec-line/gone", test_gone);
  return g_test_run ();
}
