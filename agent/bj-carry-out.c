/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#define MAX_IGNORED_TEXT 300

static JsonObject *
error_result (const char *text)
{
  JsonObject *result = json_object_new ();
  g_autofree char *valid = g_utf8_make_valid (text, -1);

  json_object_set_string_member (result, "error", valid);
  return result;
}

static gboolean
record_named (BjAgent *self, const char *type, const char *tool, const char *text, GError **error)
{
  JsonObject *record = json_object_new ();
  g_autofree char *valid = text ? g_utf8_make_valid (text, -1) : NULL;

  json_object_set_int_member (record, "turn", self->turn);
  json_object_set_string_member (record, "tool", tool);
  if (valid != NULL)
    json_object_set_string_member (record, "error", valid);
  return bj_verbs_record (self, type, record, error);
}

static void
mention_ignored (JsonObject *result, char **ignored)
{
  g_autofree char *names = g_strjoinv (", ", ignored);
  g_autofree char *text = g_strdup_printf ("These are no arguments of this tool: %.*s", MAX_IGNORED_TEXT, names);
  g_autofree char *valid = g_utf8_make_valid (text, -1);

  json_object_set_string_member (result, "ignored", valid);
}

static JsonObject *
call_tool (BjAgent *self, const BjToolCall *call, GError **error)
{
  g_auto(GStrv) ignored = NULL;
  g_autoptr(JsonObject) arguments = NULL;
  JsonObject *result;

  if (call->problem != NULL)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s", call->problem);
      return NULL;
    }
  arguments = bj_toolbox_check (self->toolbox, call->name, call->arguments, &ignored, error);
  if (arguments == NULL)
    return NULL;
  result = bj_tools_find (call->name) (self, arguments, error);
  if (result != NULL && ignored[0] != NULL)
    mention_ignored (result, ignored);
  return result;
}

/* An error of a tool is a result that the model can read, unless the session is over. */
static JsonObject *
result_of_error (BjAgent *self, const BjToolCall *call, const GError *why, GError **error)
{
  if (g_error_matches (why, BJ_ERROR, BJ_ERROR_LIMIT) || g_error_matches (why, BJ_ERROR, BJ_ERROR_CANCELLED))
    self->ended = TRUE;
  else if (g_error_matches (why, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE))
    self->guest_errors++;
  if (self->ended || self->guest_errors > self->config.guest_errors)
    {
      g_propagate_error (error, g_error_copy (why));
      return NULL;
    }
  if (!record_named (self, "tool-error", call->name, why->message, error))
    return NULL;
  return error_result (why->message);
}

static JsonObject *
carry_out_one (BjAgent *self, const BjToolCall *call, guint n, GError **error)
{
  g_autoptr(GError) why = NULL;
  JsonObject *result = NULL;

  if (n >= self->config.calls_per_turn)
    {
      bj_error_set (&why, BJ_ERROR_INVALID, "Only %u tool calls of one answer are carried out; this one was not",
                    self->config.calls_per_turn);
      return error_result (why->message);
    }
  if (self->task.steps > 0 && self->steps >= self->task.steps)
    {
      bj_error_set (error, BJ_ERROR_LIMIT, "All %u tool calls of this session are used up", self->task.steps);
      return NULL;
    }
  self->steps++;
  result = call_tool (self, call, &why);
  if (result == NULL)
    return result_of_error (self, call, why, error);
  self->guest_errors = 0;
  return result;
}

static gboolean
send_question (BjAgent *self, GPtrArray *calls, guint at, gboolean textual, GError **error)
{
  g_autofree char *memory = bj_memory_dup (self, calls, at, textual);

  if (!bj_verbs_ask (self, self->question, memory, error))
    return FALSE;
  self->finished = TRUE;
  return TRUE;
}

static void
add_image (BjAgent *self)
{
  if (self->image == NULL)
    return;
  bj_conversation_add_user (self->conversation, "This is the screenshot.", self->image);
  g_clear_pointer (&self->image, g_free);
}

gboolean
bj_carry_out (BjAgent *self, GPtrArray *calls, gboolean textual, GError **error)
{
  for (guint i = 0; i < calls->len && !self->finished; i++)
    {
      const BjToolCall *call = g_ptr_array_index (calls, i);
      g_autoptr(JsonObject) result = NULL;
      g_autofree char *json = NULL;

      if (textual && !record_named (self, "textual-call", call->name, call->problem, error))
        return FALSE;
      result = carry_out_one (self, call, i, error);
      if (result == NULL)
        return FALSE;
      if (self->question != NULL)
        return send_question (self, calls, i, textual, error);
      json = bj_json_to_string (result);
      bj_conversation_add_result (self->conversation, call->name, json, textual);
    }
  add_image (self);
  return TRUE;
}
