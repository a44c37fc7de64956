/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli.h"

G_BEGIN_DECLS

/** bj_cli_show_timing: Prints what a session's phases took, and how its machines started. Returns: the exit code, or -1 */
int bj_cli_show_timing (BjCli *cli, BjDBusSession *session, GError **error);

G_END_DECLS
