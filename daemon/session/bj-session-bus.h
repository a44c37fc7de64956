/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-session.h"

G_BEGIN_DECLS

/** BjSessionDeleteFunc: (transfer full) @invocation: answers when the session is forgotten. */
typedef void (*BjSessionDeleteFunc) (BjSession *session, GDBusMethodInvocation *invocation, gpointer user_data);

/**
 * bj_session_bus_export:
 * @forget: the manager's part of Delete
 *
 * Puts the session on the bus, guarded by the gate. Main loop only.
 */
void bj_session_bus_export (BjSession *session, BjSessionDeleteFunc forget, gpointer user_data);
void bj_session_bus_unexport (BjSession *session);

G_END_DECLS
