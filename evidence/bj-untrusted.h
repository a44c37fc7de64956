/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * Text from a guest, a model or a stranger. Bytes until proven text: code points come from an allow-list (letters, up to four
 * marks on each, numbers, punctuation, symbols, the space U+0020). Everything else is made visible: \xNN for a byte that is no UTF-8 and
 * for an ASCII control, \u{NNNN} for a code point, and in the line form \n and \t.
 *
 * What came in can be told from what came out: a backslash is doubled exactly where it would otherwise read as an escape, that is before
 * \, xHH (two lower-case hexadecimal digits), u{, in the line form n and t, and before a character that is itself escaped.
 * Other backslashes stay as they are, so that most commands look as they were written.
 *
 * A cap counts bytes after escaping, with the "…" that marks the cut, and never splits an escape; 0 means no cap. A negative
 * @length means that @bytes ends at a NUL.
 */

/** bj_untrusted_escape: One line: newlines become \n too. Returns: (transfer full) */
char *bj_untrusted_escape (const char *bytes, gssize length, gsize cap);
/** bj_untrusted_escape_block: Several lines: newlines stay, tabs become spaces, carriage returns are made visible. */
char *bj_untrusted_escape_block (const char *bytes, gssize length, gsize cap);
/** bj_untrusted_escape_tail: Like the block form but keeps the end when it has to cut. */
char *bj_untrusted_escape_tail (const char *bytes, gssize length, gsize cap);
/**
 * bj_untrusted_clean:
 * @block: whether newlines stay
 *
 * For text that should be escaped already but comes from elsewhere: leaves backslashes alone, so that it changes nothing
 * in what the functions above made.
 */
char *bj_untrusted_clean (const char *escaped, gboolean block, gsize cap);
/**
 * bj_untrusted_cut:
 * @cut: (out) (optional): whether something was left out
 *
 * The first @cap bytes of what is escaped already. The answer depends on no Unicode version.
 */
char *bj_untrusted_cut (const char *escaped, gsize cap, gboolean *cut);
/**
 * bj_untrusted_fold:
 * @escaped: escaped text; cleaned once more
 * @width: columns of the terminal; 0 means 80
 *
 * Splits at newlines and before @width columns, preferably at spaces, and puts @prefix before every line; each ends with a newline. A
 * character that some terminals draw wide counts as wide, so that none wraps by itself: nothing ever stands in column 0.
 */
char *bj_untrusted_fold (const char *escaped, const char *prefix, guint width);
/** bj_untrusted_columns: How many columns @text may take on a terminal, at most */
guint bj_untrusted_columns (const char *text);
/** bj_untrusted_encode_name: A file name for JSON: UTF-8 as it is (controls escaped), else percent-escaped with @encoded TRUE */
char *bj_untrusted_encode_name (const char *bytes, gssize length, gboolean *encoded);

G_END_DECLS
