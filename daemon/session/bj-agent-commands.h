/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-session.h"

G_BEGIN_DECLS

/* The background commands that an agent started, as the daemon last saw them. Thread-safe; each event is recorded. */
typedef struct _BjAgentCommands BjAgentCommands;

BjAgentCommands *bj_agent_commands_new (BjSession *session);
void bj_agent_commands_free (BjAgentCommands *self);

/** bj_agent_commands_recall: Takes over what an agent before this one started, as the transcript has it. Blocks. */
void bj_agent_commands_recall (BjAgentCommands *self);
void bj_agent_commands_add (BjAgentCommands *self, guint id, const char *label);
/** bj_agent_commands_note_failure: One has no id. @lost: it was given to the guest and no answer came, so that it may run */
void bj_agent_commands_note_failure (BjAgentCommands *self, const char *label, gboolean lost, const char *failure);
/** bj_agent_commands_end: A poll saw that it had ended; only the first time counts. */
void bj_agent_commands_end (BjAgentCommands *self, guint id, int exit, int signal);
/** bj_agent_commands_note: @event: send or kill */
void bj_agent_commands_note (BjAgentCommands *self, guint id, const char *event);
/** bj_agent_commands_list: Returns: (transfer floating): aa{sv} with id, label (escaped), running, exit */
GVariant *bj_agent_commands_list (BjAgentCommands *self);

G_END_DECLS
