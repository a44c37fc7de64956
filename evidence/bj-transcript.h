/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>
#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * The transcript: append-only JSON Lines, one record a line, each with
 *   n     number, from 0
 *   at    time, seconds since 1970 with fraction
 *   by    "seen" (the daemon's own act or observation) or "claimed" (it came from the agent process)
 *   type  one of the below
 *   prev  SHA-256 (hex) of the line before, without its newline; 64 zeros in the first
 *   data  an object; what a guest or a model chose stands in it as escaped text (bj-untrusted.h), bytes that are no
 *         text as {"base64": …}
 *
 * seen:    session, state, timing, command, background, file, input, screenshot, model, tree, check-run, commit, warning,
 *          limit, error, end
 * claimed: turn, tool-error, textual-call, retry, trim, plan, note, set-check, finish
 * The data of each is built by bj-record.h and nowhere else.
 *
 * A line is written in one form only (bj-json.h), so that a reader can refuse every other one: no double keys, no comments, no NUL.
 */
#define BJ_TRANSCRIPT_LINE_MAX (4 * 1024 * 1024)
/* Longer ones are refused by writer and reader; the last of it is kept for the records that end a session. */
#define BJ_TRANSCRIPT_MAX (68 * 1024 * 1024)

typedef struct _BjTranscript BjTranscript;

/** bj_transcript_create: @path: must not exist yet; made with mode 0600 */
BjTranscript *bj_transcript_create (const char *path, GError **error);
/** bj_transcript_open: Continues one after a crash: checks the chain, cuts off a last line that is not whole. */
BjTranscript *bj_transcript_open (const char *path, GError **error);
void bj_transcript_free (BjTranscript *self);
/** bj_transcript_close: Nothing is appended any more; its file is closed. Head, length and count stay. */
void bj_transcript_close (BjTranscript *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjTranscript, bj_transcript_free)

/**
 * bj_transcript_append:
 * @data: (transfer full): from bj-record.h
 *
 * Thread-safe. On the disk (fdatasync) before it returns when @type is session, tree, check-run, commit or end. A @type that does not
 * go with @seen is an error. After a failed write the file is as it was before; BJ_ERROR_LIMIT when the transcript is full.
 */
gboolean bj_transcript_append (BjTranscript *self, gboolean seen, const char *type, JsonObject *data, GError **error);

guint64 bj_transcript_get_length (BjTranscript *self); /* bytes */
guint64 bj_transcript_get_count (BjTranscript *self);
char *bj_transcript_dup_head (BjTranscript *self); /* hex SHA-256 of the newest line */

/**
 * bj_transcript_read:
 * @fd: a transcript's file, read from its beginning
 * @head: (out) (optional): hex SHA-256 of the last line
 * @count: (out) (optional)
 *
 * Checks the chain. Input may be hostile. A last line without a newline is not there yet (somebody may be writing it).
 *
 * Returns: (transfer full): the records as an array of objects, or %NULL with the number of the first bad one
 */
JsonArray *bj_transcript_read (int fd, char **head, guint64 *count, GError **error);
/** bj_transcript_read_strict: Like it, but a last line without a newline is an error. */
JsonArray *bj_transcript_read_strict (int fd, char **head, guint64 *count, GError **error);

G_END_DECLS
