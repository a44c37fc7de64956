/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-capture.h"

#include <string.h>

static char *
content (BjCapture *capture)
{
  g_autoptr(GBytes) bytes = bj_capture_dup_bytes (capture);
  gsize size;
  const char *data = g_bytes_get_data (bytes, &size);

  return size > 0 ? g_strndup (data, size) : g_strdup ("");
}

static void
test_table (void)
{
  static const struct
  {
    const char *pieces[6];
    gsize head, tail;
    const char *expected;
    gboolean truncated;
  } cases[] = {
    { { NULL }, 4, 4, "", FALSE },
    { { "abc" }, 4, 4, "abc", FALSE },
    { { "abcd", "efgh" }, 4, 4, "abcdefgh", FALSE },
    { { "abcdefghi" }, 4, 4, "abcd\n[… 1 bytes left out …]\nfghi", TRUE },
    { { "a", "b", "c", "defghij", "k" }, 4, 4, "abcd\n[… 3 bytes left out …]\nhijk", TRUE },
    { { "abcdefghijklmnopqrstuvwxyz" }, 0, 5, "\n[… 21 bytes left out …]\nvwxyz", TRUE },
    { { "abcde", "fghijklmnopqrstuvwxyz", "0" }, 2, 3, "ab\n[… 22 bytes left out …]\nyz0", TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(BjCapture) capture = bj_capture_new (cases[i].head, cases[i].tail);
      g_autoptr(GString) all = g_string_new (NULL);
      g_autofree char *sha = NULL;
      g_autofree char *expected_sha = NULL;
      g_autofree char *got = NULL;

      for (guint p = 0; p < G_N_ELEMENTS (cases[i].pieces) && cases[i].pieces[p] != NULL; p++)
        {
          bj_capture_append (capture, cases[i].pieces[p], strlen (cases[i].pieces[p]));
          g_string_append (all, cases[i].pieces[p]);
        }
      got = content (capture);
      sha = bj_capture_dup_sha256 (capture);
      expected_sha = g_compute_checksum_for_string (G_CHECKSUM_SHA256, all->str, (gssize) all->len);
      g_assert_cmpstr (got, ==, cases[i].expected);
      g_assert_cmpint (bj_capture_get_truncated (capture), ==, cases[i].truncated);
      g_assert_cmpuint (bj_capture_get_total (capture), ==, all->len);
      g_assert_cmpstr (sha, ==, expected_sha);
    }
}

/* Whatever the sizes of the pieces, head and tail are those of the whole. */
static void
test_random_pieces (void)
{
  for (guint round = 0; round < 200; round++)
    {
      g_autoptr(BjCapture) pieces = bj_capture_new (100, 64);
      g_autoptr(BjCapture) whole = bj_capture_new (100, 64);
      g_autoptr(GByteArray) all = g_byte_array_new ();
      g_autoptr(GBytes) a = NULL;
      g_autoptr(GBytes) b = NULL;

      for (guint n = (guint) g_test_rand_int_range (0, 20); n > 0; n--)
        {
          guint8 piece[300];
          guint length = (guint) g_test_rand_int_range (0, sizeof piece);

          for (guint i = 0; i < length; i++)
            piece[i] = (guint8) g_test_rand_int_range (0, 256);
          bj_capture_append (pieces, piece, length);
          g_byte_array_append (all, piece, length);
        }
      bj_capture_append (whole, all->data, all->len);
      a = bj_capture_dup_bytes (pieces);
      b = bj_capture_dup_bytes (whole);
      g_assert_true (g_bytes_equal (a, b));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/capture/table", test_table);
  g_test_add_func ("/capture/random-pieces", test_random_pieces);
  return g_test_run ();
}
