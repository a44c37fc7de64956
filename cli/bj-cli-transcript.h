/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/**
 * bj_record_to_line:
 * @line: one line of a transcript, without its newline; from anywhere
 *
 * Pure. Returns: (transfer full): number, time, who says so, type and the data's members, escaped, on one line
 */
char *bj_record_to_line (const char *line, gsize length);

G_END_DECLS
