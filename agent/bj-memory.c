/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

/*
 * What a loop that asked a person leaves to the one that goes on with the answer, perhaps weeks later: the daemon keeps it and
 * hands it back with GetTask.
 */

#define ANSWER_LOST "The conversation before this point was lost; the machine and its files are as they were."

static JsonArray *
plan_to_json (BjAgent *self)
{
  JsonArray *plan = json_array_new ();

  for (guint i = 0; i < self->plan->len; i++)
    {
      const BjPlanItem *item = g_ptr_array_index (self->plan, i);
      JsonObject *entry = json_object_new ();

      json_object_set_int_member (entry, "id", item->id);
      json_object_set_string_member (entry, "text", item->text);
      json_object_set_string_member (entry, "status", item->status);
      json_array_add_object_element (plan, entry);
    }
  return plan;
}

static void
recall_plan (BjAgent *self, JsonArray *plan)
{
  for (guint i = 0; plan != NULL && i < json_array_get_length (plan); i++)
    {
      JsonObject *entry = bj_json_array_get_object (plan, i);
      const char *text = entry != NULL ? bj_json_get_string (entry, "text") : NULL;
      const char *status = entry != NULL ? bj_json_get_string (entry, "status") : NULL;
      gint64 id = 0;
      BjPlanItem *item;

      if (text == NULL || status == NULL || !bj_json_get_int (entry, "id", &id))
        continue;
      item = g_new0 (BjPlanItem, 1);
      item->id = (guint) CLAMP (id, 0, G_MAXINT);
      item->text = g_strdup (text);
      item->status = g_strdup (status);
      g_ptr_array_add (self->plan, item);
    }
}

char *
bj_memory_dup (BjAgent *self, GPtrArray *calls, guint at, gboolean textual)
{
  g_autoptr(JsonObject) memory = json_object_new ();
  JsonArray *open_calls = json_array_new ();

  for (guint i = at; i < calls->len; i++)
    {
      const BjToolCall *call = g_ptr_array_index (calls, i);

      json_array_add_string_element (open_calls, call->name);
    }
  json_object_set_object_member (memory, "conversation", bj_conversation_to_json (self->conversation));
  json_object_set_array_member (memory, "open-calls", open_calls);
  json_object_set_array_member (memory, "plan", plan_to_json (self));
  json_object_set_boolean_member (memory, "textual-calls", textual);
  json_object_set_int_member (memory, "turn", self->turn);
  json_object_set_boolean_member (memory, "textual-tools", self->task.textual_tools);
  json_object_set_boolean_member (memory, "think", self->task.think);
  return bj_json_to_string (memory);
}

static void
add_result (BjAgent *self, const char *tool, const char *key, const char *text, gboolean textual)
{
  g_autoptr(JsonObject) result = json_object_new ();
  g_autofree char *json = NULL;

  json_object_set_string_member (result, key, text);
  json = bj_json_to_string (result);
  bj_conversation_add_result (self->conversation, tool, json, textual);
}

/* The first of the calls that were open asked; the others were not carried out. */
static void
add_results (BjAgent *self, JsonObject *memory)
{
  JsonArray *open_calls = bj_json_get_array (memory, "open-calls");
  gboolean textual = bj_json_get_bool (memory, "textual-calls", FALSE);
  guint n = open_calls != NULL ? json_array_get_length (open_calls) : 0;

  for (guint i = 0; i < n; i++)
    {
      const char *tool = json_array_get_string_element (open_calls, i);

      if (i == 0)
        add_result (self, "ask", "answer", self->task.answer, textual);
      else
        add_result (self, tool, "error", "It was not carried out: the question before it ended the turn", textual);
    }
}

static gboolean
remember (BjAgent *self, gsize budget, GError **error)
{
  g_autoptr(JsonObject) memory = bj_json_parse_object (self->task.memory, -1, error);
  JsonObject *kept = memory != NULL ? bj_json_get_object (memory, "conversation") : NULL;
  BjConversation *conversation;
  gint64 turn = 0;

  if (memory == NULL)
    return FALSE;
  if (kept == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "The memory has no conversation");
  conversation = bj_conversation_from_json (kept, budget, error);
  if (conversation == NULL)
    return FALSE;
  bj_conversation_free (self->conversation);
  self->conversation = conversation;
  bj_json_get_int (memory, "turn", &turn);
  self->turn = (guint) CLAMP (turn, 0, G_MAXINT);
  self->task.think = self->task.think && bj_json_get_bool (memory, "think", TRUE);
  recall_plan (self, bj_json_get_array (memory, "plan"));
  add_results (self, memory);
  return TRUE;
}

void
bj_memory_restore (BjAgent *self, gsize budget)
{
  g_autoptr(GError) lost = NULL;

  if (self->task.answer == NULL || (self->task.memory != NULL && remember (self, budget, &lost)))
    return;
  g_message ("Going on without the conversation: %s", lost != NULL ? lost->message : "there is none");
  bj_conversation_add_user (self->conversation, ANSWER_LOST, NULL);
  bj_conversation_add_user (self->conversation, self->task.answer, NULL);
}
