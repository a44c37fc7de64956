/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli.h"

G_BEGIN_DECLS

/**
 * bj_job_follow:
 * @answer: (transfer full) (nullable): the answer "(o)" of a call that started a job; %NULL passes its @error on
 * @message: (out) (optional) (transfer full): what happened, for people
 *
 * Shows the job's progress on standard error and waits for its end. Ctrl-C cancels it, a second one leaves it.
 */
gboolean bj_job_follow (BjCli *cli, GVariant *answer, char **message, GError **error);

/** bj_job_finish: bj_job_follow(), then prints the message, or with @as_json one object. Returns: exit code or -1 */
int bj_job_finish (BjCli *cli, GVariant *answer, gboolean as_json, GError **error);

G_END_DECLS
