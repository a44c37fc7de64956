/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-json.h"

#include <string.h>

/* Tools that run one fixed program: the model's words are arguments of it, never text for a shell. */

static JsonObject *
run_fixed (BjAgent *self, const char *tool, const char *const *argv, GError **error)
{
  g_autofree char *label = g_strjoinv (" ", (char **) argv);
  const BjVerbExec exec = { tool, label, argv, NULL, NULL, self->config.helper_timeout_s };
  g_autoptr(GVariant) result = bj_verbs_exec (self, &exec, error);

  return result ? bj_result_from_exec (self, result, exec.timeout_s) : NULL;
}

/* find takes no "--": a path that looks like an option gets a folder in front. */
static char *
path_for_find (const char *path)
{
  return *path == '/' || *path == '.' ? g_strdup (path) : g_strconcat ("./", path, NULL);
}

JsonObject *
bj_tool_list_dir (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *argv[] = { "ls", "-lA", "--time-style=long-iso", "--quoting-style=escape", "--",
                         bj_json_get_string (arguments, "path"), NULL };

  return run_fixed (self, "list_dir", argv, error);
}

JsonObject *
bj_tool_find_files (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autofree char *path = path_for_find (bj_json_get_string (arguments, "path"));
  const char *pattern = bj_json_get_string (arguments, "pattern");
  const char *argv[] = { "find", path, "-xdev", "-name", ".git", "-prune", "-o",
                         strchr (pattern, '/') ? "-path" : "-name", pattern, "-print", NULL };

  return run_fixed (self, "find_files", argv, error);
}

JsonObject *
bj_tool_search_text (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *argv[] = { "grep", "-rnIE", "--exclude-dir=.git", "-m", "100", "-e",
                         bj_json_get_string (arguments, "pattern"), "--", bj_json_get_string (arguments, "path"), NULL };
  JsonObject *result = run_fixed (self, "search_text", argv, error);

  if (result != NULL && json_object_get_int_member (result, "exit") == 1)
    json_object_set_string_member (result, "message", "Nothing matches");
  return result;
}

JsonObject *
bj_tool_stat_path (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *argv[] = { "stat", "-c", "%N: %F, %s bytes, mode %a, owner %U:%G, modified %y", "--",
                         bj_json_get_string (arguments, "path"), NULL };

  return run_fixed (self, "stat_path", argv, error);
}

JsonObject *
bj_tool_make_dir (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *argv[] = { "mkdir", "-p", "--", bj_json_get_string (arguments, "path"), NULL };

  return run_fixed (self, "make_dir", argv, error);
}

JsonObject *
bj_tool_move_path (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *argv[] = { "mv", "--", bj_json_get_string (arguments, "from"), bj_json_get_string (arguments, "to"), NULL };

  return run_fixed (self, "move_path", argv, error);
}

JsonObject *
bj_tool_copy_path (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *argv[] = { "cp", "-a", "--", bj_json_get_string (arguments, "from"),
                         bj_json_get_string (arguments, "to"), NULL };

  return run_fixed (self, "copy_path", argv, error);
}

JsonObject *
bj_tool_remove_path (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *how = bj_json_get_bool (arguments, "recursive", FALSE) ? "-r" : "-d";
  const char *argv[] = { "rm", how, "--", bj_json_get_string (arguments, "path"), NULL };

  return run_fixed (self, "remove_path", argv, error);
}

JsonObject *
bj_tool_system_info (BjAgent *self, JsonObject *arguments, GError **error)
{
  static const char script[] = "uname -srm; . /etc/os-release; echo \"$PRETTY_NAME\"; echo \"processors: $(nproc)\"; "
                               "free -h; df -h / .; id; date";
  const char *argv[] = { "/bin/sh", "-c", script, NULL };

  return run_fixed (self, "system_info", argv, error);
}
