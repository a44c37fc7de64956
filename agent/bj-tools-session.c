/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define MAX_SUMMARY 16000
#define MAX_QUESTION 16000

JsonObject *
bj_tool_screenshot (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(GBytes) png = NULL;
  JsonObject *result;

  if (!self->task.vision)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The model “%s” cannot see pictures; use the text tools", self->task.model);
      return NULL;
    }
  png = bj_verbs_screenshot (self, error);
  if (png == NULL)
    return NULL;
  g_free (self->image);
  self->image = g_base64_encode (g_bytes_get_data (png, NULL), g_bytes_get_size (png));
  result = bj_result_ok ();
  json_object_set_string_member (result, "message", "The picture follows.");
  return result;
}

/* The plan: the daemon keeps it; a copy stays here for when the conversation has to be cut. */

static void
remember (BjAgent *self, guint id, const char *text)
{
  BjPlanItem *item = g_new0 (BjPlanItem, 1);

  item->id = id;
  item->text = g_strdup (text);
  item->status = g_strdup ("todo");
  g_ptr_array_add (self->plan, item);
}

JsonObject *
bj_tool_plan_add (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *text = bj_json_get_string (arguments, "text");
  JsonObject *result;
  guint id = 0;

  if (!bj_verbs_plan_add (self, text, &id, error))
    return NULL;
  remember (self, id, text);
  result = bj_result_ok ();
  json_object_set_int_member (result, "id", id);
  return result;
}

JsonObject *
bj_tool_plan_update (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *status = bj_json_get_string (arguments, "status");
  gint64 id = 0;

  bj_json_get_int (arguments, "id", &id);
  if (!bj_verbs_plan_update (self, (guint) CLAMP (id, 0, G_MAXUINT32), status, error))
    return NULL;
  for (guint i = 0; i < self->plan->len; i++)
    {
      BjPlanItem *item = g_ptr_array_index (self->plan, i);

      if (item->id != id)
        continue;
      g_free (item->status);
      item->status = g_strdup (status);
    }
  return bj_result_ok ();
}

static JsonObject *
plan_entry (GVariant *entry)
{
  JsonObject *object = json_object_new ();
  GVariantDict dict;
  const char *text = "";
  const char *status = "";
  guint32 id = 0;

  g_variant_dict_init (&dict, entry);
  g_variant_dict_lookup (&dict, "id", "u", &id);
  g_variant_dict_lookup (&dict, "text", "&s", &text);
  g_variant_dict_lookup (&dict, "status", "&s", &status);
  json_object_set_int_member (object, "id", id);
  json_object_set_string_member (object, "text", text);
  json_object_set_string_member (object, "status", status);
  g_variant_dict_clear (&dict);
  return object;
}

JsonObject *
bj_tool_plan_list (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(GVariant) plan = bj_verbs_plan_list (self, error);
  JsonObject *result;
  JsonArray *items;

  if (plan == NULL)
    return NULL;
  result = json_object_new ();
  items = json_array_new ();
  for (gsize i = 0; i < g_variant_n_children (plan); i++)
    {
      g_autoptr(GVariant) entry = g_variant_get_child_value (plan, i);

      json_array_add_object_element (items, plan_entry (entry));
    }
  json_object_set_array_member (result, "plan", items);
  return result;
}

JsonObject *
bj_tool_note (BjAgent *self, JsonObject *arguments, GError **error)
{
  return bj_verbs_note (self, bj_json_get_string (arguments, "text"), error) ? bj_result_ok () : NULL;
}

JsonObject *
bj_tool_set_check (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *setup = bj_json_get_string (arguments, "setup");

  if (!bj_verbs_set_check (self, bj_json_get_string (arguments, "command"), setup ? setup : "", error))
    return NULL;
  return bj_result_ok ();
}

/* The turn ends with it: what becomes of the question is seen to when all that came before has its result. */
JsonObject *
bj_tool_ask (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *question = bj_json_get_string (arguments, "question");

  if (strspn (question, " \t\r\n") == strlen (question))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The question is empty");
      return NULL;
    }
  self->question = bj_text_shorten (question, MAX_QUESTION, 0);
  return bj_result_ok ();
}

JsonObject *
bj_tool_finish (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autofree char *summary = bj_text_shorten (bj_json_get_string (arguments, "summary"), MAX_SUMMARY, 0);

  if (!bj_verbs_finish (self, summary, error))
    return NULL;
  self->finished = TRUE;
  return bj_result_ok ();
}
