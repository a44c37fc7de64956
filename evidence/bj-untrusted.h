/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * Text from a guest, a model or a stranger. Bytes until proven text: code points come from an allow-list; controls, ANSI, bidi,
 * zero-width, tag and filler characters and invalid UTF-8 are made visible (\x1b, \u{202e}).
 */

/** bj_untrusted_escape: One line: newlines become \n too. @cap: bytes after escaping, with "…" at a cut. */
char *bj_untrusted_escape (const char *bytes, gssize length, gsize cap);
/** bj_untrusted_escape_block: Several lines: newlines stay, carriage returns and other controls do not. */
char *bj_untrusted_escape_block (const char *bytes, gssize length, gsize cap);
/**
 * bj_untrusted_escape_tail: Like the block form but keeps the end when it has to cut.
 */
char *bj_untrusted_escape_tail (const char *bytes, gssize length, gsize cap);
/** bj_untrusted_fold: Splits at newlines and at @width columns, puts @prefix before every line; nothing ever stands in column 0. */
char *bj_untrusted_fold (const char *escaped, const char *prefix, guint width);
/** bj_untrusted_encode_name: A file name for JSON: UTF-8 as it is (controls escaped), else percent-escaped with @encoded TRUE */
char *bj_untrusted_encode_name (const char *bytes, gssize length, gboolean *encoded);

G_END_DECLS
