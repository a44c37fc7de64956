/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

static const struct
{
  const char *name;
  BjToolFunc func;
} tools[] = {
  { "run", bj_tool_run },
  { "run_script", bj_tool_run_script },
  { "start", bj_tool_start },
  { "poll", bj_tool_poll },
  { "send", bj_tool_send },
  { "kill", bj_tool_kill },
  { "list_background", bj_tool_list_background },
  { "write_file", bj_tool_write_file },
  { "append_file", bj_tool_append_file },
  { "read_file", bj_tool_read_file },
  { "edit_file", bj_tool_edit_file },
  { "list_dir", bj_tool_list_dir },
  { "find_files", bj_tool_find_files },
  { "search_text", bj_tool_search_text },
  { "stat_path", bj_tool_stat_path },
  { "make_dir", bj_tool_make_dir },
  { "move_path", bj_tool_move_path },
  { "copy_path", bj_tool_copy_path },
  { "remove_path", bj_tool_remove_path },
  { "download", bj_tool_download },
  { "install_packages", bj_tool_install_packages },
  { "list_processes", bj_tool_list_processes },
  { "service", bj_tool_service },
  { "system_info", bj_tool_system_info },
  { "read_log", bj_tool_read_log },
  { "screenshot", bj_tool_screenshot },
  { "mouse_move", bj_tool_mouse_move },
  { "mouse_click", bj_tool_mouse_click },
  { "mouse_drag", bj_tool_mouse_drag },
  { "scroll", bj_tool_scroll },
  { "type_text", bj_tool_type_text },
  { "press_keys", bj_tool_press_keys },
  { "wait", bj_tool_wait },
  { "read_clipboard", bj_tool_read_clipboard },
  { "write_clipboard", bj_tool_write_clipboard },
  { "git_status", bj_tool_git_status },
  { "git_diff", bj_tool_git_diff },
  { "git_log", bj_tool_git_log },
  { "plan_add", bj_tool_plan_add },
  { "plan_update", bj_tool_plan_update },
  { "plan_list", bj_tool_plan_list },
  { "note", bj_tool_note },
  { "set_check", bj_tool_set_check },
  { "ask", bj_tool_ask },
  { "finish", bj_tool_finish },
};

const char **
bj_tools_get_names (void)
{
  const char **names = g_new0 (const char *, G_N_ELEMENTS (tools) + 1);

  for (guint i = 0; i < G_N_ELEMENTS (tools); i++)
    names[i] = tools[i].name;
  return names;
}

BjToolFunc
bj_tools_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (tools); i++)
    if (g_str_equal (tools[i].name, name))
      return tools[i].func;
  return NULL;
}
