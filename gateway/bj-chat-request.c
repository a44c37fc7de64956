/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-chat-request.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

static const char *const chat_members[] = { "messages", "tools", "stream", "think", "format", NULL };
static const char *const option_members[] = { "temperature", "top_p", "top_k", "min_p", "seed", "stop", "num_predict",
                                              "repeat_penalty", "presence_penalty", "frequency_penalty", NULL };

gboolean
bj_model_name_equal (const char *a, const char *b)
{
  g_autofree char *full_a = strchr (a, ':') ? g_strdup (a) : g_strconcat (a, ":latest", NULL);
  g_autofree char *full_b = strchr (b, ':') ? g_strdup (b) : g_strconcat (b, ":latest", NULL);

  return g_str_equal (full_a, full_b);
}

gboolean
bj_model_name_in (const char *const *list, const char *name)
{
  for (guint i = 0; list[i] != NULL; i++)
    if (bj_model_name_equal (list[i], name))
      return TRUE;
  return FALSE;
}

static JsonObject *
parse_bytes (GBytes *body, GError **error)
{
  gsize length = 0;
  const char *text = body ? g_bytes_get_data (body, &length) : NULL;

  return bj_json_parse_object (text ? text : "", (gssize) length, error);
}

static GBytes *
to_bytes (JsonObject *object)
{
  char *text = bj_json_to_string (object);

  return g_bytes_new_take (text, strlen (text));
}

static void
copy_members (JsonObject *from, JsonObject *to, const char *const *names)
{
  for (guint i = 0; names[i] != NULL; i++)
    if (json_object_has_member (from, names[i]))
      json_object_set_member (to, names[i], json_object_dup_member (from, names[i]));
}

static gboolean
check_model (JsonObject *body, const char *model, GError **error)
{
  const char *asked = bj_json_get_string (body, "model");

  if (asked == NULL)
    asked = bj_json_get_string (body, "name");
  if (asked == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "The body has no “model”");
  if (!bj_model_name_equal (asked, model))
    return bj_error_set (error, BJ_ERROR_DENIED, "This session may only use the model “%s”", model);
  return TRUE;
}

static JsonObject *
build_options (JsonObject *asked, guint context)
{
  JsonObject *options = json_object_new ();
  gint64 wanted = 0;

  if (asked != NULL)
    {
      copy_members (asked, options, option_members);
      bj_json_get_int (asked, "num_ctx", &wanted);
    }
  if (wanted > 0 && (context == 0 || wanted < context))
    context = (guint) MIN (wanted, BJ_CONTEXT_MAX);
  if (context > 0)
    json_object_set_int_member (options, "num_ctx", context);
  return options;
}

GBytes *
bj_chat_request_build (GBytes *body, const char *model, guint context, GError **error)
{
  g_autoptr(JsonObject) asked = parse_bytes (body, error);
  g_autoptr(JsonObject) built = NULL;
  JsonObject *options;

  if (asked == NULL || !check_model (asked, model, error))
    return NULL;
  built = json_object_new ();
  json_object_set_string_member (built, "model", model);
  copy_members (asked, built, chat_members);
  options = build_options (bj_json_get_object (asked, "options"), context);
  json_object_set_object_member (built, "options", options);
  return to_bytes (built);
}

GBytes *
bj_show_request_build (GBytes *body, const char *model, GError **error)
{
  g_autoptr(JsonObject) asked = parse_bytes (body, error);
  g_autoptr(JsonObject) built = NULL;

  if (asked == NULL || !check_model (asked, model, error))
    return NULL;
  built = json_object_new ();
  json_object_set_string_member (built, "model", model);
  return to_bytes (built);
}

GBytes *
bj_tags_filter (GBytes *body, const char *const *allow, GError **error)
{
  g_autoptr(JsonObject) answer = parse_bytes (body, error);
  g_autoptr(JsonObject) built = NULL;
  JsonArray *models, *kept;

  if (answer == NULL)
    return NULL;
  models = bj_json_get_array (answer, "models");
  kept = json_array_new ();
  for (guint i = 0; models != NULL && i < json_array_get_length (models); i++)
    {
      JsonObject *model = bj_json_array_get_object (models, i);
      const char *name = model ? bj_json_get_string (model, "name") : NULL;

      if (name != NULL && bj_model_name_in (allow, name))
        json_array_add_object_element (kept, json_object_ref (model));
    }
  built = json_object_new ();
  json_object_set_array_member (built, "models", kept);
  return to_bytes (built);
}

static void
read_capability (BjModelInfo *info, JsonNode *node)
{
  const char *name = json_node_get_value_type (node) == G_TYPE_STRING ? json_node_get_string (node) : "";

  info->tools |= g_str_equal (name, "tools");
  info->vision |= g_str_equal (name, "vision");
  info->thinking |= g_str_equal (name, "thinking");
}

static gboolean
template_takes_tools (const char *template)
{
  return template != NULL && strstr (template, ".Tools") != NULL;
}

static guint
find_context (JsonObject *model_info)
{
  g_autoptr(GList) names = json_object_get_members (model_info);
  gint64 value;

  for (GList *l = names; l != NULL; l = l->next)
    if (g_str_has_suffix (l->data, ".context_length") && bj_json_get_int (model_info, l->data, &value) && value > 0)
      return (guint) MIN (value, BJ_CONTEXT_MAX);
  return 0;
}

gboolean
bj_model_info_parse (GBytes *body, BjModelInfo *info, GError **error)
{
  g_autoptr(JsonObject) answer = parse_bytes (body, error);
  JsonArray *capabilities;
  JsonObject *model_info;

  memset (info, 0, sizeof *info);
  if (answer == NULL)
    {
      g_prefix_error (error, "The answer of /api/show: ");
      return FALSE;
    }
  info->found = TRUE;
  capabilities = bj_json_get_array (answer, "capabilities");
  for (guint i = 0; capabilities != NULL && i < json_array_get_length (capabilities); i++)
    read_capability (info, json_array_get_element (capabilities, i));
  if (capabilities == NULL) /* servers before 0.6 say it only through the template */
    info->tools = template_takes_tools (bj_json_get_string (answer, "template"));
  model_info = bj_json_get_object (answer, "model_info");
  info->context = model_info ? find_context (model_info) : 0;
  return TRUE;
}
