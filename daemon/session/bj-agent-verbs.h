/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-agent-peer.h"

G_BEGIN_DECLS

/* The verbs of org.belljar1.Agent are in several files; bj-agent-verbs.c has the list of all. */

/** bj_agent_verb_get_machine: Returns: (transfer full) (nullable): the session's machine, when it may be used now */
BjMachine *bj_agent_verb_get_machine (BjAgentPeer *peer, GError **error);
/** bj_agent_verb_dup_path: Returns: (transfer full) (nullable): an ay as a C string; %NULL if it is empty, too long, or has a NUL byte */
char *bj_agent_verb_dup_path (GVariant *bytes, GError **error);

/* bj-agent-input.c: keyboard, pointer, time */
GVariant *bj_agent_verb_type_text (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_press_keys (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_mouse_move (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_mouse_click (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_mouse_drag (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_scroll (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_wait (BjAgentPeer *peer, GVariant *arguments, GError **error);

/* bj-agent-git.c: the project's history, which is outside the machine */
GVariant *bj_agent_verb_git_status (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_git_diff (BjAgentPeer *peer, GVariant *arguments, GError **error);
GVariant *bj_agent_verb_git_log (BjAgentPeer *peer, GVariant *arguments, GError **error);

G_END_DECLS
