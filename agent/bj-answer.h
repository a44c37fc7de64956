/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* One answer of the model, put together from the lines of its stream. Pure; what is in it is the model's. */
typedef struct
{
  GString *content;
  GString *thinking;
  JsonArray *tool_calls; /* as they came */
  char *done_reason;     /* (nullable) */
  gint64 prompt_tokens;
  gint64 eval_tokens;
  gsize cap;
  gboolean done; /* the model said so itself */
  gboolean full; /* more than @cap came; the rest is not wanted */
} BjAnswer;

/** bj_answer_new: @cap: bytes of content, and of thinking, that are kept */
BjAnswer *bj_answer_new (gsize cap);
void bj_answer_free (BjAnswer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjAnswer, bj_answer_free)

/**
 * bj_answer_push_line:
 * @line: one JSON object of /api/chat's stream
 * @error: BJ_ERROR_MODEL_UNREACHABLE: no JSON, or the server's own {"error": …}
 */
gboolean bj_answer_push_line (BjAnswer *self, const char *line, gsize length, GError **error);

G_END_DECLS
