/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-conversation.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define MESSAGE_OVERHEAD 40 /* role and punctuation */
#define IMAGE_BYTES 5000    /* what a picture costs, whatever its size in base64 */
#define KEEP_HEAD 300       /* of a result that is shortened */
#define KEEP_TAIL 200
#define LAST_HEAD 1500      /* of a result of the newest turn, when even that is too much */
#define LAST_TAIL 1000
#define FIRST_TURN 2        /* system and task stand before it */

typedef struct
{
  JsonObject *json;
  gsize size;
  guint turn;         /* 0: system, task, notice */
  gboolean is_result; /* a tool's output */
  gboolean has_image;
} BjMessage;

struct _BjConversation
{
  GPtrArray *messages; /* (element-type BjMessage) */
  gsize budget;
  gsize size;
  guint turn;
  guint dropped; /* turns, all in all */
  gboolean has_notice;
};

static void
message_free (BjMessage *message)
{
  json_object_unref (message->json);
  g_free (message);
}

char *
bj_text_shorten (const char *text, gsize head, gsize tail)
{
  gsize length = strlen (text);
  gsize from;

  if (length <= head + tail + 60)
    return g_strdup (text);
  from = length - tail;
  while (head > 0 && (text[head] & 0xc0) == 0x80)
    head--;
  while (from < length && (text[from] & 0xc0) == 0x80)
    from++;
  return g_strdup_printf ("%.*s\n[… %" G_GSIZE_FORMAT " bytes left out …]\n%s", (int) head, text, from - head,
                          text + from);
}

static gsize
measure (BjMessage *message)
{
  JsonArray *calls = bj_json_get_array (message->json, "tool_calls");
  const char *content = bj_json_get_string (message->json, "content");
  gsize size = MESSAGE_OVERHEAD + (content ? strlen (content) : 0) + (message->has_image ? IMAGE_BYTES : 0);

  for (guint i = 0; calls != NULL && i < json_array_get_length (calls); i++)
    {
      g_autofree char *text = bj_json_node_to_string (json_array_get_element (calls, i));

      size += strlen (text);
    }
  return size;
}

static void
remeasure (BjConversation *self, BjMessage *message)
{
  self->size -= message->size;
  message->size = measure (message);
  self->size += message->size;
}

static BjMessage *
add (BjConversation *self, const char *role, const char *content)
{
  BjMessage *message = g_new0 (BjMessage, 1);

  message->json = json_object_new ();
  message->turn = self->turn;
  json_object_set_string_member (message->json, "role", role);
  json_object_set_string_member (message->json, "content", content);
  g_ptr_array_add (self->messages, message);
  remeasure (self, message);
  return message;
}

BjConversation *
bj_conversation_new (const char *system, const char *task, gsize budget)
{
  BjConversation *self = g_new0 (BjConversation, 1);

  self->messages = g_ptr_array_new_with_free_func ((GDestroyNotify) message_free);
  self->budget = budget;
  add (self, "system", system);
  add (self, "user", task);
  return self;
}

void
bj_conversation_free (BjConversation *self)
{
  g_ptr_array_unref (self->messages);
  g_free (self);
}

void
bj_conversation_set_system (BjConversation *self, const char *system)
{
  BjMessage *message = g_ptr_array_index (self->messages, 0);

  json_object_set_string_member (message->json, "content", system);
  remeasure (self, message);
}

void
bj_conversation_set_budget (BjConversation *self, gsize budget)
{
  self->budget = budget;
}

void
bj_conversation_add_assistant (BjConversation *self, const char *content, JsonArray *tool_calls)
{
  BjMessage *message;

  self->turn++;
  message = add (self, "assistant", content);
  if (tool_calls == NULL || json_array_get_length (tool_calls) == 0)
    return;
  json_object_set_array_member (message->json, "tool_calls", json_array_ref (tool_calls));
  remeasure (self, message);
}

void
bj_conversation_add_result (BjConversation *self, const char *tool, const char *json, gboolean textual)
{
  g_autofree char *text = textual ? g_strdup_printf ("Result of %s: %s", tool, json) : NULL;
  BjMessage *message = add (self, textual ? "user" : "tool", textual ? text : json);

  message->is_result = TRUE;
  if (!textual)
    json_object_set_string_member (message->json, "tool_name", tool);
}

void
bj_conversation_add_user (BjConversation *self, const char *text, const char *image)
{
  BjMessage *message = add (self, "user", text);
  JsonArray *images;

  if (image == NULL)
    return;
  images = json_array_new ();
  json_array_add_string_element (images, image);
  json_object_set_array_member (message->json, "images", images);
  message->has_image = TRUE;
  remeasure (self, message);
}

/* Trimming */

static BjMessage *
get (BjConversation *self, guint i)
{
  return g_ptr_array_index (self->messages, i);
}

static void
drop_image (BjConversation *self, BjMessage *message)
{
  json_object_remove_member (message->json, "images");
  json_object_set_string_member (message->json, "content", "[An older screenshot was here; it was left out.]");
  message->has_image = FALSE;
  remeasure (self, message);
}

static void
trim_images (BjConversation *self, BjTrimFacts *facts)
{
  gboolean newest = TRUE;

  for (guint i = self->messages->len; i-- > FIRST_TURN;)
    {
      if (!get (self, i)->has_image)
        continue;
      if (!newest)
        {
          drop_image (self, get (self, i));
          facts->images++;
        }
      newest = FALSE;
    }
}

static gboolean
shorten (BjConversation *self, BjMessage *message, gsize head, gsize tail)
{
  const char *content = bj_json_get_string (message->json, "content");
  g_autofree char *shorter = NULL;

  if (strlen (content) <= head + tail + 100)
    return FALSE;
  shorter = bj_text_shorten (content, head, tail);
  json_object_set_string_member (message->json, "content", shorter);
  remeasure (self, message);
  return TRUE;
}

static void
shorten_call (JsonObject *call, gsize head, gsize tail)
{
  JsonObject *arguments = bj_json_get_object (bj_json_get_object (call, "function"), "arguments");
  g_autoptr(GList) members = json_object_get_members (arguments);

  for (GList *l = members; l != NULL; l = l->next)
    {
      const char *text = bj_json_get_string (arguments, l->data);
      g_autofree char *shorter = text ? bj_text_shorten (text, head, tail) : NULL;

      if (shorter != NULL)
        json_object_set_string_member (arguments, l->data, shorter);
    }
}

/* Whole files that a model wrote stand in its calls. */
static gboolean
shorten_calls (BjConversation *self, BjMessage *message, gsize head, gsize tail)
{
  JsonArray *calls = bj_json_get_array (message->json, "tool_calls");
  gsize before = message->size;

  for (guint i = 0; calls != NULL && i < json_array_get_length (calls); i++)
    shorten_call (bj_json_array_get_object (calls, i), head, tail);
  remeasure (self, message);
  return message->size < before;
}

static void
shorten_results (BjConversation *self, gsize target, gboolean of_last_turn, BjTrimFacts *facts)
{
  for (guint i = FIRST_TURN; i < self->messages->len && self->size > target; i++)
    {
      BjMessage *message = get (self, i);
      gsize head = of_last_turn ? LAST_HEAD : KEEP_HEAD;
      gsize tail = of_last_turn ? LAST_TAIL : KEEP_TAIL;

      if (message->turn == 0 || (message->turn == self->turn) != of_last_turn)
        continue;
      if (message->is_result ? shorten (self, message, head, tail) : shorten_calls (self, message, head, tail))
        facts->shortened++;
    }
}

static void
remove_turn (BjConversation *self, guint at)
{
  guint turn = get (self, at)->turn;
  guint end = at;

  while (end < self->messages->len && get (self, end)->turn == turn)
    self->size -= get (self, end++)->size;
  g_ptr_array_remove_range (self->messages, at, end - at);
}

static void
set_notice (BjConversation *self, const char *plan)
{
  g_autofree char *text = g_strdup_printf ("[%u earlier turns of this work were left out to save room.%s%s]",
                                           self->dropped, plan ? " Your plan:\n" : "", plan ? plan : "");

  if (!self->has_notice)
    {
      BjMessage *message = add (self, "user", text);

      message->turn = 0;
      g_ptr_array_insert (self->messages, FIRST_TURN,
                          g_ptr_array_steal_index (self->messages, self->messages->len - 1));
      self->has_notice = TRUE;
      return;
    }
  json_object_set_string_member (get (self, FIRST_TURN)->json, "content", text);
  remeasure (self, get (self, FIRST_TURN));
}

static void
drop_turns (BjConversation *self, gsize target, BjTrimFacts *facts)
{
  guint first = FIRST_TURN + (self->has_notice ? 1 : 0);

  while (self->size > target && first < self->messages->len && get (self, first)->turn != self->turn)
    {
      remove_turn (self, first);
      facts->dropped++;
    }
}

gboolean
bj_conversation_trim (BjConversation *self, const char *plan, BjTrimFacts *facts)
{
  gsize target = self->budget / 4 * 3; /* lower than need be, so that not every turn has to trim again */

  memset (facts, 0, sizeof *facts);
  facts->before = self->size;
  trim_images (self, facts);
  if (self->size > self->budget)
    {
      shorten_results (self, target, FALSE, facts);
      if (self->size > self->budget)
        drop_turns (self, target, facts);
      self->dropped += facts->dropped;
      if (facts->dropped > 0)
        set_notice (self, plan);
      if (self->size > self->budget)
        shorten_results (self, self->budget, TRUE, facts);
    }
  facts->after = self->size;
  return facts->images + facts->shortened + facts->dropped > 0;
}

gsize
bj_conversation_get_size (BjConversation *self)
{
  return self->size;
}

guint
bj_conversation_get_length (BjConversation *self)
{
  return self->messages->len;
}

JsonArray *
bj_conversation_dup_messages (BjConversation *self)
{
  JsonArray *array = json_array_new ();

  for (guint i = 0; i < self->messages->len; i++)
    json_array_add_object_element (array, json_object_ref (get (self, i)->json));
  return array;
}

/* Kept for later */

JsonObject *
bj_conversation_to_json (BjConversation *self)
{
  JsonObject *json = json_object_new ();
  JsonArray *messages = json_array_new ();

  for (guint i = 0; i < self->messages->len; i++)
    {
      const BjMessage *message = get (self, i);
      JsonObject *entry = json_object_new ();

      json_object_set_int_member (entry, "turn", message->turn);
      json_object_set_boolean_member (entry, "result", message->is_result);
      json_object_set_object_member (entry, "message", json_object_ref (message->json));
      json_array_add_object_element (messages, entry);
    }
  json_object_set_int_member (json, "turn", self->turn);
  json_object_set_int_member (json, "dropped", self->dropped);
  json_object_set_boolean_member (json, "notice", self->has_notice);
  json_object_set_array_member (json, "messages", messages);
  return json;
}

static guint
get_count (JsonObject *json, const char *name)
{
  gint64 value = 0;

  bj_json_get_int (json, name, &value);
  return (guint) CLAMP (value, 0, G_MAXINT);
}

static gboolean
take_message (BjConversation *self, JsonObject *entry)
{
  JsonObject *json = entry != NULL ? bj_json_get_object (entry, "message") : NULL;
  BjMessage *message;

  if (json == NULL || bj_json_get_string (json, "role") == NULL || bj_json_get_string (json, "content") == NULL)
    return FALSE;
  message = g_new0 (BjMessage, 1);
  message->json = json_object_ref (json);
  message->turn = get_count (entry, "turn");
  message->is_result = bj_json_get_bool (entry, "result", FALSE);
  message->has_image = bj_json_get_array (json, "images") != NULL;
  g_ptr_array_add (self->messages, message);
  remeasure (self, message);
  return TRUE;
}

BjConversation *
bj_conversation_from_json (JsonObject *json, gsize budget, GError **error)
{
  g_autoptr(BjConversation) self = g_new0 (BjConversation, 1);
  JsonArray *messages = bj_json_get_array (json, "messages");
  guint n = messages != NULL ? json_array_get_length (messages) : 0;
  gboolean ok = n >= FIRST_TURN;

  self->messages = g_ptr_array_new_with_free_func ((GDestroyNotify) message_free);
  self->budget = budget;
  self->turn = get_count (json, "turn");
  self->dropped = get_count (json, "dropped");
  self->has_notice = bj_json_get_bool (json, "notice", FALSE) && n > FIRST_TURN;
  for (guint i = 0; ok && i < n; i++)
    ok = take_message (self, bj_json_array_get_object (messages, i));
  if (ok)
    return g_steal_pointer (&self);
  bj_error_set (error, BJ_ERROR_INVALID, "The conversation that was kept is damaged");
  return NULL;
}
