/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-progress.h"

#include <string.h>

typedef struct
{
  GString *phases;
  double last;
  guint calls;
} Seen;

static void
on_progress (const char *phase, double fraction, gpointer user_data)
{
  Seen *seen = user_data;

  g_assert_cmpfloat (fraction, >=, seen->last);
  seen->last = fraction;
  seen->calls++;
  if (seen->phases != NULL && !g_str_has_suffix (seen->phases->str, phase))
    g_string_append_printf (seen->phases, " %s", phase);
}

static void
test_weights (void)
{
  g_autoptr(GString) phases = g_string_new (NULL);
  Seen seen = { phases, 0, 0 };
  g_autoptr(BjProgress) progress = bj_progress_new (on_progress, &seen);

  bj_progress_add_step (progress, "fetch", 60);
  bj_progress_add_step (progress, "verify", 10);
  bj_progress_add_step (progress, "import", 30);
  bj_progress_set (progress, 0.5);
  g_assert_cmpfloat_with_epsilon (seen.last, 0.3, 1e-9);
  bj_progress_step_done (progress);
  g_assert_cmpfloat_with_epsilon (seen.last, 0.6, 1e-9);
  bj_progress_set (progress, 7); /* out of range counts as done */
  g_assert_cmpfloat_with_epsilon (seen.last, 0.7, 1e-9);
  bj_progress_step_done (progress);
  bj_progress_step_done (progress);
  g_assert_cmpfloat_with_epsilon (seen.last, 1.0, 1e-9);
  bj_progress_step_done (progress); /* one too many changes nothing */
  g_assert_cmpfloat_with_epsilon (seen.last, 1.0, 1e-9);
  g_assert_cmpstr (phases->str, ==, " fetch verify import");
}

static void
test_small_moves (void)
{
  Seen seen = { NULL, 0, 0 };
  g_autoptr(BjProgress) progress = bj_progress_new (on_progress, &seen);

  bj_progress_add_step (progress, "all", 1);
  for (guint i = 0; i <= 100000; i++)
    bj_progress_set (progress, i / 100000.0);
  g_assert_cmpuint (seen.calls, >, 100);
  g_assert_cmpuint (seen.calls, <, 250);
  g_assert_cmpfloat_with_epsilon (seen.last, 1.0, 1e-9);
  bj_progress_set (progress, 0.1); /* going back is not shown */
  g_assert_cmpfloat_with_epsilon (seen.last, 1.0, 1e-9);
}

static void
test_child (void)
{
  g_autoptr(GString) phases = g_string_new (NULL);
  Seen seen = { phases, 0, 0 };
  g_autoptr(BjProgress) progress = bj_progress_new (on_progress, &seen);
  g_autoptr(BjProgress) child = bj_progress_new_child (progress);

  bj_progress_add_step (progress, "build", 80);
  bj_progress_add_step (progress, "freeze", 20);
  bj_progress_add_step (child, "bootstrap", 1);
  bj_progress_add_step (child, "smoke", 1);
  bj_progress_set (child, 0.5);
  g_assert_cmpfloat_with_epsilon (seen.last, 0.2, 1e-9);
  bj_progress_step_done (child);
  bj_progress_step_done (child);
  g_assert_cmpfloat_with_epsilon (seen.last, 0.8, 1e-9);
  bj_progress_step_done (progress);
  bj_progress_set (progress, 0.5);
  g_assert_cmpfloat_with_epsilon (seen.last, 0.9, 1e-9);
  g_assert_cmpstr (phases->str, ==, " build bootstrap smoke freeze");
}

static void
test_null (void)
{
  g_assert_null (bj_progress_new_child (NULL));
  bj_progress_add_step (NULL, "x", 1);
  bj_progress_set (NULL, 0.5);
  bj_progress_step_done (NULL);
  bj_progress_free (NULL);
}

static gpointer
push (gpointer data)
{
  for (guint i = 0; i < 2000; i++)
    bj_progress_set (data, i / 2000.0);
  return NULL;
}

static void
test_threads (void)
{
  Seen seen = { NULL, 0, 0 };
  g_autoptr(BjProgress) progress = bj_progress_new (on_progress, &seen);
  GThread *threads[4];

  bj_progress_add_step (progress, "all", 1);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("push", push, progress);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpuint (seen.calls, <, 250);
  g_assert_cmpfloat (seen.last, >, 0.99);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/progress/weights", test_weights);
  g_test_add_func ("/progress/small-moves", test_small_moves);
  g_test_add_func ("/progress/child", test_child);
  g_test_add_func ("/progress/null", test_null);
  g_test_add_func ("/progress/threads", test_threads);
  return g_test_run ();
}
