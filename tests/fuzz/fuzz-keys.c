/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fuzz.h"

#include "bj-error.h"
#include "bj-keys.h"

static void
check (GArray *chords, guint max, GError *error)
{
  g_assert_true ((chords == NULL) == (error != NULL));
  for (guint i = 0; chords != NULL && i < chords->len; i++)
    {
      guint n = g_strv_length ((GStrv) g_array_index (chords, BjChord, i).keys);

      g_assert_cmpuint (n, >=, 1);
      g_assert_cmpuint (n, <=, BJ_KEYS_HELD_MAX);
    }
  g_assert_cmpuint (chords != NULL ? chords->len : 0, <=, max);
}

/* The input is a text to type, and once more a list of keys. */
int
LLVMFuzzerTestOneInput (const guint8 *data, size_t size)
{
  g_autofree char *text = g_utf8_make_valid ((const char *) data, (gssize) size);
  g_autoptr(GError) text_error = NULL;
  g_autoptr(GError) keys_error = NULL;
  g_autoptr(GArray) typed = bj_keys_from_text (text, &text_error);
  g_autoptr(GArray) pressed = bj_keys_parse (text, &keys_error);

  check (typed, BJ_KEYS_TEXT_MAX, text_error);
  check (pressed, BJ_KEYS_CHORDS_MAX, keys_error);
  return 0;
}
