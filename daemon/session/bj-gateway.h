/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"

G_BEGIN_DECLS

/*
 * The daemon's end of belljar-gateway: started when the first session needs it, started again when it died. Functions
 * block (worker threads only) unless said otherwise.
 */
typedef struct _BjGateway BjGateway;

/** BjGatewayTurnFunc: On the main loop, for each finished model turn of @session. */
typedef void (*BjGatewayTurnFunc) (const char *session, GVariant *info, gpointer user_data);

BjGateway *bj_gateway_new (BjContext *context, BjGatewayTurnFunc turn, gpointer user_data);
void bj_gateway_free (BjGateway *self);

/**
 * bj_gateway_open_session:
 * @directory: existing folder that gets the socket file
 * @uid: the agent's uid: only it may connect
 *
 * Returns: O_PATH fd of the socket, for the agent; or -1. Owned by the caller
 */
int bj_gateway_open_session (BjGateway *self, const char *session, const char *model, const char *directory, uid_t uid,
                             GError **error);
void bj_gateway_close_session (BjGateway *self, const char *session);

/**
 * bj_gateway_probe:
 * @model: "" asks only for the server
 *
 * Returns: (transfer full): a{sv} as Gateway.Probe answers, or BJ_ERROR_MODEL_UNREACHABLE
 */
GVariant *bj_gateway_probe (BjGateway *self, const char *model, GError **error);

/**
 * bj_gateway_ask:
 * As bj_gateway_probe(), but what the model server does not do is told in the answer ("reachable", "found", "error"); an error
 * is the gateway's own.
 */
GVariant *bj_gateway_ask (BjGateway *self, const char *model, GError **error);

G_END_DECLS
