/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-ndjson.h"

#include "bj-error.h"

#include <string.h>

static gboolean
collect (const char *line, gsize length, gpointer data, GError **error)
{
  GString *all = data;

  g_string_append_len (all, line, (gssize) length);
  g_string_append_c (all, '|');
  return memchr (line, '!', length) == NULL || bj_error_set (error, BJ_ERROR_FAILED, "stop");
}

static void
test_rows (void)
{
  static const struct
  {
    const char *bytes;
    const char *lines; /* NULL: error */
  } rows[] = {
    { "a\nb\n", "a|b|" }, { "a\nb", "a|b|" }, { "", "" },           { "\n\n \r\n\t\n", "" },
    { "a\r\n", "a\r|" },  { "12345678\n", "12345678|" }, { "123456789\n", NULL }, { "1\n123456789", NULL },
    { "a\n!\nb\n", NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    for (gsize step = 1; step < 12; step++)
      {
        g_autoptr(GString) all = g_string_new (NULL);
        g_autoptr(BjNdjson) lines = bj_ndjson_new (8, collect, all);
        g_autoptr(GError) error = NULL;
        gsize length = strlen (rows[i].bytes);
        gboolean ok = TRUE;

        for (gsize at = 0; ok && at < length; at += step)
          ok = bj_ndjson_push (lines, rows[i].bytes + at, MIN (step, length - at), &error);
        ok = ok && bj_ndjson_end (lines, &error);
        g_assert_cmpint (ok, ==, rows[i].lines != NULL);
        if (ok)
          g_assert_cmpstr (all->str, ==, rows[i].lines);
        else
          g_assert_nonnull (error);
      }
}

static void
test_nul (void)
{
  g_autoptr(GString) all = g_string_new (NULL);
  g_autoptr(BjNdjson) lines = bj_ndjson_new (8, collect, all);

  g_assert_true (bj_ndjson_push (lines, "a\0b\n", 4, NULL));
  g_assert_cmpmem (all->str, (int) all->len, "a\0b|", 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/agent/ndjson/rows", test_rows);
  g_test_add_func ("/agent/ndjson/nul", test_nul);
  return g_test_run ();
}
