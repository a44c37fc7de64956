/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-transcript.h"

#include <string.h>

static void
test_cut (void)
{
  static const struct
  {
    const char *text;
    guint columns;
    const char *cut;
  } cases[] = {
    { "", 5, "" },      { "abcde", 5, "abcde" }, { "abcdef", 5, "abcd…" },
    { "äöüß", 4, "äöüß" }, { "äöüßx", 4, "äöü…" },  { "日本語", 6, "日本語" },
    { "日本語", 5, "日本…" }, { "日本語", 4, "日…" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *cut = bj_output_cut (cases[i].text, cases[i].columns);

      g_assert_cmpstr (cut, ==, cases[i].cut);
    }
}

static void
test_snake (void)
{
  static const char *const cases[][2] = {
    { "StartedAt", "started_at" }, { "Os", "os" }, { "SessionsUsing", "sessions_using" }, { "", "" }, { "name", "name" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *snake = bj_output_to_snake (cases[i][0]);

      g_assert_cmpstr (snake, ==, cases[i][1]);
    }
}

static void
test_table (void)
{
  static const char *const titles[] = { "NAME", "TEXT", NULL };
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  g_autofree char *plain = NULL;
  g_autofree char *aligned = NULL;
  g_autofree char *narrow = NULL;

  g_ptr_array_add (rows, bj_output_dup_row ((const char *[]){ "a", "one" }, 2));
  g_ptr_array_add (rows, bj_output_dup_row ((const char *[]){ "longer", NULL }, 2));
  plain = bj_output_format_table (titles, rows, FALSE, FALSE, 80);
  g_assert_cmpstr (plain, ==, "a\tone\nlonger\t\n");
  aligned = bj_output_format_table (titles, rows, TRUE, FALSE, 80);
  g_assert_cmpstr (aligned, ==, "NAME    TEXT\na       one\nlonger  \n");
  narrow = bj_output_format_table (titles, rows, TRUE, FALSE, 10);
  g_assert_cmpstr (narrow, ==, "NAME    T…\na       o…\nlonger  \n");
}

/* A cell can neither start a row, nor a column, nor reach the terminal. */
static void
test_hostile_cells (void)
{
  static const char *const titles[] = { "NAME", NULL };
  static const char *const cells[] = { "a\nb", "a\tb", "\033[2J", "\xff\xfe", "a\rb", "\xe2\x80\xae!" };

  for (guint i = 0; i < G_N_ELEMENTS (cells); i++)
    {
      g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
      g_autofree char *text = NULL;

      g_ptr_array_add (rows, bj_output_dup_row (&cells[i], 1));
      text = bj_output_format_table (titles, rows, FALSE, FALSE, 80);
      g_test_message ("%u", i);
      g_assert_true (g_utf8_validate (text, -1, NULL));
      g_assert_cmpint (strcspn (text, "\n"), ==, strlen (text) - 1);
      g_assert_null (strpbrk (text, "\t\r\033"));
      g_assert_null (strstr (text, "\xe2\x80\xae"));
    }
}

static void
test_record_lines (void)
{
  static const struct
  {
    const char *line;
    const char *holds;
  } cases[] = {
    { "{\"n\":3,\"at\":1,\"by\":\"seen\",\"type\":\"command\",\"data\":{\"exit\":0,\"label\":\"make\"}}", "label=make" },
    { "{\"n\":3,\"at\":1,\"by\":\"seen\",\"type\":\"command\",\"data\":{\"exit\":0,\"label\":\"make\"}}", "exit=0" },
    { "{\"by\":\"seen\\u001b[1m\\nx\"}", "x" },
    { "{\"data\":{\"a\\nb\":{\"c\":\"\\u202e\"}}}", "c" },
    { "{\"at\":1e300}", "--:--:--" },
    { "{\"at\":-5}", "--:--:--" },
    { "{\"at\":\"x\",\"n\":\"y\",\"by\":7,\"type\":[],\"data\":[]}", "?" },
    { "[1]", "no record" },
    { "7", "no record" },
    { "", "n" },
    { "{", "not JSON" },
    { "\xff", "not JSON" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *text = bj_record_to_line (cases[i].line, strlen (cases[i].line), FALSE);

      g_test_message ("%u -> %s", i, text);
      g_assert_nonnull (strstr (text, cases[i].holds));
      g_assert_null (strpbrk (text, "\n\033"));
      g_assert_null (strstr (text, "\xe2\x80\xae"));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/cut", test_cut);
  g_test_add_func ("/cli/snake", test_snake);
  g_test_add_func ("/cli/table", test_table);
  g_test_add_func ("/cli/hostile-cells", test_hostile_cells);
  g_test_add_func ("/cli/record-lines", test_record_lines);
  return g_test_run ();
}
