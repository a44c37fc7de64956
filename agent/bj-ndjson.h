/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Bytes as they come off a stream, cut into lines. */
typedef struct _BjNdjson BjNdjson;

/** BjNdjsonLine: @line: without its newline, not NUL-terminated. Returns: whether to go on */
typedef gboolean (*BjNdjsonLine) (const char *line, gsize length, gpointer user_data, GError **error);

/** bj_ndjson_new: @max_line: a longer line is an error */
BjNdjson *bj_ndjson_new (gsize max_line, BjNdjsonLine func, gpointer user_data);
void bj_ndjson_free (BjNdjson *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjNdjson, bj_ndjson_free)

/** bj_ndjson_push: Calls the function for each line that is complete; blank ones are left out. */
gboolean bj_ndjson_push (BjNdjson *self, const char *bytes, gsize length, GError **error);
/** bj_ndjson_end: What stands behind the last newline is a line too. */
gboolean bj_ndjson_end (BjNdjson *self, GError **error);

G_END_DECLS
