/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes in any form: visible text within the cap, the same again when cleaned, and lines that are ours. */

#include "fuzz.h"

#include "bj-untrusted.h"

#include <string.h>

static void
check_text (const char *text, gboolean block, gsize cap)
{
  g_autofree char *again = bj_untrusted_clean (text, block, 0);

  g_assert_true (g_utf8_validate (text, -1, NULL));
  g_assert_true (cap == 0 || strlen (text) <= cap);
  for (const char *p = text; *p != '\0'; p++)
    g_assert_true (((guchar) *p >= ' ' && *p != 0x7f) || (block && *p == '\n'));
  if (cap == 0)
    g_assert_cmpstr (again, ==, text);
}

static void
check_fold (const char *block, guint width)
{
  g_autofree char *folded = bj_untrusted_fold (block, "| ", width);

  for (const char *line = folded; *line != '\0';)
    {
      gsize length = strcspn (line, "\n");
      g_autofree char *one = g_strndup (line, length);

      g_assert_true (g_str_has_prefix (one, "| "));
      g_assert_cmpuint (bj_untrusted_columns (one), <, width);
      g_assert_cmpint (line[length], ==, '\n');
      line += length + 1;
    }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gsize cap = size > 0 ? data[0] : 0;
  const char *bytes = size > 0 ? (const char *) data + 1 : "";
  gssize length = size > 0 ? (gssize) size - 1 : 0;
  gboolean encoded = FALSE;
  g_autofree char *line = bj_untrusted_escape (bytes, length, cap);
  g_autofree char *block = bj_untrusted_escape_block (bytes, length, cap);
  g_autofree char *tail = bj_untrusted_escape_tail (bytes, length, cap);
  g_autofree char *name = bj_untrusted_encode_name (bytes, length, &encoded);
  g_autofree char *cut = bj_untrusted_cut (line, cap, NULL);

  check_text (line, FALSE, cap);
  check_text (block, TRUE, cap);
  check_text (tail, TRUE, cap);
  check_text (name, FALSE, 0);
  g_assert_cmpstr (cut, ==, line);
  check_fold (block, 24 + (guint) cap);
  return 0;
}
