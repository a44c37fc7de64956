/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-untrusted.h"

#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"
#define MARKS_MAX 4
#define TAB_STOP 8
#define FOLD_WIDTH 80
#define FOLD_ROOM_MIN 16

typedef struct
{
  gboolean block;  /* newlines stay */
  gboolean clean;  /* escapes stay as they are */
  guint    column; /* for tabs */
  gboolean base;   /* a mark may follow */
  guint    marks;  /* on this base so far */
} Escaper;

/* Assigned, of an allowed category, and yet drawn as nothing or as a change of what is beside them. */
static const struct { gunichar first, last; } denied[] = {
  { 0x034f, 0x034f },   /* combining grapheme joiner */
  { 0x115f, 0x1160 },   /* Hangul fillers */
  { 0x17b4, 0x17b5 },   /* Khmer inherent vowels */
  { 0x180b, 0x180f },   /* Mongolian variation selectors */
  { 0x2800, 0x2800 },   /* Braille blank */
  { 0x3164, 0x3164 },   /* Hangul filler */
  { 0xfe00, 0xfe0f },   /* variation selectors */
  { 0xffa0, 0xffa0 },   /* half-width Hangul filler */
  { 0xfff0, 0xfffc },   /* specials, object replacement */
  { 0x13441, 0x13442 }, /* hieroglyphic blanks */
  { 0x16fe4, 0x16fe4 }, /* Khitan filler */
  { 0x1d159, 0x1d159 }, /* null notehead */
  { 0xe0000, 0xe0fff }, /* tags, more variation selectors */
};

static gboolean
is_jamo (gunichar c)
{
  return (c >= 0x1161 && c <= 0x11ff) || (c >= 0xd7b0 && c <= 0xd7ff);
}

/* Conjoining vowels and finals are letters that are drawn into the one before, as marks are. */
static gboolean
is_mark (gunichar c)
{
  GUnicodeType type = g_unichar_type (c);

  return type == G_UNICODE_NON_SPACING_MARK || type == G_UNICODE_SPACING_MARK || is_jamo (c);
}

static gboolean
is_allowed_type (GUnicodeType type)
{
  switch (type)
    {
    case G_UNICODE_LOWERCASE_LETTER:
    case G_UNICODE_MODIFIER_LETTER:
    case G_UNICODE_OTHER_LETTER:
    case G_UNICODE_TITLECASE_LETTER:
    case G_UNICODE_UPPERCASE_LETTER:
    case G_UNICODE_NON_SPACING_MARK:
    case G_UNICODE_SPACING_MARK:
    case G_UNICODE_DECIMAL_NUMBER:
    case G_UNICODE_LETTER_NUMBER:
    case G_UNICODE_OTHER_NUMBER:
    case G_UNICODE_CONNECT_PUNCTUATION:
    case G_UNICODE_DASH_PUNCTUATION:
    case G_UNICODE_CLOSE_PUNCTUATION:
    case G_UNICODE_FINAL_PUNCTUATION:
    case G_UNICODE_INITIAL_PUNCTUATION:
    case G_UNICODE_OTHER_PUNCTUATION:
    case G_UNICODE_OPEN_PUNCTUATION:
    case G_UNICODE_CURRENCY_SYMBOL:
    case G_UNICODE_MODIFIER_SYMBOL:
    case G_UNICODE_MATH_SYMBOL:
    case G_UNICODE_OTHER_SYMBOL:
      return TRUE;
    default:
      return FALSE;
    }
}

static gboolean
is_allowed (gunichar c)
{
  if (c == ' ')
    return TRUE;
  if (!is_allowed_type (g_unichar_type (c)) || (g_unichar_iszerowidth (c) && !is_mark (c)))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (denied); i++)
    if (c >= denied[i].first && c <= denied[i].last)
      return FALSE;
  return TRUE;
}

static guint
columns_of (gunichar c)
{
  if (is_jamo (c) || g_unichar_type (c) == G_UNICODE_NON_SPACING_MARK)
    return 0;
  if (g_unichar_iswide_cjk (c) || (c >= 0x2190 && g_unichar_type (c) == G_UNICODE_OTHER_SYMBOL))
    return 2;
  return 1;
}

static gboolean
is_hex (char c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* How long the escape is that @text begins with, or 0. */
static gsize
escape_length (const char *text, gsize left, gboolean block)
{
  gsize n = 3;

  if (left < 2 || text[0] != '\\')
    return 0;
  if (text[1] == '\\' || (!block && (text[1] == 'n' || text[1] == 't')))
    return 2;
  if (text[1] == 'x' && left >= 4 && is_hex (text[2]) && is_hex (text[3]))
    return 4;
  if (text[1] != 'u' || left < 4 || text[2] != '{')
    return 0;
  while (n < left && n < 9 && is_hex (text[n]))
    n++;
  return n > 3 && n < left && text[n] == '}' ? n + 1 : 0;
}

/* The code point at @text, or (gunichar) -1 when it is no UTF-8. */
static gunichar
decode (const char *text, gsize left, gsize *length)
{
  gunichar c;

  if (*text == '\0')
    {
      *length = 1;
      return 0;
    }
  c = g_utf8_get_char_validated (text, (gssize) MIN (left, 6));
  if (c == (gunichar) -1 || c == (gunichar) -2)
    {
      *length = 1;
      return (gunichar) -1;
    }
  *length = (gsize) g_unichar_to_utf8 (c, NULL);
  return c;
}

/* Whether @c may stand for itself after what came before it. */
static gboolean
stays (const Escaper *self, gunichar c)
{
  if (c == (gunichar) -1 || !is_allowed (c))
    return FALSE;
  return !is_mark (c) || (self->base && self->marks < MARKS_MAX);
}

static gboolean
backslash_needs_double (const Escaper *self, const char *text, gsize left)
{
  gsize length;
  gunichar next;

  if (left < 2)
    return FALSE;
  if (text[1] == '\\' || (text[1] == 'u' && left > 2 && text[2] == '{'))
    return TRUE;
  if (escape_length (text, left, self->block) > 0)
    return TRUE;
  if (self->block && (text[1] == '\n' || text[1] == '\t'))
    return FALSE;
  next = decode (text + 1, left - 1, &length);
  return next == (gunichar) -1 || !is_allowed (next) || is_mark (next);
}

static void
add_escape (Escaper *self, GString *out, const char *text, gunichar c)
{
  gsize before = out->len;

  if (c == (gunichar) -1)
    g_string_append_printf (out, "\\x%02x", (guint) (guchar) *text);
  else if (c == '\n' && !self->block)
    g_string_append (out, "\\n");
  else if (c == '\t' && !self->block)
    g_string_append (out, "\\t");
  else if (c < 0x80)
    g_string_append_printf (out, "\\x%02x", c);
  else
    g_string_append_printf (out, "\\u{%x}", c);
  self->column += (guint) (out->len - before);
  self->base = FALSE; /* also after a mark that is escaped: the next one would be drawn on our own brace */
}

static void
add_plain (Escaper *self, GString *out, gunichar c)
{
  g_string_append_unichar (out, c);
  self->column += columns_of (c);
  if (is_mark (c))
    {
      self->marks++;
      return;
    }
  self->base = c != ' ';
  self->marks = 0;
}

static gsize
add_backslash (Escaper *self, GString *out, const char *text, gsize left)
{
  gsize length = 1;

  if (self->clean)
    {
      length = MAX (escape_length (text, left, self->block), 1);
      g_string_append_len (out, text, (gssize) length);
    }
  else
    {
      g_string_append (out, backslash_needs_double (self, text, left) ? "\\\\" : "\\");
    }
  self->column += 2;
  self->base = FALSE;
  return length;
}

/* Appends the visible form of what @text begins with; returns how many bytes that were. */
static gsize
add_unit (Escaper *self, GString *out, const char *text, gsize left)
{
  gsize length;
  gunichar c = decode (text, left, &length);

  if (c == '\\')
    return add_backslash (self, out, text, left);
  if (c == '\n' && self->block)
    {
      g_string_append_c (out, '\n');
      self->column = 0;
      self->base = FALSE;
      return length;
    }
  if (c == '\t' && self->block)
    {
      do
        add_plain (self, out, ' ');
      while (self->column % TAB_STOP != 0);
      return length;
    }
  if (stays (self, c))
    add_plain (self, out, c);
  else
    add_escape (self, out, text, c);
  return length;
}

static char *
escape_head (Escaper *self, const char *bytes, gssize length, gsize cap)
{
  g_autoptr(GString) out = g_string_new (NULL);
  gsize left = length < 0 ? strlen (bytes) : (gsize) length;
  gsize room = cap > strlen (ELLIPSIS) ? cap - strlen (ELLIPSIS) : 0;
  gsize safe = 0;

  while (left > 0)
    {
      gsize used = add_unit (self, out, bytes, left);

      if (cap > 0 && out->len > cap)
        {
          g_string_truncate (out, safe);
          if (cap >= strlen (ELLIPSIS))
            g_string_append (out, ELLIPSIS);
          break;
        }
      if (out->len <= room)
        safe = out->len;
      bytes += used;
      left -= used;
    }
  return g_string_free (g_steal_pointer (&out), FALSE);
}

char *
bj_untrusted_escape (const char *bytes, gssize length, gsize cap)
{
  Escaper self = { 0 };

  return escape_head (&self, bytes, length, cap);
}

char *
bj_untrusted_escape_block (const char *bytes, gssize length, gsize cap)
{
  Escaper self = { .block = TRUE };

  return escape_head (&self, bytes, length, cap);
}

char *
bj_untrusted_clean (const char *escaped, gboolean block, gsize cap)
{
  Escaper self = { .block = block, .clean = TRUE };

  return escape_head (&self, escaped, -1, cap);
}

char *
bj_untrusted_escape_tail (const char *bytes, gssize length, gsize cap)
{
  Escaper self = { .block = TRUE };
  g_autoptr(GString) out = g_string_new (NULL);
  gsize size = length < 0 ? strlen (bytes) : (gsize) length;
  gsize room = cap > strlen (ELLIPSIS) ? cap - strlen (ELLIPSIS) : 0;
  gsize at = 0, keep = G_MAXSIZE;
  g_autoptr(GArray) starts = g_array_new (FALSE, FALSE, sizeof (gsize));

  /* No unit gets shorter by escaping, so that earlier bytes cannot be needed. */
  if (cap > 0 && size > cap + 6)
    at = size - cap - 6;
  for (guint i = 0; at > 0 && i < 3 && ((guchar) bytes[at] & 0xc0) == 0x80; i++)
    at++;
  if (at == 0)
    keep = 0;
  while (at < size)
    {
      g_array_append_val (starts, out->len);
      at += add_unit (&self, out, bytes + at, size - at);
    }
  if (keep == 0 && (cap == 0 || out->len <= cap))
    return g_string_free (g_steal_pointer (&out), FALSE);
  keep = out->len;
  for (guint i = 0; i < starts->len && keep == out->len; i++)
    if (out->len - g_array_index (starts, gsize, i) <= room)
      keep = g_array_index (starts, gsize, i);
  g_string_erase (out, 0, (gssize) keep);
  if (cap >= strlen (ELLIPSIS))
    g_string_prepend (out, ELLIPSIS);
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* One escape or one code point of escaped text. */
static gsize
unit_length (const char *text, gsize left)
{
  gsize length = escape_length (text, left, FALSE);

  if (length == 0)
    decode (text, left, &length);
  return length;
}

char *
bj_untrusted_cut (const char *escaped, gsize cap, gboolean *cut)
{
  gsize size = strlen (escaped);
  gsize at = 0;

  if (cut != NULL)
    *cut = cap > 0 && size > cap;
  if (cap == 0 || size <= cap)
    return g_strdup (escaped);
  if (cap < strlen (ELLIPSIS))
    return g_strdup ("");
  for (gsize next = 0; next <= cap - strlen (ELLIPSIS); next += unit_length (escaped + next, size - next))
    at = next;
  return g_strdup_printf ("%.*s" ELLIPSIS, (int) at, escaped);
}

guint
bj_untrusted_columns (const char *text)
{
  gsize left = strlen (text);
  guint columns = 0;

  while (left > 0)
    {
      gsize length;
      gunichar c = decode (text, left, &length);

      columns += c == (gunichar) -1 ? 4 : columns_of (c);
      text += length;
      left -= length;
    }
  return columns;
}

static guint
unit_columns (const char *text, gsize length)
{
  return *text == '\\' ? (guint) length : columns_of (g_utf8_get_char (text));
}

/* How many bytes of a line go into @room columns; at least one unit. */
static gsize
line_break (const char *line, gsize length, guint room)
{
  gsize at = 0, space = 0;
  guint column = 0;

  while (at < length)
    {
      gsize unit = unit_length (line + at, length - at);
      guint columns = unit_columns (line + at, unit);

      if (column + columns > room && at > 0)
        return space > 0 ? space : at;
      column += columns;
      at += unit;
      if (line[at - 1] == ' ' && column > room / 2)
        space = at;
    }
  return length;
}

char *
bj_untrusted_fold (const char *escaped, const char *prefix, guint width)
{
  g_autofree char *text = bj_untrusted_clean (escaped, TRUE, 0);
  g_autoptr(GString) out = g_string_new (NULL);
  guint used = bj_untrusted_columns (prefix) + 1; /* a full last column makes some terminals wrap */
  guint columns = width > 0 ? width : FOLD_WIDTH;
  guint room = columns > used + FOLD_ROOM_MIN ? columns - used : FOLD_ROOM_MIN;
  const char *line = text;

  while (*line != '\0')
    {
      gsize length = strcspn (line, "\n");

      do
        {
          gsize part = line_break (line, length, room);

          g_string_append_printf (out, "%s%.*s\n", prefix, (int) part, line);
          line += part;
          length -= part;
        }
      while (length > 0);
      if (*line == '\n')
        line++;
    }
  return g_string_free (g_steal_pointer (&out), FALSE);
}

char *
bj_untrusted_encode_name (const char *bytes, gssize length, gboolean *encoded)
{
  gsize size = length < 0 ? strlen (bytes) : (gsize) length;
  gboolean is_text = g_utf8_validate_len (bytes, size, NULL);
  g_autoptr(GString) out = NULL;

  if (encoded != NULL)
    *encoded = !is_text;
  if (is_text)
    return bj_untrusted_escape (bytes, (gssize) size, 0);
  out = g_string_sized_new (size * 2);
  for (gsize i = 0; i < size; i++)
    {
      guchar c = (guchar) bytes[i];

      if (c >= ' ' && c < 0x7f && c != '%')
        g_string_append_c (out, (char) c);
      else
        g_string_append_printf (out, "%%%02X", (guint) c);
    }
  return g_string_free (g_steal_pointer (&out), FALSE);
}
