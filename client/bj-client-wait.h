/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bj-client.h"

G_BEGIN_DECLS

/**
 * bj_client_wait_job_async:
 * @job: the job; its properties tell its progress meanwhile (notify::progress, notify::phase)
 * @cancellable: (nullable): gives up waiting; use Job.Cancel to end the work itself
 *
 * Waits until @job is done, or the daemon is gone.
 */
void bj_client_wait_job_async (BjClient *self, BjDBusJob *job, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);
/**
 * bj_client_wait_job_finish:
 * @message: (out) (optional) (transfer full): what happened, for people
 *
 * Returns: whether the work succeeded; else @error is the job's own
 */
gboolean bj_client_wait_job_finish (BjClient *self, GAsyncResult *result, char **message, GError **error);

/**
 * bj_client_wait_report_async:
 * @session: the session
 * @cancellable: (nullable): gives up waiting; the session goes on
 *
 * Waits in slices until @session ends, needs input or has used up its time, or the daemon is gone.
 */
void bj_client_wait_report_async (BjClient *self, BjDBusSession *session, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
/**
 * bj_client_wait_report_finish:
 * @outcome: (out) (optional) (transfer full): DONE, NEEDS INPUT, IN PROGRESS (its time is over), FAILED or CANCELLED
 *
 * Returns: (transfer full): the report as JSON
 */
char *bj_client_wait_report_finish (BjClient *self, GAsyncResult *result, char **outcome, GError **error);

G_END_DECLS
