/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What becomes of a session's deadline when the host's clock is set. */
#include "bj-work.h"

#define HOUR G_GINT64_CONSTANT (3600)
#define YEAR (365 * 24 * HOUR)
#define S ((gint64) G_USEC_PER_SEC)

static void
test_step (void)
{
  static const struct
  {
    gint64 now_us; /* the offset, which was 1000 s */
    gint64 step;
  } cases[] = {
    { 1000 * S, 0 },
    { 1000 * S + 1900000, 0 }, /* steered */
    { 1000 * S - 1900000, 0 },
    { 1002 * S, 2 },
    { 998 * S, -2 },
    { (1000 + HOUR) * S, HOUR },
    { (1000 - HOUR) * S, -HOUR },
    { (1000 + YEAR) * S, YEAR },
    { (1000 - 50 * YEAR) * S, -50 * YEAR },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      gint64 offset = 1000 * S;

      g_assert_cmpint (bj_work_clock_step (&offset, cases[i].now_us), ==, cases[i].step);
      g_assert_cmpint (offset, ==, cases[i].step != 0 ? cases[i].now_us : 1000 * S);
      g_assert_cmpint (bj_work_clock_step (&offset, cases[i].now_us), ==, 0); /* once */
    }
}

/* Slow steering adds up, and is made good in small steps: nothing is lost. */
static void
test_steered (void)
{
  gint64 offset = 0;
  gint64 sum = 0;

  for (gint64 now = 0; now <= 100 * S; now += S / 2)
    sum += bj_work_clock_step (&offset, now);
  g_assert_cmpint (sum, ==, 100);
}

/* However long it waited, and however the clock was set meanwhile: what was left then is left now. */
static void
test_wait (void)
{
  static const gint64 nows[] = { 5000, 5001, 5000 + HOUR, 5000 + YEAR, 5000 - HOUR, 5000 - 10, 0 };

  for (guint i = 0; i < G_N_ELEMENTS (nows); i++)
    {
      g_assert_cmpint (bj_work_move_deadline (5600, 5000, nows[i]) - nows[i], ==, 600);
      g_assert_cmpint (bj_work_move_deadline (4990, 5000, nows[i]), <, nows[i]); /* it was over then */
    }
}

/* The clocks of this host run on together while nobody sets them. */
static void
test_offset (void)
{
  gint64 offset = bj_work_get_clock_offset ();

  g_assert_cmpint (bj_work_clock_step (&offset, bj_work_get_clock_offset ()), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/time/step", test_step);
  g_test_add_func ("/time/steered", test_steered);
  g_test_add_func ("/time/wait", test_wait);
  g_test_add_func ("/time/offset", test_offset);
  return g_test_run ();
}
