/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-verdict.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/**
 * bj_report_build:
 * @records: from bj_transcript_read(); a prefix of a transcript gives a partial report (IN PROGRESS)
 * @head: hex SHA-256 of the last record
 *
 * The report follows from the records alone, so that anybody can build it again and compare. Pure.
 * Beyond the contract's keys: "transcript" {head, count}, "limits" [], "error" {name, message}.
 *
 * Returns: (transfer full): the report, unsigned
 */
JsonObject *bj_report_build (JsonArray *records, const char *head, GError **error);

/** bj_report_get_verdict_facts: What the check runs among @records mean; used for the commit's trailer too. Pure. */
void bj_report_get_verdict_facts (JsonArray *records, BjVerdictFacts *facts);

/**
 * bj_report_to_text:
 * @marker: (nullable): random text for the fence around what is untrusted; %NULL makes one
 * @width: columns to fold to, 80 if 0, at least 60
 *
 *
 * Returns: (transfer full): UTF-8 text
 */
char *bj_report_to_text (JsonObject *report, const char *marker, guint width);

/**
 * bj_report_fence:
 * @begin: what stands at the top, for example "untrusted summary"
 * @end: what stands at the bottom
 * @cut: whether something is missing at the end of @text
 *
 * The fence around what a model said, each line of it prefixed and folded. Returns: (transfer full): UTF-8 text
 */
char *bj_report_fence (const char *begin, const char *end, const char *text, gboolean cut, const char *marker, guint width);

/** bj_report_format_timing: Returns: (transfer full): "queue 0.1 s, overlay 0.0 s"; only phases that are known */
char *bj_report_format_timing (JsonObject *timing);

/* Signing: Ed25519 over the canonical form (keys sorted, no spaces) of the report without "signature". */
typedef struct _BjReportKey BjReportKey;
/** bj_report_key_load: Loads the private key, or makes one (mode 0600) with @path.pub beside it. */
BjReportKey *bj_report_key_load (const char *path, GError **error);
void bj_report_key_free (BjReportKey *key);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjReportKey, bj_report_key_free)
char *bj_report_key_dup_public (BjReportKey *key); /* base64 of 32 bytes */
/** bj_report_sign: Adds "signature" {algorithm, key, value} */
gboolean bj_report_sign (JsonObject *report, BjReportKey *key, GError **error);

/**
 * bj_report_verify:
 * @transcript_fd: the transcript's file
 * @public_key: base64
 *
 * Signature, chain, count, head, and that the report follows from the records; the message names what does not hold.
 */
gboolean bj_report_verify (JsonObject *report, int transcript_fd, const char *public_key, GError **error);

G_END_DECLS
