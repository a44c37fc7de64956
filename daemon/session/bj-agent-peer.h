/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-agent-commands.h"
#include "bj-gateway.h"
#include "bj-session.h"

G_BEGIN_DECLS

/*
 * One session's agent: the process, its socket to the gateway, and the verbs it may call (bj-agent-verbs.c). The agent
 * is assumed hostile: arguments are checked, calls are counted, in flight at most BJ_AGENT_CALLS_MAX.
 */
typedef struct _BjAgentPeer BjAgentPeer;

#define BJ_AGENT_CALLS_MAX 8

/**
 * bj_agent_peer_start:
 * @task: (transfer full): what GetTask answers, a{sv}
 *
 * Blocks until the agent is connected.
 */
BjAgentPeer *bj_agent_peer_start (BjSession *session, BjGateway *gateway, GVariant *task, GError **error);

/** bj_agent_peer_is_running: Whether the process still lives. */
gboolean bj_agent_peer_is_running (BjAgentPeer *self);
/** bj_agent_peer_end: Cancels its calls, waits for them, ends the process. Blocks, a few seconds at most. */
void bj_agent_peer_end (BjAgentPeer *self);

/* For the verbs */
BjSession *bj_agent_peer_get_session (BjAgentPeer *self);
GCancellable *bj_agent_peer_get_cancellable (BjAgentPeer *self);
GVariant *bj_agent_peer_get_task (BjAgentPeer *self); /* (transfer none) */
BjAgentCommands *bj_agent_peer_get_commands (BjAgentPeer *self); /* (transfer none) */

/* A verb: blocks in a worker. Returns: (transfer full) (nullable): the answer's tuple, or %NULL with an error */
typedef GVariant *(*BjVerbFunc) (BjAgentPeer *peer, GVariant *arguments, GError **error);

/** bj_agent_verb_lookup: @counted: (out): whether it counts as a step. Returns: (nullable): the verb's function */
BjVerbFunc bj_agent_verb_lookup (const char *method, gboolean *counted);

G_END_DECLS
