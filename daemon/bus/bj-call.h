/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-error.h"
#include "bj-job.h"

G_BEGIN_DECLS

/**
 * BjCallFunc:
 * Runs in a worker thread.
 * @reply: (out) (optional): the method's out arguments as a tuple, floating; left alone when it has none
 */
typedef gboolean (*BjCallFunc) (gpointer data, GVariant **reply, GError **error);

/** BJ_CALLS_PER_USER: how many calls of one user may go on at a time, not counting those that answer at once */
#define BJ_CALLS_PER_USER 100

/**
 * bj_call_enter:
 * Main loop only. Counts a call of its caller's until bj_call_answer().
 * @invocation: (transfer full) when the caller has too many: then it has been answered, and %FALSE comes back
 */
gboolean bj_call_enter (GDBusMethodInvocation *invocation);
/** bj_call_answer: (transfer full) @invocation: with @reply, or, when that is %NULL, @error; it counts no more */
void bj_call_answer (GDBusMethodInvocation *invocation, GVariant *reply, const GError *error);

/**
 * bj_call_in_worker: (transfer full) @invocation: answered on the main loop when @func is through; refused (and @data freed) if
 * its caller has too many calls under way
 */
void bj_call_in_worker (GDBusMethodInvocation *invocation, BjCallFunc func, gpointer data, GDestroyNotify free_data);

/** bj_call_as_job: (transfer full) @invocation: answered at once with the job's path */
void bj_call_as_job (GDBusMethodInvocation *invocation, BjJobs *jobs, const char *operation, BjJobFunc func, gpointer data,
                     GDestroyNotify free_data);

/** bj_call_return_error: (transfer full) @invocation: bj_gate_return_error() with a new error. Always TRUE, for handlers */
gboolean bj_call_return_error (GDBusMethodInvocation *invocation, BjError code, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

G_END_DECLS
