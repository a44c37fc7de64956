/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-answer.h"

#include "bj-error.h"

#include <string.h>

static const BjRunAnswer good = { .magic = { 'B', 'J', 'R', 'A', '0', '0', '0', '1' }, .exit = 3, .out_total = 5, .out_head = 2,
                                  .out_tail = 1, .err_head = 1, .duration_us = 7 };

typedef struct
{
  const char *name;
  void (*change) (BjRunAnswer *answer);
  int extra; /* bytes after the header; 4 is right */
  gboolean valid;
} Case;

static void
keep (BjRunAnswer *answer)
{
}

static void
spoil_magic (BjRunAnswer *answer)
{
  answer->magic[7] = '2';
}

static void
exit_too_large (BjRunAnswer *answer)
{
  answer->exit = 256;
}

static void
exit_too_small (BjRunAnswer *answer)
{
  answer->exit = -2;
}

static void
both_ends (BjRunAnswer *answer)
{
  answer->signal = 9;
}

static void
signal_too_large (BjRunAnswer *answer)
{
  answer->exit = -1;
  answer->signal = 65;
}

static void
by_signal (BjRunAnswer *answer)
{
  answer->exit = -1;
  answer->signal = 9;
}

static void
huge_piece (BjRunAnswer *answer)
{
  answer->err_tail = G_MAXUINT32;
}

static void
huge_sum (BjRunAnswer *answer)
{
  answer->out_head = answer->out_tail = BJ_RUN_KEEP_MAX;
}

static void
one_more (BjRunAnswer *answer)
{
  answer->err_tail = 1;
}

static const Case cases[] = {
  { "good", keep, 4, TRUE },
  { "ended by a signal", by_signal, 4, TRUE },
  { "wrong magic", spoil_magic, 4, FALSE },
  { "exit code 256", exit_too_large, 4, FALSE },
  { "exit code -2", exit_too_small, 4, FALSE },
  { "exit code and signal", both_ends, 4, FALSE },
  { "signal 65", signal_too_large, 4, FALSE },
  { "a piece of 4 GiB", huge_piece, 4, FALSE },
  { "two pieces over the limit", huge_sum, 4, FALSE },
  { "announces more than there is", one_more, 4, FALSE },
  { "more than announced", keep, 5, FALSE },
  { "less than announced", keep, 3, FALSE },
  { "header only", keep, 0, FALSE },
  { "cut header", keep, -1, FALSE },
  { "nothing", keep, -(int) sizeof (BjRunAnswer), FALSE },
};

static void
test_table (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      guint8 data[sizeof (BjRunAnswer) + 8] = { 0 };
      BjRunAnswer raw = good;
      BjGuestAnswer answer;
      g_autoptr(GError) error = NULL;
      gboolean valid;

      g_test_message ("%s", cases[i].name);
      cases[i].change (&raw);
      memcpy (data, &raw, sizeof raw);
      memcpy (data + sizeof raw, "abcdefgh", 8);
      valid = bj_guest_answer_parse (data, (gsize) ((int) sizeof raw + cases[i].extra), &answer, &error);
      g_assert_cmpint (valid, ==, cases[i].valid);
      if (!valid)
        g_assert_error (error, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
    }
}

static void
test_stream (void)
{
  guint8 data[sizeof (BjRunAnswer) + 4];
  BjGuestAnswer answer;
  g_autoptr(GBytes) out = NULL;
  g_autoptr(GBytes) err = NULL;
  g_autofree char *text = NULL;

  memcpy (data, &good, sizeof good);
  memcpy (data + sizeof good, "abcd", 4);
  g_assert_true (bj_guest_answer_parse (data, sizeof data, &answer, NULL));
  out = bj_guest_answer_dup_stream (&answer, 0, answer.out_total);
  text = g_strndup (g_bytes_get_data (out, NULL), g_bytes_get_size (out));
  g_assert_cmpstr (text, ==, "ab\n[… 2 bytes left out …]\nc");
  err = bj_guest_answer_dup_stream (&answer, 2, 1);
  g_assert_cmpuint (g_bytes_get_size (err), ==, 1);
  g_assert_cmpint (answer.exit, ==, 3);
  g_assert_cmpuint (answer.duration_us, ==, 7);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/guest-answer/table", test_table);
  g_test_add_func ("/guest-answer/stream", test_stream);
  return g_test_run ();
}
