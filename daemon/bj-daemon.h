/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-gate.h"

G_BEGIN_DECLS

typedef struct
{
  const char *bus;       /* session, system or an address */
  const char *state_dir; /* absolute */
  const char *config;    /* (nullable): the file that must exist; NULL: the default one, which may be missing */
  const char *engine;    /* (nullable): libvirt URI, instead of the configured one */
  BjAuth auth;
} BjDaemonOptions;

/**
 * bj_daemon_run:
 * Runs until SIGTERM, SIGINT or a failure; a second signal ends the process at once.
 *
 * Returns: the process's exit code: 0 after an orderly end, 1 after a failure, which was logged
 */
int bj_daemon_run (const BjDaemonOptions *options);

G_END_DECLS
