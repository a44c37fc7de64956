/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-answer.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* HTTP to the gateway over a unix socket. Blocks; used from one thread. */
typedef struct _BjModelClient BjModelClient;

/** bj_model_client_new: @socket_path: where the gateway listens; @stall_s: seconds without a byte */
BjModelClient *bj_model_client_new (const char *socket_path, guint stall_s);
void bj_model_client_free (BjModelClient *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjModelClient, bj_model_client_free)

/**
 * bj_model_client_chat:
 * @request: body of /api/chat
 * @answer: gets what came
 * @deadline_s: seconds all of it may take
 * @error: BJ_ERROR_MODEL_UNREACHABLE: trying again may help; BJ_ERROR_INVALID or BJ_ERROR_DENIED: it will not
 *
 * Reads until the model is done or @answer is full.
 */
gboolean bj_model_client_chat (BjModelClient *self, JsonObject *request, BjAnswer *answer, guint deadline_s,
                               GError **error);

G_END_DECLS
