/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What a machine may have, whoever asks for it. */
#define BJ_MEMORY_MIN_MIB 256
#define BJ_MEMORY_MAX_MIB 65536
#define BJ_MEMORY_RANGE \
  "an amount of memory from " G_STRINGIFY (BJ_MEMORY_MIN_MIB) " to " G_STRINGIFY (BJ_MEMORY_MAX_MIB) \
  " MiB: write MiB, or for example 512M or 2G"

/**
 * bj_units_parse_duration:
 * @text: (nullable): a whole number with s, m, h or d behind it; a bare number means seconds: "90", "20m", "1d"
 * @least: what is shorter is refused: 1 where 0 makes no sense
 * @seconds: (out): seconds, @least to G_MAXUINT
 * @error: return location; BJ_ERROR_INVALID that quotes @text and shows the form
 *
 * Returns: whether @text is a duration
 */
gboolean bj_units_parse_duration (const char *text, guint least, guint *seconds, GError **error);

/**
 * bj_units_parse_size:
 * @text: (nullable): a whole number with K, M, G or T behind it (powers of 1024); a bare number means bytes
 * @least: what is smaller is refused
 * @bytes: (out): bytes, @least to G_MAXINT64
 * @error: return location; BJ_ERROR_INVALID that quotes @text and shows the form
 *
 * Returns: whether @text is a size
 */
gboolean bj_units_parse_size (const char *text, guint64 least, guint64 *bytes, GError **error);

/**
 * bj_units_parse_memory:
 * @text: (nullable): a machine's memory; a bare number means MiB, else a size as above: "2048", "2G"
 * @mib: (out): MiB, BJ_MEMORY_MIN_MIB to BJ_MEMORY_MAX_MIB
 * @error: return location; BJ_ERROR_INVALID that quotes @text and says BJ_MEMORY_RANGE
 *
 * Returns: whether @text is such an amount
 */
gboolean bj_units_parse_memory (const char *text, guint *mib, GError **error);

/**
 * bj_units_format_duration:
 * @seconds: seconds
 *
 * Returns: (transfer full): for people: "45 s", "3 min 20 s", "2 h 5 min"
 */
char *bj_units_format_duration (guint64 seconds);

/** bj_units_format_ordinal: Returns: (transfer full): "1st", "2nd", "11th"; English, as what the daemon says */
char *bj_units_format_ordinal (guint number);

G_END_DECLS
