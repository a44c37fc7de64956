/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-answer.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define MAX_CALLS 256

BjAnswer *
bj_answer_new (gsize cap)
{
  BjAnswer *self = g_new0 (BjAnswer, 1);

  self->content = g_string_new (NULL);
  self->thinking = g_string_new (NULL);
  self->tool_calls = json_array_new ();
  self->cap = cap;
  return self;
}

void
bj_answer_free (BjAnswer *self)
{
  g_string_free (self->content, TRUE);
  g_string_free (self->thinking, TRUE);
  json_array_unref (self->tool_calls);
  g_free (self->done_reason);
  g_free (self);
}

static void
append_capped (BjAnswer *self, GString *text, const char *more)
{
  gsize room = self->cap - text->len;
  gsize length = more ? strlen (more) : 0;

  if (length > room)
    {
      self->full = TRUE;
      length = room;
      while (length > 0 && (more[length] & 0xc0) == 0x80)
        length--;
    }
  g_string_append_len (text, more, (gssize) length);
}

static void
take_message (BjAnswer *self, JsonObject *message)
{
  JsonArray *calls = bj_json_get_array (message, "tool_calls");

  append_capped (self, self->content, bj_json_get_string (message, "content"));
  append_capped (self, self->thinking, bj_json_get_string (message, "thinking"));
  for (guint i = 0; calls != NULL && i < json_array_get_length (calls); i++)
    {
      if (json_array_get_length (self->tool_calls) >= MAX_CALLS)
        {
          self->full = TRUE;
          return;
        }
      json_array_add_element (self->tool_calls, json_array_dup_element (calls, i));
    }
}

static gboolean
take_error (JsonObject *object, GError **error)
{
  const char *text = bj_json_get_string (object, "error");
  g_autofree char *start = g_utf8_substring (text ? text : "unknown", 0, MIN (g_utf8_strlen (text ? text : "unknown", -1), 500));

  return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The model server stopped with an error: %s", start);
}

gboolean
bj_answer_push_line (BjAnswer *self, const char *line, gsize length, GError **error)
{
  g_autofree char *text = g_utf8_make_valid (line, (gssize) length);
  g_autoptr(GError) why = NULL;
  g_autoptr(JsonObject) object = bj_json_parse_object (text, -1, &why);
  JsonObject *message;

  if (object == NULL)
    return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The model server sent a line that cannot be read: %s",
                         why->message);
  if (json_object_has_member (object, "error"))
    return take_error (object, error);
  message = bj_json_get_object (object, "message");
  if (message != NULL)
    take_message (self, message);
  if (!bj_json_get_bool (object, "done", FALSE))
    return TRUE;
  self->done = TRUE;
  g_free (self->done_reason);
  self->done_reason = g_strdup (bj_json_get_string (object, "done_reason"));
  bj_json_get_int (object, "prompt_eval_count", &self->prompt_tokens);
  bj_json_get_int (object, "eval_count", &self->eval_tokens);
  return TRUE;
}
