/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-keys.h"

#include "bj-error.h"

#include <string.h>

#define SHIFT "shift"
#define SHOWN_MAX 32 /* characters of a wrong name in a message */

/* The places of a US keyboard: what each gives alone and with shift. */
static const struct
{
  const char *key;
  char plain;
  char shifted;
} places[] = {
  { "1", '1', '!' },            { "2", '2', '@' },          { "3", '3', '#' },         { "4", '4', '$' },
  { "5", '5', '%' },            { "6", '6', '^' },          { "7", '7', '&' },         { "8", '8', '*' },
  { "9", '9', '(' },            { "0", '0', ')' },          { "minus", '-', '_' },     { "equal", '=', '+' },
  { "bracket_left", '[', '{' }, { "bracket_right", ']', '}' }, { "semicolon", ';', ':' }, { "apostrophe", '\'', '"' },
  { "grave_accent", '`', '~' }, { "backslash", '\\', '|' }, { "comma", ',', '<' },     { "dot", '.', '>' },
  { "slash", '/', '?' },        { "spc", ' ', '\0' },       { "ret", '\n', '\0' },     { "tab", '\t', '\0' },
};

static const char *const letters[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
                                       "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z" };

/* What people and models call keys, beside the characters themselves. */
static const struct
{
  const char *name;
  const char *key;
} names[] = {
  { "ctrl", "ctrl" },           { "control", "ctrl" },        { "alt", "alt" },             { "altgr", "alt_r" },
  { "shift", "shift" },         { "super", "meta_l" },        { "win", "meta_l" },          { "meta", "meta_l" },
  { "cmd", "meta_l" },          { "return", "ret" },          { "enter", "ret" },           { "ret", "ret" },
  { "escape", "esc" },          { "esc", "esc" },             { "tab", "tab" },             { "space", "spc" },
  { "spacebar", "spc" },        { "backspace", "backspace" }, { "delete", "delete" },       { "del", "delete" },
  { "insert", "insert" },       { "ins", "insert" },          { "home", "home" },           { "end", "end" },
  { "pageup", "pgup" },         { "page_up", "pgup" },        { "pgup", "pgup" },           { "prior", "pgup" },
  { "pagedown", "pgdn" },       { "page_down", "pgdn" },      { "pgdn", "pgdn" },           { "next", "pgdn" },
  { "up", "up" },               { "down", "down" },           { "left", "left" },           { "right", "right" },
  { "f1", "f1" },               { "f2", "f2" },               { "f3", "f3" },               { "f4", "f4" },
  { "f5", "f5" },               { "f6", "f6" },               { "f7", "f7" },               { "f8", "f8" },
  { "f9", "f9" },               { "f10", "f10" },             { "f11", "f11" },             { "f12", "f12" },
  { "capslock", "caps_lock" },  { "caps_lock", "caps_lock" }, { "numlock", "num_lock" },    { "num_lock", "num_lock" },
  { "scrolllock", "scroll_lock" }, { "scroll_lock", "scroll_lock" }, { "print", "print" },  { "printscreen", "print" },
  { "pause", "pause" },         { "menu", "compose" },        { "minus", "minus" },         { "equal", "equal" },
  { "comma", "comma" },         { "period", "dot" },          { "dot", "dot" },             { "slash", "slash" },
  { "backslash", "backslash" }, { "semicolon", "semicolon" }, { "apostrophe", "apostrophe" }, { "grave", "grave_accent" },
};

/* Returns: (nullable): the place that gives @c */
static const char *
find_place (char c, gboolean *shifted)
{
  *shifted = g_ascii_isupper (c);
  if (g_ascii_isalpha (c))
    return letters[g_ascii_tolower (c) - 'a'];
  for (guint i = 0; c != '\0' && i < G_N_ELEMENTS (places); i++)
    if (places[i].plain == c || places[i].shifted == c)
      {
        *shifted = places[i].shifted == c;
        return places[i].key;
      }
  return NULL;
}

/* Returns: whether there was room; a key that is held already stays so */
static gboolean
hold (BjChord *chord, const char *key)
{
  guint n = 0;

  for (; chord->keys[n] != NULL; n++)
    if (g_str_equal (chord->keys[n], key))
      return TRUE;
  if (n >= BJ_KEYS_HELD_MAX)
    return FALSE;
  chord->keys[n] = key;
  return TRUE;
}

static gboolean
hold_character (BjChord *chord, char c)
{
  gboolean shifted;
  const char *key = find_place (c, &shifted);

  return key != NULL && (!shifted || hold (chord, SHIFT)) && hold (chord, key);
}

static char *
describe_character (const char *at)
{
  gunichar c = g_utf8_get_char (at);

  if (g_unichar_isprint (c))
    return g_strdup_printf ("“%.*s” (U+%04X)", (int) (g_utf8_next_char (at) - at), at, c);
  return g_strdup_printf ("U+%04X", c);
}

GArray *
bj_keys_from_text (const char *text, GError **error)
{
  g_autoptr(GArray) chords = g_array_new (FALSE, TRUE, sizeof (BjChord));

  if (g_utf8_strlen (text, -1) > BJ_KEYS_TEXT_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "At most %d characters are typed at once; put longer text into a file",
                    BJ_KEYS_TEXT_MAX);
      return NULL;
    }
  for (const char *at = text; *at != '\0'; at = g_utf8_next_char (at))
    {
      BjChord chord = { { NULL } };

      if (!hold_character (&chord, *at))
        {
          g_autofree char *shown = describe_character (at);

          bj_error_set (error, BJ_ERROR_INVALID,
                        "The character %s cannot be typed: a US keyboard has no key for it. Nothing was typed.", shown);
          return NULL;
        }
      g_array_append_val (chords, chord);
    }
  return g_steal_pointer (&chords);
}

static gboolean
hold_name (BjChord *chord, const char *name, GError **error)
{
  gboolean alone = chord->keys[0] == NULL;
  gboolean shifted;
  gsize shown = MIN (strlen (name), SHOWN_MAX);
  g_autofree char *valid = g_utf8_make_valid (name, (gssize) shown);
  const char *key = NULL;
  char c = g_ascii_strcasecmp (name, "plus") == 0 ? '+' : strlen (name) == 1 ? *name : '\0';

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_ascii_strcasecmp (names[i].name, name) == 0)
      key = names[i].key;
  if (key == NULL && find_place (c, &shifted) == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "“%s” is no key. Keys are for example a, Return, Escape, Tab, BackSpace, Delete, Up, Page_Down, F1 to "
                         "F12, ctrl+c, ctrl+alt+F2, super", valid);
  /* "ctrl+C" means the key C; only alone a large letter is one. */
  if (key != NULL ? hold (chord, key) : hold_character (chord, alone ? c : g_ascii_tolower (c)))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "At most %d keys are held together", BJ_KEYS_HELD_MAX);
}

/* "ctrl++" is ctrl and plus, "+" is plus. */
static gboolean
parse_chord (const char *word, BjChord *chord, GError **error)
{
  g_autofree char *plain = g_strdup (word);
  gboolean plus = g_str_equal (word, "+") || g_str_has_suffix (word, "++");
  g_auto(GStrv) parts = NULL;

  *chord = (BjChord) { { NULL } };
  if (plus)
    plain[strlen (plain) - (g_str_equal (word, "+") ? 1 : 2)] = '\0';
  parts = g_strsplit (plain, "+", BJ_KEYS_HELD_MAX + 2);
  for (guint i = 0; parts[i] != NULL; i++)
    if (!hold_name (chord, parts[i], error))
      return FALSE;
  return !plus || hold_name (chord, "plus", error);
}

GArray *
bj_keys_parse (const char *keys, GError **error)
{
  g_autoptr(GArray) chords = g_array_new (FALSE, TRUE, sizeof (BjChord));
  g_auto(GStrv) words = g_strsplit_set (keys, " \t\n", -1);

  for (guint i = 0; words[i] != NULL; i++)
    {
      BjChord chord;

      if (*words[i] == '\0')
        continue;
      if (!parse_chord (words[i], &chord, error))
        return NULL;
      g_array_append_val (chords, chord);
    }
  if (chords->len > 0 && chords->len <= BJ_KEYS_CHORDS_MAX)
    return g_steal_pointer (&chords);
  bj_error_set (error, BJ_ERROR_INVALID, "1 to %d keys or combinations of keys can be pressed at once", BJ_KEYS_CHORDS_MAX);
  return NULL;
}
