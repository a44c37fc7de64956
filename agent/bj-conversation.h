/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * The messages that go to the model, within a budget of bytes. System text, task and plan always stay; the rest is
 * shortened and left out from its oldest end.
 */
typedef struct _BjConversation BjConversation;

/** bj_conversation_new: @budget: bytes all messages together may have */
BjConversation *bj_conversation_new (const char *system, const char *task, gsize budget);
void bj_conversation_free (BjConversation *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjConversation, bj_conversation_free)

void bj_conversation_set_system (BjConversation *self, const char *system);
void bj_conversation_set_budget (BjConversation *self, gsize budget);
/** bj_conversation_add_assistant: Begins a turn. @tool_calls: (nullable) (transfer none): {"function": {"name", "arguments": {…}}} */
void bj_conversation_add_assistant (BjConversation *self, const char *content, JsonArray *tool_calls);
/** bj_conversation_add_result: @textual: as a user's message, for models without tool calls of their own */
void bj_conversation_add_result (BjConversation *self, const char *tool, const char *json, gboolean textual);
/** bj_conversation_add_user: @image: (nullable): base64 of a picture */
void bj_conversation_add_user (BjConversation *self, const char *text, const char *image);

/* What trimming did. */
typedef struct
{
  guint images;    /* pictures left out */
  guint shortened; /* results shortened */
  guint dropped;   /* turns left out */
  gsize before;    /* bytes */
  gsize after;
} BjTrimFacts;

/**
 * bj_conversation_trim:
 * @plan: (nullable): the plan as text, put where turns were left out
 *
 * Returns: whether anything had to go
 */
gboolean bj_conversation_trim (BjConversation *self, const char *plan, BjTrimFacts *facts);

/** bj_conversation_to_json: Returns: (transfer full): all there is to it, for bj_conversation_from_json() */
JsonObject *bj_conversation_to_json (BjConversation *self);
/** bj_conversation_from_json: Returns: (transfer full): or %NULL when @json is none */
BjConversation *bj_conversation_from_json (JsonObject *json, gsize budget, GError **error);

gsize bj_conversation_get_size (BjConversation *self);
guint bj_conversation_get_length (BjConversation *self);
/** bj_conversation_dup_messages: Returns: (transfer full): for a request */
JsonArray *bj_conversation_dup_messages (BjConversation *self);

/** bj_text_shorten: Returns: (transfer full): head and tail of @text with a mark between, at most about @head + @tail bytes */
char *bj_text_shorten (const char *text, gsize head, gsize tail);

G_END_DECLS
