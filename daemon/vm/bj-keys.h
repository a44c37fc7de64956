/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What a keyboard can say, as QEMU's names of keys. Pure. A keyboard has no letters but places: this is a US one. */

#define BJ_KEYS_HELD_MAX 6
#define BJ_KEYS_TEXT_MAX 2000 /* characters of one text */
#define BJ_KEYS_CHORDS_MAX 100 /* of one list */

/* Keys that are held together, in the order they are pressed. */
typedef struct
{
  const char *keys[BJ_KEYS_HELD_MAX + 1]; /* (transfer none): %NULL-terminated */
} BjChord;

/**
 * bj_keys_from_text:
 * @text: UTF-8; a newline is the Return key, a tab the Tab key
 *
 * Returns: (transfer full) (element-type BjChord): or BJ_ERROR_INVALID that names the first character that has no key
 */
GArray *bj_keys_from_text (const char *text, GError **error);

/**
 * bj_keys_parse:
 * @keys: UTF-8: one or more of "Return", "F5", "x", "ctrl+alt+F2", separated by spaces; case matters only for a letter that
 *   stands alone
 *
 * Returns: (transfer full) (element-type BjChord): or BJ_ERROR_INVALID that names what is no key
 */
GArray *bj_keys_parse (const char *keys, GError **error);

G_END_DECLS
