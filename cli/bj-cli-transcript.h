/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/**
 * bj_record_to_line:
 * @line: one line of a transcript, without its newline; from anywhere
 * @long_form: with date, SHA-256 of the line, and more of each value
 *
 * Pure. Returns: (transfer full): number, time, who says so, type and the data's members, escaped, on one line
 */
char *bj_record_to_line (const char *line, gsize length, gboolean long_form);

/** bj_record_matches: @folded: from g_utf8_casefold(). Pure. Returns: whether a text in the record has it inside */
gboolean bj_record_matches (const char *line, gsize length, const char *folded);

/** bj_record_format_time: @at: seconds since 1970. Pure. Returns: (transfer full): UTC, to the millisecond */
char *bj_record_format_time (double at);

/** bj_cli_open_transcript: Returns: fd, owned by the caller, or -1 */
int bj_cli_open_transcript (BjCli *cli, BjDBusSession *session, GError **error);
/** bj_cli_open_evidence: @name: as a record has it. Returns: fd, owned by the caller, or -1 */
int bj_cli_open_evidence (BjCli *cli, BjDBusSession *session, const char *name, GError **error);

G_END_DECLS
