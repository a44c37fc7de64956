/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define RECORD_TEXT 65536 /* bytes of each text in the record of a turn */

static void
plan_item_free (BjPlanItem *item)
{
  g_free (item->text);
  g_free (item->status);
  g_free (item);
}

static gboolean
load_text (const char *folder, const char *name, char **text, GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);

  if (!g_file_get_contents (path, text, NULL, error))
    return FALSE;
  if (g_utf8_validate (*text, -1, NULL))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "%s is not UTF-8", path);
}

static gboolean
load_data (BjAgent *self, const char *data, GError **error)
{
  g_autofree const char **implemented = bj_tools_get_names ();
  g_autofree char *tools = g_build_filename (data, "tools.json", NULL);
  g_autofree char *parameters = g_build_filename (data, "agent.ini", NULL);

  self->toolbox = bj_toolbox_load (tools, implemented, error);
  return self->toolbox != NULL && bj_agent_config_load (&self->config, parameters, error)
         && load_text (data, "system.md", &self->system, error)
         && load_text (data, "textual-tools.md", &self->textual, error)
         && load_text (data, "nudge.md", &self->nudge, error) && bj_task_check_texts (self, error);
}

BjAgent *
bj_agent_new (const char *data, GError **error)
{
  g_autoptr(BjAgent) self = g_new0 (BjAgent, 1);

  bj_error_quark (); /* so that the daemon's errors are understood */
  self->plan = g_ptr_array_new_with_free_func ((GDestroyNotify) plan_item_free);
  return load_data (self, data, error) ? g_steal_pointer (&self) : NULL;
}

void
bj_agent_free (BjAgent *self)
{
  g_clear_pointer (&self->toolbox, bj_toolbox_free);
  g_clear_pointer (&self->client, bj_model_client_free);
  g_clear_pointer (&self->conversation, bj_conversation_free);
  g_clear_pointer (&self->plan, g_ptr_array_unref);
  g_clear_object (&self->verbs);
  bj_task_clear (&self->task);
  g_free (self->system);
  g_free (self->textual);
  g_free (self->nudge);
  g_free (self->question);
  g_free (self->image);
  g_free (self);
}

/* Turns */

static void
set_capped (JsonObject *record, const char *name, const char *text)
{
  g_autofree char *shorter = bj_text_shorten (text, RECORD_TEXT / 2, RECORD_TEXT / 2);

  if (*text != '\0')
    json_object_set_string_member (record, name, shorter);
}

static gboolean
record_turn (BjAgent *self, const BjAnswer *answer, GPtrArray *calls, double seconds, GError **error)
{
  JsonObject *record = json_object_new ();
  JsonArray *list = json_array_new ();

  json_object_set_int_member (record, "turn", self->turn);
  set_capped (record, "content", answer->content->str);
  set_capped (record, "thinking", answer->thinking->str);
  for (guint i = 0; i < calls->len; i++)
    {
      const BjToolCall *call = g_ptr_array_index (calls, i);
      g_autofree char *arguments = call->arguments ? bj_json_to_string (call->arguments) : g_strdup ("");
      JsonObject *entry = json_object_new ();
      g_autofree char *shorter = bj_text_shorten (arguments, 1024, 1024);

      json_object_set_string_member (entry, "name", call->name);
      json_object_set_string_member (entry, "arguments", shorter);
      json_array_add_object_element (list, entry);
    }
  json_object_set_array_member (record, "tool_calls", list);
  json_object_set_boolean_member (record, "truncated", answer->full);
  json_object_set_int_member (record, "prompt_tokens", answer->prompt_tokens);
  json_object_set_int_member (record, "answer_tokens", answer->eval_tokens);
  json_object_set_double_member (record, "duration_s", (double) (gint64) (seconds * 1000) / 1000);
  return bj_verbs_record (self, "turn", record, error);
}

/* The calls as they go back to the model: only what its server takes again. */
static JsonArray *
calls_for_model (GPtrArray *calls)
{
  JsonArray *array = json_array_new ();

  for (guint i = 0; i < calls->len; i++)
    {
      const BjToolCall *call = g_ptr_array_index (calls, i);
      g_autofree char *text = call->arguments ? bj_json_to_string (call->arguments) : g_strdup ("{}");
      JsonObject *function = json_object_new ();
      JsonObject *entry = json_object_new ();
      JsonObject *copy = bj_json_parse_object (text, -1, NULL); /* trimming changes it later */

      json_object_set_string_member (function, "name", call->name);
      json_object_set_object_member (function, "arguments", copy ? copy : json_object_new ());
      json_object_set_object_member (entry, "function", function);
      json_array_add_object_element (array, entry);
    }
  return array;
}

static gboolean
no_call (BjAgent *self, const BjAnswer *answer, GError **error)
{
  g_autofree char *cut = NULL;
  g_autofree char *text = NULL;

  if (self->nudges < self->config.nudges)
    {
      self->nudges++;
      if (answer->full)
        cut = g_strdup_printf ("Your answer was cut off after %" G_GSIZE_FORMAT " bytes. ", answer->content->len);
      text = g_strconcat (cut ? cut : "", self->nudge, NULL);
      bj_conversation_add_user (self->conversation, text, NULL);
      return TRUE;
    }
  text = g_strstrip (bj_text_shorten (answer->content->str, self->message_bytes, 0));
  if (*text == '\0')
    return bj_error_set (error, BJ_ERROR_FAILED, "The model “%s” stopped: it gave %u empty answers in a row",
                         self->task.model, self->nudges + 1);
  if (!bj_verbs_finish (self, text, error))
    return FALSE;
  self->finished = TRUE;
  return TRUE;
}

static gboolean
take_turn (BjAgent *self, GError **error)
{
  gint64 started = g_get_monotonic_time ();
  g_autoptr(BjAnswer) answer = bj_ask_model (self, error);
  g_autoptr(GPtrArray) calls = NULL;
  g_autoptr(JsonArray) kept = NULL;
  g_autofree char *content = NULL;
  gboolean textual;

  if (answer == NULL)
    return FALSE;
  calls = bj_tool_calls_from_array (answer->tool_calls);
  textual = calls->len == 0;
  if (textual)
    {
      g_ptr_array_unref (calls);
      calls = bj_tool_calls_from_text (answer->content->str, bj_toolbox_get_names (self->toolbox));
    }
  self->turn++;
  if (!record_turn (self, answer, calls, (double) (g_get_monotonic_time () - started) / G_USEC_PER_SEC, error))
    return FALSE;
  content = bj_text_shorten (answer->content->str, self->message_bytes / 2, self->message_bytes / 2);
  kept = textual ? NULL : calls_for_model (calls);
  bj_conversation_add_assistant (self->conversation, content, kept);
  if (calls->len == 0)
    return no_call (self, answer, error);
  self->nudges = 0;
  return bj_carry_out (self, calls, textual, error);
}

gboolean
bj_agent_run (BjAgent *self, GDBusConnection *connection, const char *socket_path, GError **error)
{
  g_autoptr(GError) why = NULL;
  gboolean ok;

  self->verbs = bj_dbus_agent_proxy_new_sync (
      connection, G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES | G_DBUS_PROXY_FLAGS_DO_NOT_CONNECT_SIGNALS, NULL,
      BJ_AGENT_PATH, NULL, error);
  if (self->verbs == NULL)
    return FALSE;
  self->client = bj_model_client_new (socket_path, self->config.stall_s);
  ok = bj_task_begin (self, &why);
  while (ok && !self->finished)
    ok = take_turn (self, &why);
  if (ok)
    return TRUE;
  if (!self->ended)
    bj_verbs_fail (self, why);
  g_message ("The work ended: %s", why->message);
  return self->ended;
}
