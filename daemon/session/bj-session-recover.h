/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-gateway.h"
#include "bj-session.h"

G_BEGIN_DECLS

/*
 * After a crash: what the store and the journal say is compared with what really is there. Blocks; at the daemon's start.
 */

/** bj_session_recover: A session that was not over: adopted if it may live on, else ended, its folder recorded. */
void bj_session_recover (BjSession *session, BjGateway *gateway);

/**
 * bj_session_recover_world:
 * @rows: (element-type BjSessionRow): what the store knows
 *
 * Removes machines and folders that belong to no session, closes what the journal has open; the log says what was found.
 */
gboolean bj_session_recover_world (BjContext *context, GPtrArray *rows, GError **error);

G_END_DECLS
