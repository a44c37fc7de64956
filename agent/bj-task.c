/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define BYTES_PER_TOKEN_X2 7 /* about 3.5 bytes a token */
#define LEAST_BUDGET 4000

void
bj_task_clear (BjTask *task)
{
  g_free (task->task);
  g_free (task->project);
  g_free (task->folder);
  g_free (task->os);
  g_free (task->model);
  g_free (task->check);
  g_free (task->network);
  g_free (task->memory);
  g_free (task->answer);
}

static void
read_string (GVariantDict *dict, const char *key, const char *fallback, char **out)
{
  if (!g_variant_dict_lookup (dict, key, "s", out))
    *out = g_strdup (fallback);
}

static gboolean
read_task (BjTask *task, GVariant *answer, GError **error)
{
  GVariantDict dict;

  g_variant_dict_init (&dict, answer);
  read_string (&dict, "task", "", &task->task);
  read_string (&dict, "project", "", &task->project);
  read_string (&dict, "os", "Linux", &task->os);
  read_string (&dict, "model", "", &task->model);
  read_string (&dict, "check", "", &task->check);
  read_string (&dict, "network", "internet", &task->network);
  g_variant_dict_lookup (&dict, "folder", "^ay", &task->folder);
  g_variant_dict_lookup (&dict, "memory", "^ay", &task->memory);
  g_variant_dict_lookup (&dict, "answer", "s", &task->answer);
  g_variant_dict_lookup (&dict, "steps", "u", &task->steps);
  g_variant_dict_lookup (&dict, "seconds", "u", &task->seconds);
  g_variant_dict_lookup (&dict, "context", "u", &task->context);
  g_variant_dict_lookup (&dict, "vision", "b", &task->vision);
  g_variant_dict_lookup (&dict, "think", "b", &task->think);
  g_variant_dict_lookup (&dict, "textual-tools", "b", &task->textual_tools);
  g_variant_dict_clear (&dict);
  if (task->folder == NULL || !g_path_is_absolute (task->folder) || *task->model == '\0' || *task->task == '\0')
    return bj_error_set (error, BJ_ERROR_INVALID, "The daemon's task has no text, no model or no folder");
  return TRUE;
}

/* The system text; with a tool list when the model has no tool calls of its own. */
static char *
make_system (BjAgent *self, GError **error)
{
  const BjTask *task = &self->task;
  g_autofree char *tools = task->textual_tools ? bj_toolbox_describe (self->toolbox) : NULL;
  const char *const tool_names[] = { "tools", tools, NULL };
  g_autofree char *textual = bj_prompt_fill (self->textual, tool_names, error);
  g_autofree char *steps = task->steps ? g_strdup_printf ("%u", task->steps) : g_strdup ("any number of");
  g_autofree char *minutes = g_strdup_printf ("%u", MAX (task->seconds / 60, 1));
  g_autofree char *folder = g_utf8_make_valid (task->folder, -1);
  const char *const names[] = { "os", task->os, "folder", folder, "project", task->project,
                                "network-none", g_str_equal (task->network, "none") ? "none" : NULL,
                                "check", task->check, "no-check", *task->check ? NULL : "none",
                                "steps", steps, "minutes", minutes,
                                "textual-tools", task->textual_tools ? textual : NULL, NULL };

  return textual ? bj_prompt_fill (self->system, names, error) : NULL;
}

gboolean
bj_task_check_texts (BjAgent *self, GError **error)
{
  static const BjTask nothing = { .task = "", .project = "", .folder = "", .os = "", .model = "", .check = "", .network = "",
                                  .textual_tools = TRUE };
  BjTask real = self->task;
  g_autofree char *text = NULL;

  self->task = nothing;
  text = make_system (self, error);
  self->task = real;
  return text != NULL;
}

static gsize
make_budget (BjAgent *self)
{
  guint reply = MIN (self->config.reply_tokens, self->context / 4);
  gsize all = (gsize) (self->context - reply) * BYTES_PER_TOKEN_X2 / 2;
  g_autoptr(JsonNode) tools = json_node_init_array (json_node_alloc (), bj_toolbox_get_json (self->toolbox));
  g_autofree char *text = bj_json_node_to_string (tools);
  gsize used = self->task.textual_tools ? 0 : strlen (text); /* textual: they are in the system text */

  return all > used + LEAST_BUDGET ? all - used : LEAST_BUDGET;
}

gboolean
bj_task_make_textual (BjAgent *self, GError **error)
{
  g_autofree char *system = NULL;

  self->task.textual_tools = TRUE;
  system = make_system (self, error);
  if (system == NULL)
    return FALSE;
  bj_conversation_set_system (self->conversation, system);
  bj_conversation_set_budget (self->conversation, make_budget (self));
  return TRUE;
}

gboolean
bj_task_begin (BjAgent *self, GError **error)
{
  g_autoptr(GVariant) answer = bj_verbs_get_task (self, error);
  g_autofree char *system = NULL;
  g_autofree char *task = NULL;
  gsize budget;

  if (answer == NULL || !read_task (&self->task, answer, error))
    return FALSE;
  self->context = self->task.context ? self->task.context : self->config.default_tokens;
  budget = make_budget (self);
  self->result_bytes = MIN (self->config.result_bytes, budget / 6);
  self->message_bytes = MIN (self->config.message_bytes, budget / 6);
  system = make_system (self, error);
  if (system == NULL)
    return FALSE;
  task = bj_text_shorten (self->task.task, budget / 4, budget / 4);
  self->conversation = bj_conversation_new (system, task, budget);
  bj_memory_restore (self, budget);
  return TRUE;
}
