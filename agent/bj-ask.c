/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

static JsonObject *
make_request (BjAgent *self)
{
  JsonObject *request = json_object_new ();
  JsonObject *options = json_object_new ();

  json_object_set_string_member (request, "model", self->task.model);
  json_object_set_boolean_member (request, "stream", TRUE);
  json_object_set_array_member (request, "messages", bj_conversation_dup_messages (self->conversation));
  if (!self->task.textual_tools)
    json_object_set_array_member (request, "tools", json_array_ref (bj_toolbox_get_json (self->toolbox)));
  if (self->task.think)
    json_object_set_boolean_member (request, "think", TRUE);
  json_object_set_int_member (options, "num_ctx", self->context);
  json_object_set_object_member (request, "options", options);
  return request;
}

static char *
plan_text (BjAgent *self)
{
  GString *text;

  if (self->plan->len == 0)
    return NULL;
  text = g_string_new (NULL);
  for (guint i = 0; i < self->plan->len; i++)
    {
      const BjPlanItem *item = g_ptr_array_index (self->plan, i);

      g_string_append_printf (text, "%u [%s] %.300s\n", item->id, item->status, item->text);
    }
  return g_string_free (text, FALSE);
}

static gboolean
trim (BjAgent *self, GError **error)
{
  g_autofree char *plan = plan_text (self);
  BjTrimFacts facts;
  JsonObject *record;

  if (!bj_conversation_trim (self->conversation, plan, &facts))
    return TRUE;
  record = json_object_new ();
  json_object_set_int_member (record, "turn", self->turn);
  json_object_set_int_member (record, "images", facts.images);
  json_object_set_int_member (record, "shortened", facts.shortened);
  json_object_set_int_member (record, "dropped", facts.dropped);
  json_object_set_int_member (record, "bytes_before", (gint64) facts.before);
  json_object_set_int_member (record, "bytes_after", (gint64) facts.after);
  return bj_verbs_record (self, "trim", record, error);
}

/* What the model turned out not to have is not asked for again. Returns: whether that was it */
static gboolean
adapt (BjAgent *self, const GError *why)
{
  if (why->code != BJ_ERROR_INVALID)
    return FALSE;
  if (!self->task.textual_tools && strstr (why->message, "does not support tools") != NULL)
    return bj_task_make_textual (self, NULL);
  if (self->task.think && strstr (why->message, "does not support thinking") != NULL)
    {
      self->task.think = FALSE;
      return TRUE;
    }
  return FALSE;
}

static gboolean
record_retry (BjAgent *self, guint attempt, const GError *why, GError **error)
{
  JsonObject *record = json_object_new ();
  g_autofree char *text = g_utf8_make_valid (why->message, -1);

  json_object_set_int_member (record, "turn", self->turn);
  json_object_set_int_member (record, "attempt", attempt);
  json_object_set_string_member (record, "error", text);
  return bj_verbs_record (self, "retry", record, error);
}

static BjAnswer *
ask_once (BjAgent *self, GError **error)
{
  g_autoptr(BjAnswer) answer = bj_answer_new (self->config.answer_bytes);
  g_autoptr(JsonObject) request = make_request (self);

  if (!bj_model_client_chat (self->client, request, answer, self->config.answer_s, error))
    return NULL;
  return g_steal_pointer (&answer);
}

BjAnswer *
bj_ask_model (BjAgent *self, GError **error)
{
  guint attempt = 0;

  if (!trim (self, error))
    return NULL;
  while (TRUE)
    {
      g_autoptr(GError) why = NULL;
      BjAnswer *answer = ask_once (self, &why);

      if (answer != NULL)
        return answer;
      if (!adapt (self, why))
        attempt++;
      if (!record_retry (self, attempt, why, error))
        return NULL;
      if (why->code != BJ_ERROR_MODEL_UNREACHABLE && attempt > 0)
        attempt = self->config.retries + 1; /* it will not get better */
      if (attempt > self->config.retries)
        {
          bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The model “%s” gave no answer: %s", self->task.model,
                        why->message);
          return NULL;
        }
      if (attempt > 0)
        g_usleep ((gulong) self->config.backoff_ms * 1000 << (attempt - 1));
    }
}
