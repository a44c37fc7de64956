/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * What a command printed: the first and the last bytes, the whole count and the SHA-256 of everything.
 * Memory stays flat whatever the size.
 */
typedef struct _BjCapture BjCapture;

/**
 * bj_capture_new:
 * @head: how many bytes of the beginning are kept
 * @tail: how many bytes of the end are kept
 */
BjCapture *bj_capture_new (gsize head, gsize tail);
void bj_capture_free (BjCapture *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjCapture, bj_capture_free)

void bj_capture_append (BjCapture *self, gconstpointer data, gsize length);
guint64 bj_capture_get_total (BjCapture *self);
gboolean bj_capture_get_truncated (BjCapture *self);

/**
 * bj_capture_dup_sha256:
 * Returns: (transfer full): SHA-256 of all bytes that were appended, lower-case hexadecimal
 */
char *bj_capture_dup_sha256 (BjCapture *self);

/**
 * bj_capture_dup_bytes:
 * Between them stands a line "[… N bytes left out …]" if something was left out.
 *
 * Returns: (transfer full): head, marker if needed, tail
 */
GBytes *bj_capture_dup_bytes (BjCapture *self);

G_END_DECLS
