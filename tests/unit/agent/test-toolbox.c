/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

static BjToolbox *
load (void)
{
  g_autofree const char **names = bj_tools_get_names ();
  g_autoptr(GError) error = NULL;
  BjToolbox *toolbox = bj_toolbox_load (AGENT_DATA "/tools.json", names, &error);

  g_assert_no_error (error);
  return toolbox;
}

/* The names are the design's contract. */
static void
test_shipped (void)
{
  static const char contract[] = "run run_script start poll send kill list_background write_file append_file read_file "
                                 "edit_file list_dir find_files search_text stat_path make_dir move_path copy_path "
                                 "remove_path download install_packages list_processes service system_info read_log screenshot "
                                 "mouse_move mouse_click mouse_drag scroll type_text press_keys wait read_clipboard "
                                 "write_clipboard git_status git_diff git_log plan_add plan_update plan_list note set_check "
                                 "ask finish";
  g_autoptr(BjToolbox) toolbox = load ();
  g_autofree char *names = g_strjoinv (" ", (char **) bj_toolbox_get_names (toolbox));
  g_autofree char *text = bj_toolbox_describe (toolbox);
  g_autoptr(GError) error = NULL;
  g_autoptr(BjAgent) agent = bj_agent_new (AGENT_DATA, &error);

  g_assert_no_error (error);
  g_assert_nonnull (agent);
  g_assert_cmpstr (names, ==, contract);
  for (guint i = 0; bj_toolbox_get_names (toolbox)[i] != NULL; i++)
    {
      g_autofree char *line = g_strdup_printf ("- %s: ", bj_toolbox_get_names (toolbox)[i]);

      g_assert_nonnull (bj_tools_find (bj_toolbox_get_names (toolbox)[i]));
      g_assert_nonnull (strstr (text, line));
    }
}

static void
test_mismatch (void)
{
  static const char *const fewer[] = { "run", NULL };
  g_autofree const char **names = bj_tools_get_names ();
  g_autofree const char **more = g_new0 (const char *, g_strv_length ((char **) names) + 2);
  g_autoptr(GError) error = NULL;
  guint i;

  g_assert_null (bj_toolbox_load (AGENT_DATA "/tools.json", fewer, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);
  for (i = 0; names[i] != NULL; i++)
    more[i] = names[i];
  more[i] = "fly";
  g_assert_null (bj_toolbox_load (AGENT_DATA "/tools.json", more, &error));
  g_assert_nonnull (strstr (error->message, "fly"));
}

static void
test_check (void)
{
  static const struct
  {
    const char *tool;
    const char *arguments;
    const char *expected; /* NULL: error */
    const char *ignored;  /* or part of the error */
  } rows[] = {
    { "run", "{\"command\":\"ls\"}", "{\"command\":\"ls\"}", "" },
    { "run", "{\"command\":\"ls\",\"timeout_s\":\"30\"}", "{\"command\":\"ls\",\"timeout_s\":30}", "" },
    { "run", "{\"command\":\"ls\",\"timeout_s\":30.0,\"why\":1}", "{\"command\":\"ls\",\"timeout_s\":30}", "why" },
    { "run", "{\"command\":\"ls\",\"cwd\":null}", "{\"command\":\"ls\"}", "" },
    { "run", "{\"command\":7}", "{\"command\":\"7\"}", "" },
    { "run", "{\"command\":true}", NULL, "type string" },
    { "run", "{\"command\":{}}", NULL, "type string" },
    { "run", "{\"command\":\"ls\",\"timeout_s\":0}", NULL, "timeout_s" },
    { "run", "{\"command\":\"ls\",\"timeout_s\":2.5}", NULL, "timeout_s" },
    { "run", "{\"command\":\"ls\",\"timeout_s\":\"soon\"}", NULL, "timeout_s" },
    { "run", "{}", NULL, "“command” (string) is missing" },
    { "run_script", "{\"interpreter\":\"cobol\",\"script\":\"\"}", NULL, "interpreter" },
    { "remove_path", "{\"path\":\"x\",\"recursive\":\"True\"}", "{\"path\":\"x\",\"recursive\":true}", "" },
    { "remove_path", "{\"path\":\"x\",\"recursive\":\"maybe\"}", NULL, "recursive" },
    { "plan_list", "{}", "{}", "" },
    { "install_packages", "{\"names\":[\"gcc\",\"make\"]}", "{\"names\":[\"gcc\",\"make\"]}", "" },
    { "install_packages", "{\"names\":\"gcc\"}", "{\"names\":[\"gcc\"]}", "" },
    { "install_packages", "{\"names\":[\"gcc\",7]}", NULL, "type array" },
    { "install_packages", "{\"names\":[[\"gcc\"]]}", NULL, "type array" },
    { "install_packages", "{\"names\":[null]}", NULL, "type array" },
    { "install_packages", "{\"names\":{}}", NULL, "type array" },
    { "service", "{\"name\":\"ssh\",\"action\":\"mask\"}", NULL, "action" },
    { "mouse_click", "{\"x\":-1,\"y\":2}", NULL, "“x”" },
    { "scroll", "{\"x\":1,\"y\":2,\"amount\":\"-3\"}", "{\"x\":1,\"y\":2,\"amount\":-3}", "" },
    { "wait", "{\"seconds\":601}", NULL, "seconds" },
    { "Run", "{}", NULL, "There is no tool" },
    { "", "{}", NULL, "There is no tool" },
  };
  g_autoptr(BjToolbox) toolbox = load ();

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(JsonObject) given = bj_json_parse_object (rows[i].arguments, -1, NULL);
      g_auto(GStrv) ignored = NULL;
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) checked = bj_toolbox_check (toolbox, rows[i].tool, given, &ignored, &error);
      g_autofree char *text = checked ? bj_json_to_string (checked) : NULL;
      g_autofree char *list = ignored ? g_strjoinv (",", ignored) : NULL;

      g_test_message ("row %u", i);
      g_assert_cmpstr (text, ==, rows[i].expected);
      if (rows[i].expected != NULL)
        g_assert_cmpstr (list, ==, rows[i].ignored);
      else
        g_assert_nonnull (strstr (error->message, rows[i].ignored));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/agent/toolbox/shipped", test_shipped);
  g_test_add_func ("/agent/toolbox/mismatch", test_mismatch);
  g_test_add_func ("/agent/toolbox/check", test_check);
  return g_test_run ();
}
