/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define MAX_STDIN (1024 * 1024)

/* The tools' arguments have been checked against their definitions: what is required is there. */

static guint
get_timeout (BjAgent *self, JsonObject *arguments)
{
  gint64 value = self->config.run_timeout_s;

  bj_json_get_int (arguments, "timeout_s", &value);
  return (guint) CLAMP (value, 1, 3600);
}

static JsonObject *
run (BjAgent *self, const BjVerbExec *exec, GError **error)
{
  g_autoptr(GVariant) result = NULL;

  if (exec->input != NULL && strlen (exec->input) > MAX_STDIN)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "More than %d bytes cannot be given as input; write a file first", MAX_STDIN);
      return NULL;
    }
  result = bj_verbs_exec (self, exec, error);
  return result ? bj_result_from_exec (self, result, exec->timeout_s) : NULL;
}

JsonObject *
bj_tool_run (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *command = bj_json_get_string (arguments, "command");
  const char *argv[] = { "/bin/bash", "-c", command, NULL };
  const BjVerbExec exec = { "run", command, argv, bj_json_get_string (arguments, "cwd"),
                            bj_json_get_string (arguments, "stdin"), get_timeout (self, arguments) };

  return run (self, &exec, error);
}

static const struct
{
  const char *interpreter;
  const char *argv[3];
} interpreters[] = {
  { "bash", { "/bin/bash", "-s", NULL } }, { "sh", { "/bin/sh", "-s", NULL } },   { "python3", { "python3", "-", NULL } },
  { "perl", { "perl", "-", NULL } },       { "node", { "node", "-", NULL } },     { "ruby", { "ruby", "-", NULL } },
};

JsonObject *
bj_tool_run_script (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *interpreter = bj_json_get_string (arguments, "interpreter");
  const char *script = bj_json_get_string (arguments, "script");
  g_autofree char *label = g_strdup_printf ("%s: %s", interpreter, script);
  BjVerbExec exec = { "run_script", label, NULL, bj_json_get_string (arguments, "cwd"), script,
                      get_timeout (self, arguments) };

  for (guint i = 0; i < G_N_ELEMENTS (interpreters); i++)
    if (g_str_equal (interpreters[i].interpreter, interpreter))
      exec.argv = interpreters[i].argv;
  if (exec.argv != NULL)
    return run (self, &exec, error);
  bj_error_set (error, BJ_ERROR_INVALID, "“%.40s” is no interpreter that run_script knows; use run", interpreter);
  return NULL;
}

JsonObject *
bj_tool_start (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *command = bj_json_get_string (arguments, "command");
  const char *argv[] = { "/bin/bash", "-c", command, NULL };
  JsonObject *result;
  guint id = 0;

  if (!bj_verbs_start (self, command, argv, bj_json_get_string (arguments, "cwd"), &id, error))
    return NULL;
  result = json_object_new ();
  json_object_set_int_member (result, "id", id);
  return result;
}

static gboolean
get_id (JsonObject *arguments, guint *id, GError **error)
{
  gint64 value = -1;

  bj_json_get_int (arguments, "id", &value);
  if (value < 0 || value > G_MAXUINT32)
    return bj_error_set (error, BJ_ERROR_INVALID, "The id must be a number that start or plan_add gave");
  *id = (guint) value;
  return TRUE;
}

static void
set_state (JsonObject *result, GVariantDict *dict)
{
  gboolean running = FALSE;
  gint32 exit = -1;
  guint32 signal = 0;

  g_variant_dict_lookup (dict, "running", "b", &running);
  g_variant_dict_lookup (dict, "exit", "i", &exit);
  g_variant_dict_lookup (dict, "signal", "u", &signal);
  json_object_set_boolean_member (result, "running", running);
  if (!running)
    json_object_set_int_member (result, "exit", exit);
  if (signal != 0)
    json_object_set_int_member (result, "signal", signal);
}

JsonObject *
bj_tool_poll (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(GVariant) polled = NULL;
  g_autoptr(GVariant) output = NULL;
  JsonObject *result;
  GVariantDict dict;
  const char *bytes;
  gsize length = 0;
  guint64 dropped = 0;
  gint64 wait = 0;
  guint id = 0;

  bj_json_get_int (arguments, "wait_s", &wait);
  if (!get_id (arguments, &id, error))
    return NULL;
  polled = bj_verbs_poll (self, id, (guint) CLAMP (wait, 0, 60), error);
  if (polled == NULL)
    return NULL;
  result = json_object_new ();
  g_variant_dict_init (&dict, polled);
  set_state (result, &dict);
  output = g_variant_dict_lookup_value (&dict, "output", G_VARIANT_TYPE_BYTESTRING);
  bytes = output ? g_variant_get_fixed_array (output, &length, 1) : NULL;
  bj_result_set_bytes (self, result, "output", bytes, length);
  if (g_variant_dict_lookup (&dict, "dropped", "t", &dropped) && dropped > 0)
    json_object_set_int_member (result, "dropped_bytes", (gint64) dropped);
  g_variant_dict_clear (&dict);
  return result;
}

JsonObject *
bj_tool_send (BjAgent *self, JsonObject *arguments, GError **error)
{
  guint id = 0;

  if (!get_id (arguments, &id, error) || !bj_verbs_send (self, id, bj_json_get_string (arguments, "text"), error))
    return NULL;
  return bj_result_ok ();
}

JsonObject *
bj_tool_kill (BjAgent *self, JsonObject *arguments, GError **error)
{
  guint id = 0;

  if (!get_id (arguments, &id, error) || !bj_verbs_kill (self, id, error))
    return NULL;
  return bj_result_ok ();
}

static JsonObject *
background_entry (BjAgent *self, GVariant *entry)
{
  JsonObject *object = json_object_new ();
  GVariantDict dict;
  guint32 id = 0;
  const char *label = "";

  g_variant_dict_init (&dict, entry);
  g_variant_dict_lookup (&dict, "id", "u", &id);
  g_variant_dict_lookup (&dict, "label", "&s", &label);
  json_object_set_int_member (object, "id", id);
  bj_result_set_bytes (self, object, "command", label, strlen (label));
  set_state (object, &dict);
  g_variant_dict_clear (&dict);
  return object;
}

JsonObject *
bj_tool_list_background (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(GVariant) list = bj_verbs_list_background (self, error);
  JsonObject *result;
  JsonArray *commands;

  if (list == NULL)
    return NULL;
  result = json_object_new ();
  commands = json_array_new ();
  for (gsize i = 0; i < g_variant_n_children (list); i++)
    {
      g_autoptr(GVariant) entry = g_variant_get_child_value (list, i);

      json_array_add_object_element (commands, background_entry (self, entry));
    }
  json_object_set_array_member (result, "commands", commands);
  return result;
}
