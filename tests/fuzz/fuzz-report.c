/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes as a report from somewhere: shown without harm, never verified. */

#include "fuzz.h"

#include "bj-fd.h"
#include "bj-json.h"
#include "bj-report.h"
#include "bj-untrusted.h"

#include <string.h>

#define NOBODY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static void
check_lines (const char *text)
{
  guint verdicts = 0;

  g_assert_true (g_utf8_validate (text, -1, NULL));
  for (const char *line = text; *line != '\0';)
    {
      gsize length = strcspn (line, "\n");
      g_autofree char *one = g_strndup (line, length);

      verdicts += g_str_has_prefix (one, "verdict:");
      g_assert_cmpuint (bj_untrusted_columns (one), <, 100);
      for (const char *p = one; *p != '\0'; p++)
        g_assert_true ((guchar) *p >= ' ' && *p != 0x7f);
      g_assert_cmpint (line[length], ==, '\n');
      line += length + 1;
    }
  g_assert_cmpuint (verdicts, ==, 1);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr(JsonObject) report = bj_json_parse ((const char *) data, size, 16, 4096, NULL);
  g_autoptr(GBytes) nothing = g_bytes_new_static ("", 0);
  g_autofree char *text = NULL;
  g_autofree char *canonical = NULL;
  g_autofree char *again = NULL;
  g_autoptr(JsonObject) parsed = NULL;
  g_auto(BjFd) fd = -1;

  if (report == NULL)
    return 0;
  text = bj_report_to_text (report, "fuzz", 100);
  check_lines (text);
  canonical = bj_json_to_canonical (report);
  parsed = bj_json_parse (canonical, strlen (canonical), 16, 8192, NULL);
  g_assert_nonnull (parsed);
  again = bj_json_to_canonical (parsed);
  g_assert_cmpstr (again, ==, canonical);
  fd = bj_fd_seal_bytes ("fuzz", nothing, NULL);
  g_assert_false (bj_report_verify (report, fd, NOBODY, NULL));
  return 0;
}
