/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* What an agent may ask of the model server. Pure functions over bodies. */

/** The largest context the gateway asks a model server to keep for one conversation, in tokens. */
#define BJ_CONTEXT_MAX 32768

/** bj_model_name_equal: Whether two names mean one model: "llama3" and "llama3:latest" do. */
gboolean bj_model_name_equal (const char *a, const char *b);
gboolean bj_model_name_in (const char *const *list, const char *name);

/**
 * bj_chat_request_build:
 * @body: (nullable): what the agent sent
 * @model: the session's model
 * @context: tokens the model can take, already capped; 0 when unknown
 * @error: BJ_ERROR_INVALID (no JSON object) or BJ_ERROR_DENIED (another model)
 *
 * The body that really goes out is made anew from the members an agent has a use for: it cannot unload models or choose
 * the server's hardware settings, and num_ctx is ours unless the agent's is smaller.
 *
 * Returns: (transfer full): JSON
 */
GBytes *bj_chat_request_build (GBytes *body, const char *model, guint context, GError **error);

/** bj_show_request_build: The same for /api/show, which takes "model" or the older "name". */
GBytes *bj_show_request_build (GBytes *body, const char *model, GError **error);

/** bj_tags_filter: Returns: (transfer full): the answer of /api/tags with only the models of @allow left */
GBytes *bj_tags_filter (GBytes *body, const char *const *allow, GError **error);

/* What a model server says about a model. */
typedef struct
{
  gboolean found;
  gboolean tools;
  gboolean vision;
  gboolean thinking;
  guint context; /* tokens, at most BJ_CONTEXT_MAX; 0 when it does not say */
} BjModelInfo;

/** bj_model_info_parse: @body: the answer of /api/show */
gboolean bj_model_info_parse (GBytes *body, BjModelInfo *info, GError **error);

G_END_DECLS
