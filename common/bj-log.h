/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_log_parse_level:
 * @name: (nullable): error, warning, message, info or debug
 * @level: (out): the level
 *
 * Returns: whether @name is one of these
 */
gboolean bj_log_parse_level (const char *name, GLogLevelFlags *level);

/**
 * bj_log_init:
 * @program: shown in front of each line
 * @level: the least important level still written
 *
 * Structured logs go to the journal where standard error is connected to it, otherwise as lines to standard error:
 * time, level, domain, message. Control characters in a message are made visible, so that no guest text can forge a line.
 */
void bj_log_init (const char *program, GLogLevelFlags level);

G_END_DECLS
