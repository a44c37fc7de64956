/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes as a project's belljar.ini, as an answer of the helper, as a file name and as a check command. */

#include "fuzz.h"

#include "bj-project-answer.h"
#include "bj-project-protect.h"
#include "bj-project-store.h"
#include "bj-tree-match.h"
#include "bj-tree-name.h"

#include <string.h>

static void
try_settings (GBytes *bytes)
{
  g_auto(BjProjectSettings) settings = { 0 };
  g_autoptr(GError) error = NULL;

  if (!bj_project_settings_parse (bytes, &settings, &error))
    {
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
      return;
    }
  g_assert_true (g_utf8_validate (settings.check, -1, NULL));
  for (guint i = 0; settings.protect[i] != NULL; i++)
    g_assert_cmpint (*settings.protect[i], !=, '/');
  g_assert_true (settings.memory_mib == 0 || settings.memory_mib >= 64);
}

static void
try_answer (GBytes *bytes)
{
  g_auto(BjProjectAnswer) answer = { 0 };
  g_autoptr(GBytes) blob = NULL;

  if (bj_project_answer_parse (bytes, &answer, NULL))
    {
      g_assert_true (answer.tree == NULL || bj_project_id_is_valid (answer.tree));
      for (guint i = 0; i < answer.warnings->len; i++)
        g_assert_null (strpbrk (g_ptr_array_index (answer.warnings, i), "\n\r\x1b"));
    }
  if (bj_project_answer_parse_blob (bytes, 1000, &blob, NULL) && blob != NULL)
    g_assert_cmpuint (g_bytes_get_size (blob), <=, 1000);
}

static void
try_name (const char *name)
{
  const char *patterns[] = { name, NULL };
  g_autoptr(BjTreeMatch) match = bj_tree_match_new (patterns);
  gboolean encoded;
  g_autofree char *text = bj_tree_name_encode (name, &encoded);
  g_autofree char *shown = bj_tree_name_show (name);

  bj_tree_match_path (match, "a/b/test_c.py", FALSE);
  bj_tree_name_is_refused (name);
  g_assert_true (g_utf8_validate (text, -1, NULL) && strpbrk (text, "\n\r\x1b") == NULL);
  g_assert_true (g_utf8_validate (shown, -1, NULL) && strpbrk (shown, "\n\r\x1b\"") == NULL);
  g_assert_cmpuint (strlen (shown), <, 220);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr(GBytes) bytes = g_bytes_new (data, size);
  g_autofree char *text = size > 0 ? g_strndup ((const char *) data, size) : g_strdup ("");
  g_auto(GStrv) protect = bj_project_default_protect (text);

  g_assert_cmpstr (protect[0], ==, "belljar.ini");
  for (guint i = 0; protect[i] != NULL; i++)
    g_assert_cmpint (*protect[i], !=, '/');
  try_settings (bytes);
  try_answer (bytes);
  try_name (text);
  return 0;
}
