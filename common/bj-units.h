/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_units_parse_duration:
 * @text: (nullable): a whole number with s, m, h or d behind it; a bare number means seconds: "90", "20m", "1d"
 * @seconds: (out): seconds, 1 to G_MAXUINT
 * @error: return location; BJ_ERROR_INVALID that quotes @text and shows the form
 *
 * Returns: whether @text is a duration
 */
gboolean bj_units_parse_duration (const char *text, guint *seconds, GError **error);

/**
 * bj_units_parse_size:
 * @text: (nullable): a whole number with K, M, G or T behind it (powers of 1024); a bare number means bytes
 * @bytes: (out): bytes, 1 to G_MAXINT64
 * @error: return location; BJ_ERROR_INVALID that quotes @text and shows the form
 *
 * Returns: whether @text is a size
 */
gboolean bj_units_parse_size (const char *text, guint64 *bytes, GError **error);

/**
 * bj_units_format_duration:
 * @seconds: seconds
 *
 * Returns: (transfer full): for people: "45 s", "3 min 20 s", "2 h 5 min"
 */
char *bj_units_format_duration (guint64 seconds);

G_END_DECLS
