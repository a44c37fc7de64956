/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-session.h"

G_BEGIN_DECLS

/**
 * bj_session_run_command:
 * @tool: which tool or method asked, for the record
 * @command: the whole of it as text, for the record
 * @stream: (nullable): three fds (in, out, err; -1 for none) when the bytes go through the caller's fds
 *
 * Runs a command in the session's machine, records what was seen. Blocks. A person's pause is waited out.
 */
gboolean bj_session_run_command (BjSession *self, const char *tool, GBytes *command, const BjExec *exec,
                                 const int *stream, BjExecResult *result, GCancellable *cancellable, GError **error);

/** bj_session_run_in_kept: Likewise in a machine that was kept after the end; the transcript is closed, so nothing is recorded. */
gboolean bj_session_run_in_kept (BjSession *self, const BjExec *exec, const int *stream, BjExecResult *result,
                                 GCancellable *cancellable, GError **error);
/** bj_session_join_argv: Returns: (transfer full): how a person would have typed @argv, for the record */
char *bj_session_join_argv (const char *const *argv);

/**
 * bj_session_describe_exec:
 *
 * Returns: (transfer full): what is run, as a person would have typed it into a shell, and after a newline its standard
 *   input: it does not depend on what an agent calls it
 */
GBytes *bj_session_describe_exec (const BjExec *exec);

/**
 * bj_session_dup_argv:
 * @bytes: aay from the bus
 *
 * Returns: (transfer full): the arguments, or BJ_ERROR_INVALID
 */
GStrv bj_session_dup_argv (GVariant *bytes, GError **error);

/* What commands in a session's machine find in their environment. */
extern const char *const bj_session_environ[];

G_END_DECLS
