/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-untrusted.h"

#include <stdio.h>
#include <string.h>

typedef struct
{
  const char *in;
  gssize      length; /* -1: NUL-terminated */
  const char *line;
  const char *block;
} Case;

static const Case cases[] = {
  { "plain text, 100 % [ok]", -1, "plain text, 100 % [ok]", "plain text, 100 % [ok]" },
  { "", -1, "", "" },
  { "a\nb", -1, "a\\nb", "a\nb" },
  { "a\tb", -1, "a\\tb", "a       b" },
  { "12345678\tb", -1, "12345678\\tb", "12345678        b" },
  { "a\rb", -1, "a\\x0db", "a\\x0db" },
  { "a\r\nb", -1, "a\\x0d\\nb", "a\\x0d\nb" },
  { "\x1b[31mred\x07", -1, "\\x1b[31mred\\x07", "\\x1b[31mred\\x07" },
  { "a\0b", 3, "a\\x00b", "a\\x00b" },
  { "\x7f", -1, "\\x7f", "\\x7f" },
  { "\xc2\x85", -1, "\\u{85}", "\\u{85}" },     /* next line, a C1 control */
  { "\xc2\x9b" "31m", -1, "\\u{9b}31m", "\\u{9b}31m" },
  { "\x9b", -1, "\\x9b", "\\x9b" },             /* a raw C1 byte */
  { "\xff\xfe", -1, "\\xff\\xfe", "\\xff\\xfe" },
  { "\xc0\xaf", -1, "\\xc0\\xaf", "\\xc0\\xaf" },                 /* overlong */
  { "\xed\xa0\x80", -1, "\\xed\\xa0\\x80", "\\xed\\xa0\\x80" },   /* surrogate */
  { "\xf4\x90\x80\x80", -1, "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80" },
  { "cut \xe2\x82", -1, "cut \\xe2\\x82", "cut \\xe2\\x82" },
  { "Grüße, 日本語, Ελλάδα, 100 €", -1, "Grüße, 日本語, Ελλάδα, 100 €", "Grüße, 日本語, Ελλάδα, 100 €" },
  { "e\xcc\x81", -1, "e\xcc\x81", "e\xcc\x81" },                          /* one mark on a base */
  { "\xcc\x81", -1, "\\u{301}", "\\u{301}" },                             /* a mark on nothing */
  { " \xcc\x81", -1, " \\u{301}", " \\u{301}" },
  { "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81", -1, "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\\u{301}\\u{301}",
    "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\\u{301}\\u{301}" },
  { "e\xcc\x81\xef\xb8\x8f\xcc\x81", -1, "e\xcc\x81\\u{fe0f}\\u{301}", "e\xcc\x81\\u{fe0f}\\u{301}" }, /* none on our own brace */
  { "e\xe2\x83\x9d", -1, "e\\u{20dd}", "e\\u{20dd}" },                    /* enclosing circle */
  { "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", -1, "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
    "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab" },                             /* decomposed Korean */
  /* the backslash */
  { "grep '\\.c$' C:\\dir", -1, "grep '\\.c$' C:\\dir", "grep '\\.c$' C:\\dir" },
  { "\\n", -1, "\\\\n", "\\n" },
  { "\\x1b", -1, "\\\\x1b", "\\\\x1b" },
  { "\\x1B", -1, "\\x1B", "\\x1B" },
  { "\\xyz", -1, "\\xyz", "\\xyz" },
  { "\\u{202e}", -1, "\\\\u{202e}", "\\\\u{202e}" },
  { "\\users", -1, "\\users", "\\users" },
  { "\\\\", -1, "\\\\\\", "\\\\\\" },
  { "\\\x1b", -1, "\\\\\\x1b", "\\\\\\x1b" },
  { "\\\xff", -1, "\\\\\\xff", "\\\\\\xff" },
  { "\\\xcc\x81", -1, "\\\\\\u{301}", "\\\\\\u{301}" },
  { "\\\n", -1, "\\\\\\n", "\\\n" },
};

/* Code points that must never get through, each by its range's ends. */
static const gunichar hidden[] = {
  0x00ad, 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x180f, 0x200b, 0x200c, 0x200d, 0x200e,
  0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2061, 0x2064, 0x2066, 0x2067, 0x2068,
  0x2069, 0x206a, 0x206f, 0x2800, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xfffb, 0xfffc, 0xffff, 0x1d159,
  0x1d173, 0x1d17a, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef, 0xf0000, 0x10fffd, 0x10ffff, 0xe000, 0xf8ff,
  0x00a0, 0x1680, 0x2000, 0x200a, 0x202f, 0x205f, 0x3000, 0x0085, 0xfdd0, 0x0378, 0x13441, 0x16fe4,
};

static void
test_escape (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *line = bj_untrusted_escape (cases[i].in, cases[i].length, 0);
      g_autofree char *block = bj_untrusted_escape_block (cases[i].in, cases[i].length, 0);
      g_autofree char *tail = bj_untrusted_escape_tail (cases[i].in, cases[i].length, 0);
      g_autofree char *line_again = bj_untrusted_clean (line, FALSE, 0);
      g_autofree char *block_again = bj_untrusted_clean (block, TRUE, 0);

      g_assert_cmpstr (line, ==, cases[i].line);
      g_assert_cmpstr (block, ==, cases[i].block);
      g_assert_cmpstr (tail, ==, cases[i].block);
      g_assert_cmpstr (line_again, ==, line);
      g_assert_cmpstr (block_again, ==, block);
    }
}

static void
test_hidden (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (hidden); i++)
    {
      char bytes[8] = "a";
      int length = 1 + g_unichar_to_utf8 (hidden[i], bytes + 1);
      g_autofree char *line = bj_untrusted_escape (bytes, length, 0);
      g_autofree char *expected = g_strdup_printf ("a\\u{%x}", hidden[i]);

      g_assert_cmpstr (line, ==, expected);
    }
}

/* Every code point alone: either it stays and is of an allowed kind, or it is gone without a trace of its bytes. */
static void
test_every_code_point (void)
{
  for (gunichar c = 1; c <= 0x10ffff; c++)
    {
      char bytes[8] = "a";
      int length = 1 + g_unichar_to_utf8 (c, bytes + 1);
      g_autofree char *out = NULL;

      if (c >= 0xd800 && c <= 0xdfff)
        continue;
      out = bj_untrusted_escape_block (bytes, length, 0);
      g_assert_true (g_utf8_validate (out, -1, NULL));
      if (strlen (out) == (gsize) length && memcmp (out, bytes, (gsize) length) == 0)
        g_assert_true (c == '\n' || (g_unichar_isprint (c) && !(g_unichar_isspace (c) && c != ' ')));
      else
        for (const char *p = out; *p != '\0'; p++)
          g_assert_true (*p >= ' ' && *p < 0x7f);
    }
}

/* Reads escaped text back; what comes out must be what went in. */
static GString *
decode (const char *text, gboolean block)
{
  GString *out = g_string_new (NULL);

  while (*text != '\0')
    {
      guint value = 0;
      int used = 0;

      if (text[0] == '\\' && text[1] == '\\')
        {
          g_string_append_c (out, '\\');
          text += 2;
        }
      else if (!block && text[0] == '\\' && (text[1] == 'n' || text[1] == 't'))
        {
          g_string_append_c (out, text[1] == 'n' ? '\n' : '\t');
          text += 2;
        }
      else if (text[0] == '\\' && text[1] == 'x' && strspn (text + 2, "0123456789abcdef") >= 2
               && sscanf (text, "\\x%2x", &value) == 1)
        {
          g_string_append_c (out, (char) value);
          text += 4;
        }
      else if (sscanf (text, "\\u{%x}%n", &value, &used) == 1 && used > 0)
        {
          g_string_append_unichar (out, value);
          text += used;
        }
      else
        {
          g_string_append_c (out, *text++);
        }
    }
  return out;
}

static void
test_injective (void)
{
  static const char *const pieces[] = { "\\", "\\\\", "x", "1b", "\x1b", "n", "\n", "u", "{", "}", "202e", "\xe2\x80\xae",
                                        "\xff", "\xcc\x81", "a", " ", "u{", "\\u{", "\\x", "t", "A" };
  const guint n = G_N_ELEMENTS (pieces);

  for (guint i = 0; i < n * n * n * n; i++)
    {
      g_autofree char *in = g_strconcat (pieces[i % n], pieces[i / n % n], pieces[i / n / n % n],
                                         pieces[i / n / n / n % n], NULL);
      g_autofree char *line = bj_untrusted_escape (in, -1, 0);
      g_autofree char *block = bj_untrusted_escape_block (in, -1, 0);
      g_autoptr(GString) line_back = decode (line, FALSE);
      g_autoptr(GString) block_back = decode (block, TRUE);

      g_assert_cmpstr (line_back->str, ==, in);
      g_assert_cmpstr (block_back->str, ==, in);
    }
}

static void
test_caps (void)
{
  static const char *const texts[] = { "abc\x1b\x1b\x1b" "def\xe2\x80\xae" "ghi", "日本語日本語日本語", "\\x1b\\x1b\\x1b\\x1b\\x1b",
                                       "e\xcc\x81" "e\xcc\x81" "e\xcc\x81", "\xff\xff\xff\xff\xff\xff" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autofree char *whole = bj_untrusted_escape (texts[i], -1, 0);

      for (gsize cap = 1; cap < strlen (whole) + 3; cap++)
        {
          g_autofree char *head = bj_untrusted_escape (texts[i], -1, cap);
          g_autofree char *tail = bj_untrusted_escape_tail (texts[i], -1, cap);
          gboolean cut = FALSE;
          g_autofree char *again = bj_untrusted_cut (whole, cap, &cut);

          g_assert_cmpuint (strlen (head), <=, cap);
          g_assert_cmpuint (strlen (tail), <=, cap);
          g_assert_true (g_utf8_validate (head, -1, NULL) && g_utf8_validate (tail, -1, NULL));
          g_assert_cmpint (cut, ==, strlen (whole) > cap);
          g_assert_cmpstr (again, ==, head);
          if (cap >= strlen (whole))
            {
              g_assert_cmpstr (head, ==, whole);
              g_assert_cmpstr (tail, ==, whole);
            }
          else if (cap >= 3)
            {
              g_autofree char *kept = g_strndup (head, strlen (head) - 3);
              g_autoptr(GString) back = decode (kept, FALSE);
              g_autoptr(GString) tail_back = decode (tail + 3, FALSE);

              g_assert_true (g_str_has_suffix (head, "…") && g_str_has_prefix (tail, "…"));
              g_assert_true (g_str_has_prefix (texts[i], back->str) && g_str_has_suffix (texts[i], tail_back->str));
            }
        }
    }
}

static void
test_big (void)
{
  gsize size = 32 * 1024 * 1024;
  g_autofree char *big = g_malloc (size);
  g_autofree char *head = NULL;
  g_autofree char *tail = NULL;

  memset (big, 0x1b, size);
  big[size - 1] = 'z';
  head = bj_untrusted_escape (big, (gssize) size, 4096);
  tail = bj_untrusted_escape_tail (big, (gssize) size, 4096);
  g_assert_cmpuint (strlen (head), ==, 4095); /* 1,023 escapes and the mark of the cut */
  g_assert_true (g_str_has_suffix (tail, "\\x1bz"));
  g_assert_cmpuint (strlen (tail), <=, 4096);
}

static const struct { const char *in, *prefix; guint width; const char *out; } folds[] = {
  { "", "| ", 40, "" },
  { "one", "| ", 40, "| one\n" },
  { "one\ntwo\n", "| ", 40, "| one\n| two\n" },
  { "one\n\n\ntwo", "| ", 40, "| one\n| \n| \n| two\n" },
  { "aaaa bbbb cccc dddd eeee", "| ", 20, "| aaaa bbbb cccc \n| dddd eeee\n" },
  { "aaaaaaaaaaaaaaaaaaaaaaaa", "| ", 20, "| aaaaaaaaaaaaaaaaa\n| aaaaaaa\n" },
  { "日本語日本語日本語", "| ", 20, "| 日本語日本語日本\n| 語\n" },
  { "aaaaaaaaaaaaaaa\\u{202e}b", "| ", 20, "| aaaaaaaaaaaaaaa\n| \\u{202e}b\n" },
  { "raw \x1b and \r", "> ", 40, "> raw \\x1b and \\x0d\n" },
  { "narrow", "| ", 1, "| narrow\n" },
};

static void
test_fold (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (folds); i++)
    {
      g_autofree char *out = bj_untrusted_fold (folds[i].in, folds[i].prefix, folds[i].width);

      g_assert_cmpstr (out, ==, folds[i].out);
    }
}

/* Every line has the prefix and takes fewer columns than the terminal has. */
static void
test_fold_random (void)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed (7);

  for (guint round = 0; round < 2000; round++)
    {
      guint8 bytes[300];
      g_autofree char *escaped = NULL;
      g_autofree char *out = NULL;
      g_auto(GStrv) lines = NULL;

      for (guint i = 0; i < sizeof bytes; i++)
        bytes[i] = (guint8) g_rand_int_range (rand, 0, round % 2 == 0 ? 256 : 128);
      escaped = bj_untrusted_escape_block ((const char *) bytes, sizeof bytes, 0);
      out = bj_untrusted_fold (escaped, "| ", 30);
      lines = g_strsplit (out, "\n", -1);
      for (guint i = 0; lines[i] != NULL && (lines[i + 1] != NULL || *lines[i] != '\0'); i++)
        {
          g_assert_true (g_str_has_prefix (lines[i], "| "));
          g_assert_cmpuint (bj_untrusted_columns (lines[i]), <, 30);
        }
    }
}

static const struct { const char *in; gssize length; const char *out; gboolean encoded; } names[] = {
  { "src/main.c", -1, "src/main.c", FALSE },
  { "ä b", -1, "ä b", FALSE },
  { "new\nline", -1, "new\\nline", FALSE },
  { "\x1b[2J", -1, "\\x1b[2J", FALSE },
  { "100%", -1, "100%", FALSE },
  { "100%\xff", -1, "100%25%FF", TRUE },
  { "\xc3\xa4\xff\n", -1, "%C3%A4%FF%0A", TRUE },
  { "", 0, "", FALSE },
};

static void
test_names (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      gboolean encoded = !names[i].encoded;
      g_autofree char *out = bj_untrusted_encode_name (names[i].in, names[i].length, &encoded);

      g_assert_cmpstr (out, ==, names[i].out);
      g_assert_cmpint (encoded, ==, names[i].encoded);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/untrusted/escape", test_escape);
  g_test_add_func ("/untrusted/hidden", test_hidden);
  g_test_add_func ("/untrusted/every-code-point", test_every_code_point);
  g_test_add_func ("/untrusted/injective", test_injective);
  g_test_add_func ("/untrusted/caps", test_caps);
  g_test_add_func ("/untrusted/big", test_big);
  g_test_add_func ("/untrusted/fold", test_fold);
  g_test_add_func ("/untrusted/fold-random", test_fold_random);
  g_test_add_func ("/untrusted/names", test_names);
  return g_test_run ();
}
