/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-relay.h"

G_BEGIN_DECLS

/*
 * One session's way to the model: an HTTP server on the listening socket the daemon gave, open for four requests and one
 * model, and closed for everything else.
 */
#define BJ_TYPE_GATEWAY_SESSION (bj_gateway_session_get_type ())
G_DECLARE_FINAL_TYPE (BjGatewaySession, bj_gateway_session, BJ, GATEWAY_SESSION, GObject)

/**
 * bj_gateway_session_new:
 * @listener: a listening unix socket; taken over, also on failure
 * @allow: the models that may be seen in /api/tags
 * @body_max: bytes a request's body may have
 *
 * Signal "turn-finished" (guint turn, gpointer facts: a BjRelayFacts) after each /api/chat.
 */
BjGatewaySession *bj_gateway_session_new (BjUpstream *upstream, int listener, const char *model,
                                          const char *const *allow, gsize body_max, GError **error);

/** bj_gateway_session_close: Stops listening, ends what is running. */
void bj_gateway_session_close (BjGatewaySession *self);

G_END_DECLS
