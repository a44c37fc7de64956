/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-keys.h"

#include <string.h>

static char *
describe (GArray *chords)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < chords->len; i++)
    {
      g_autofree char *chord = g_strjoinv ("+", (char **) g_array_index (chords, BjChord, i).keys);

      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", chord);
    }
  return g_string_free (text, FALSE);
}

static void
test_text (void)
{
  static const struct
  {
    const char *text, *expected;
  } rows[] = {
    { "aB3", "a shift+b 3" },
    { "ls -l | wc\n", "l s spc minus l spc shift+backslash spc w c ret" },
    { "~`!{}\t", "shift+grave_accent grave_accent shift+1 shift+bracket_left shift+bracket_right tab" },
    { "", "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(GArray) chords = bj_keys_from_text (rows[i].text, &error);
      g_autofree char *text = NULL;

      g_assert_no_error (error);
      text = describe (chords);
      g_assert_cmpstr (text, ==, rows[i].expected);
    }
}

/* Each printable character of ASCII has a key, and no two have the same. */
static void
test_all_characters (void)
{
  g_autoptr(GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (char c = ' '; c <= '~'; c++)
    {
      const char text[] = { c, '\0' };
      g_autoptr(GArray) chords = bj_keys_from_text (text, NULL);

      g_test_message ("%s", text);
      g_assert_nonnull (chords);
      g_assert_cmpuint (chords->len, ==, 1);
      g_assert_true (g_hash_table_add (seen, describe (chords)));
    }
  g_assert_cmpuint (g_hash_table_size (seen), ==, 95);
}

static void
test_untypable (void)
{
  static const struct
  {
    const char *text, *named;
  } rows[] = { { "gr\303\274n", "“ü” (U+00FC)" }, { "a\033[m", "U+001B" }, { "x\342\200\256", "U+202E" }, { "\r", "U+000D" } };
  g_autofree char *longest = g_strnfill (BJ_KEYS_TEXT_MAX, 'x');
  g_autofree char *longer = g_strnfill (BJ_KEYS_TEXT_MAX + 1, 'x');
  g_autoptr(GArray) fits = bj_keys_from_text (longest, NULL);
  g_autoptr(GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GError) local = NULL;

      g_assert_null (bj_keys_from_text (rows[i].text, &local));
      g_assert_error (local, BJ_ERROR, BJ_ERROR_INVALID);
      g_test_message ("%s", local->message);
      g_assert_nonnull (strstr (local->message, rows[i].named));
    }
  g_assert_cmpuint (fits->len, ==, BJ_KEYS_TEXT_MAX);
  g_assert_null (bj_keys_from_text (longer, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

static void
test_parse (void)
{
  static const struct
  {
    const char *keys, *expected; /* or %NULL: an error with the next */
    const char *named;
  } rows[] = {
    { "Return", "ret", NULL },
    { "ctrl+alt+F2", "ctrl+alt+f2", NULL },
    { " Ctrl+C\tCTRL+c ", "ctrl+c ctrl+c", NULL },
    { "A a", "shift+a a", NULL },
    { "ctrl+shift+A", "ctrl+shift+a", NULL },
    { "ctrl++ + ctrl+plus", "ctrl+shift+equal shift+equal ctrl+shift+equal", NULL },
    { "ctrl+-", "ctrl+minus", NULL },
    { "Page_Down pgup super", "pgdn pgup meta_l", NULL },
    { "ctrl+ctrl+x", "ctrl+x", NULL },
    { "", NULL, "1 to 100" },
    { "  ", NULL, "1 to 100" },
    { "ctrl+", NULL, "“” is no key" },
    { "ctrl+Fly", NULL, "“Fly” is no key" },
    { "ctrl+alt+shift+super+a+b+c", NULL, "At most 6" },
    { "\303\274", NULL, "“ü” is no key" },
  };
  g_autofree char *many = g_strnfill (2 * BJ_KEYS_CHORDS_MAX, 'x');
  g_autoptr(GArray) fits = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(GArray) chords = bj_keys_parse (rows[i].keys, &error);
      g_autofree char *text = chords != NULL ? describe (chords) : NULL;

      g_test_message ("%s", rows[i].keys);
      g_assert_cmpstr (text, ==, rows[i].expected);
      if (rows[i].named != NULL)
        g_assert_nonnull (strstr (error->message, rows[i].named));
    }
  for (guint i = 1; i < strlen (many); i += 2)
    many[i] = ' ';
  fits = bj_keys_parse (many, NULL);
  g_assert_cmpuint (fits->len, ==, BJ_KEYS_CHORDS_MAX);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/keys/text", test_text);
  g_test_add_func ("/keys/all-characters", test_all_characters);
  g_test_add_func ("/keys/untypable", test_untypable);
  g_test_add_func ("/keys/parse", test_parse);
  return g_test_run ();
}
