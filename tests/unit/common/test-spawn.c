/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-spawn.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static char *
run_shell (const char *script, GBytes *input, guint timeout_s, GError **error)
{
  const char *argv[] = { "sh", "-c", script, NULL };
  const BjSpawn spawn = { .argv = argv, .input = input, .timeout_s = timeout_s };
  g_autoptr(GBytes) output = NULL;
  gsize size;
  const char *data;

  if (!bj_spawn_run (&spawn, &output, NULL, error))
    return NULL;
  data = g_bytes_get_data (output, &size);
  return g_strndup (data, size);
}

static void
test_output (void)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) input = g_bytes_new_static ("hello", 5);
  g_autofree char *output = run_shell ("cat; echo world; echo note >&2", input, 10, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (output, ==, "helloworld\n");
}

static void
test_failure_names_reason (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *output = run_shell ("echo 'no such thing' >&2; exit 7", NULL, 10, &error);

  g_assert_null (output);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "exit code 7: no such thing"));
}

static void
test_timeout_kills_group (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *mark = g_strdup_printf ("3%d", getpid ());
  g_autofree char *script = g_strdup_printf ("sleep %s & sleep %s", mark, mark);
  g_autofree char *look = g_strdup_printf ("pgrep -fx 'sleep %s' || echo none", mark);
  g_autofree char *output = run_shell (script, NULL, 1, &error);
  g_autofree char *left = NULL;

  g_assert_null (output);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "1 seconds"));
  left = run_shell (look, NULL, 10, NULL);
  g_assert_cmpstr (left, ==, "none\n");
}

static void
test_too_much_output (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *output = run_shell ("yes", NULL, 20, &error);

  g_assert_null (output);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
}

static void
test_grandchild_holding_pipe (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *output = run_shell ("sleep 60 & echo done", NULL, 20, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (output, ==, "done\n");
}

static gpointer
cancel_soon (gpointer cancellable)
{
  g_usleep (100000);
  g_cancellable_cancel (cancellable);
  return NULL;
}

static void
test_cancel (void)
{
  const char *argv[] = { "sleep", "60", NULL };
  const BjSpawn spawn = { .argv = argv };
  g_autoptr(GCancellable) cancellable = g_cancellable_new ();
  g_autoptr(GError) error = NULL;
  GThread *thread = g_thread_new ("cancel", cancel_soon, cancellable);

  g_assert_false (bj_spawn_run (&spawn, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
}

static void
collect (const char *line, gpointer data)
{
  g_string_append_printf (data, "[%s]", line);
}

static void
test_lines (void)
{
  const char *argv[] = { "sh", "-c", "printf 'one\\ntwo\\n\\377three' >&2", NULL };
  g_autoptr(GString) lines = g_string_new (NULL);
  const BjSpawn spawn = { .argv = argv, .on_line = collect, .user_data = lines };

  g_assert_true (bj_spawn_run (&spawn, NULL, NULL, NULL));
  g_assert_cmpstr (lines->str, ==, "[one][two][\xef\xbf\xbdthree]");
}

static void
test_missing_program (void)
{
  const char *argv[] = { "/nonexistent/program", NULL };
  const BjSpawn spawn = { .argv = argv };
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_spawn_run (&spawn, NULL, NULL, &error));
  g_assert_nonnull (strstr (error->message, "/nonexistent/program"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  signal (SIGPIPE, SIG_IGN);
  g_test_add_func ("/spawn/output", test_output);
  g_test_add_func ("/spawn/failure-names-reason", test_failure_names_reason);
  g_test_add_func ("/spawn/timeout-kills-group", test_timeout_kills_group);
  g_test_add_func ("/spawn/too-much-output", test_too_much_output);
  g_test_add_func ("/spawn/grandchild-holding-pipe", test_grandchild_holding_pipe);
  g_test_add_func ("/spawn/cancel", test_cancel);
  g_test_add_func ("/spawn/lines", test_lines);
  g_test_add_func ("/spawn/missing-program", test_missing_program);
  return g_test_run ();
}
