/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

static void
test_fill (void)
{
  static const char *const names[] = { "a", "A{{b}}", "b", "B", "empty", "", "none", NULL, NULL };
  static const struct
  {
    const char *template;
    const char *expected; /* NULL: error */
  } rows[] = {
    { "", "" },
    { "x {{a}} y {{b}}", "x A{{b}} y B" },
    { "{{empty}}{{none}}.", "." },
    { "?a: kept {{b}}\n?empty: gone\n?none: gone\nend\n", "kept B\nend\n" },
    { "Why? a: b", "Why? a: b" },
    { "{{c}}", NULL },
    { "{{a", NULL },
    { "?c: x", NULL },
    { "} {a} }}", "} {a} }}" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autofree char *text = bj_prompt_fill (rows[i].template, names, &error);

      g_assert_cmpstr (text, ==, rows[i].expected);
      g_assert_cmpint (error != NULL, ==, rows[i].expected == NULL);
    }
}

static void
test_paths (void)
{
  static const struct
  {
    const char *path;
    const char *expected;
  } rows[] = {
    { "a", "/work/demo/a" }, { ".", "/work/demo" },    { "", "/work/demo" },
    { "/etc", "/etc" },      { "../x", "/work/demo/../x" }, { "-rf", "/work/demo/-rf" },
  };
  BjAgent agent = { 0 };

  agent.task.folder = (char *) "/work/demo";
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *path = bj_path_resolve (&agent, rows[i].path);

      g_assert_cmpstr (path, ==, rows[i].expected);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/agent/prompt/fill", test_fill);
  g_test_add_func ("/agent/prompt/paths", test_paths);
  return g_test_run ();
}
