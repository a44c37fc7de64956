/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-agent-config.h"
#include "bj-conversation.h"
#include "bj-dbus-agent.h"
#include "bj-model-client.h"
#include "bj-tool-call.h"
#include "bj-toolbox.h"

G_BEGIN_DECLS

/* The loop: asks the model, carries out what it wants through the daemon's verbs, gives it the results. */
typedef struct _BjAgent BjAgent;

#define BJ_AGENT_PATH "/org/belljar1/agent"

/**
 * bj_agent_new:
 * @data: folder with tools.json, agent.ini, system.md, textual-tools.md, nudge.md; everything in it is checked
 */
BjAgent *bj_agent_new (const char *data, GError **error);
void bj_agent_free (BjAgent *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjAgent, bj_agent_free)

/**
 * bj_agent_run:
 * @connection: to the daemon
 * @socket_path: to the gateway
 *
 * Blocks until the work has ended. The daemon has been told how (Finish or Fail), unless it ended it itself.
 */
gboolean bj_agent_run (BjAgent *self, GDBusConnection *connection, const char *socket_path, GError **error);

G_END_DECLS
