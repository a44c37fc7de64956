/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-verdict.h"

#define A BJ_RUN_ABSENT
#define P BJ_RUN_PASSED
#define F BJ_RUN_FAILED
#define U BJ_RUN_UNCLEAN
#define T BJ_RUN_TIMEOUT
#define S BJ_RUN_SETUP
#define M BJ_RUN_MACHINE

static const struct
{
  const char *name;
  BjVerdictFacts facts; /* check, agent, baseline, protected; same, fresh, again, baseline, protected */
  BjVerdict verdict;
  const char *why;
} cases[] = {
  { "proved", { 1, 0, 1, 0, P, P, A, F, A }, BJ_VERDICT_PROVED, "" },
  { "proved with protected files put back", { 1, 0, 1, 1, P, P, A, F, P }, BJ_VERDICT_PROVED, "" },
  { "proved, two fresh runs agree", { 1, 0, 1, 0, P, P, P, F, A }, BJ_VERDICT_PROVED, "" },
  { "proved, the session's machine is not asked", { 1, 0, 1, 0, M, P, A, F, A }, BJ_VERDICT_PROVED, "" },
  { "baseline passes too", { 1, 0, 1, 0, P, P, A, P, A }, BJ_VERDICT_PASSES, "baseline-passed" },
  { "baseline killed", { 1, 0, 1, 0, P, P, A, U, A }, BJ_VERDICT_PASSES, "baseline-unclean" },
  { "baseline timed out", { 1, 0, 1, 0, P, P, A, T, A }, BJ_VERDICT_PASSES, "baseline-unclean" },
  { "baseline's setup failed", { 1, 0, 1, 0, P, P, A, S, A }, BJ_VERDICT_PASSES, "baseline-unclean" },
  { "baseline's machine gone", { 1, 0, 1, 0, P, P, A, M, A }, BJ_VERDICT_PASSES, "baseline-unclean" },
  { "baseline not run", { 1, 0, 1, 0, P, P, A, A, A }, BJ_VERDICT_PASSES, "baseline-unclean" },
  { "no baseline", { 1, 0, 0, 0, P, P, A, A, A }, BJ_VERDICT_PASSES, "no-baseline" },
  { "agent's check", { 1, 1, 1, 0, P, P, A, F, A }, BJ_VERDICT_PASSES, "agent-check" },
  { "agent's check, no baseline", { 1, 1, 0, 0, P, P, A, A, A }, BJ_VERDICT_PASSES, "no-baseline,agent-check" },
  { "tests changed", { 1, 0, 1, 1, P, P, A, F, F }, BJ_VERDICT_PASSES, "inputs-changed" },
  { "tests changed, not run", { 1, 0, 1, 1, P, P, A, F, A }, BJ_VERDICT_PASSES, "inputs-changed" },
  { "tests changed, timeout", { 1, 0, 1, 1, P, P, A, F, T }, BJ_VERDICT_PASSES, "inputs-changed" },
  { "flaky", { 1, 0, 1, 0, P, P, F, F, A }, BJ_VERDICT_PASSES, "flaky" },
  { "flaky the other way round", { 1, 0, 1, 0, P, F, P, F, A }, BJ_VERDICT_PASSES, "flaky" },
  { "everything at once", { 1, 1, 1, 1, P, P, U, P, F }, BJ_VERDICT_PASSES,
    "baseline-passed,agent-check,inputs-changed,flaky" },
  { "only here", { 1, 0, 1, 0, P, F, A, F, A }, BJ_VERDICT_PASSES_HERE, "check-failed" },
  { "only here, twice", { 1, 0, 1, 0, P, F, F, A, A }, BJ_VERDICT_PASSES_HERE, "check-failed" },
  { "only here, fresh timed out", { 1, 0, 1, 0, P, T, A, A, A }, BJ_VERDICT_PASSES_HERE, "timeout" },
  { "only here, fresh machine gone", { 1, 0, 1, 0, P, M, A, A, A }, BJ_VERDICT_PASSES_HERE, "machine-gone" },
  { "only here, fresh not run", { 1, 0, 1, 0, P, A, A, A, A }, BJ_VERDICT_PASSES_HERE, "no-fresh-run" },
  { "failed", { 1, 0, 1, 0, F, F, A, A, A }, BJ_VERDICT_FAILED, "check-failed" },
  { "failed, agent's", { 1, 1, 1, 0, F, F, A, A, A }, BJ_VERDICT_FAILED, "check-failed" },
  { "failed: timeout", { 1, 0, 1, 0, F, T, A, A, A }, BJ_VERDICT_FAILED, "timeout" },
  { "failed: killed", { 1, 0, 1, 0, F, U, A, A, A }, BJ_VERDICT_FAILED, "check-unclean" },
  { "failed: setup", { 1, 0, 1, 0, F, S, A, A, A }, BJ_VERDICT_FAILED, "setup-failed" },
  { "failed: machine gone", { 1, 0, 1, 0, A, M, A, A, A }, BJ_VERDICT_FAILED, "machine-gone" },
  { "failed: the session's machine gone", { 1, 0, 1, 0, M, A, A, A, A }, BJ_VERDICT_FAILED, "machine-gone" },
  { "no check", { 0, 0, 1, 0, A, A, A, A, A }, BJ_VERDICT_NONE, "no-check" },
  { "no check, runs all the same", { 0, 0, 1, 0, P, P, P, F, P }, BJ_VERDICT_NONE, "no-check" },
  { "not run", { 1, 0, 1, 0, A, A, A, A, A }, BJ_VERDICT_NONE, "not-run" },
  { "only the baseline ran", { 1, 0, 1, 0, A, A, A, F, A }, BJ_VERDICT_NONE, "not-run" },
};

static void
test_named (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto(GStrv) why = NULL;
      BjVerdict verdict = bj_verdict_decide (&cases[i].facts, &why);
      g_autofree char *joined = g_strjoinv (",", why);

      g_test_message ("%s", cases[i].name);
      g_assert_cmpstr (bj_verdict_to_string (verdict), ==, bj_verdict_to_string (cases[i].verdict));
      g_assert_cmpstr (joined, ==, cases[i].why);
    }
}

static gboolean
has (GStrv why, const char *reason)
{
  return g_strv_contains ((const char *const *) why, reason);
}

/* What must hold whatever the facts are. */
static void
check_invariants (const BjVerdictFacts *f)
{
  g_auto(GStrv) why = NULL;
  BjVerdict verdict = bj_verdict_decide (f, &why);
  gboolean proved = f->has_check && !f->by_agent && f->has_baseline && f->fresh == P
                    && (f->fresh_again == A || f->fresh_again == P) && f->baseline == F
                    && (!f->protected_differs || f->protected_run == P);

  g_assert_cmpint (verdict == BJ_VERDICT_PROVED, ==, proved);
  g_assert_cmpint (verdict == BJ_VERDICT_PROVED, ==, g_strv_length (why) == 0);
  if (!f->has_check)
    g_assert_cmpint (verdict, ==, BJ_VERDICT_NONE);
  if (verdict == BJ_VERDICT_PASSES)
    g_assert_true (f->fresh == P || f->fresh_again == P);
  if (verdict == BJ_VERDICT_PASSES_HERE)
    g_assert_true (f->same == P && f->fresh != P);
  if (verdict >= BJ_VERDICT_PASSES)
    {
      g_assert_cmpint (has (why, "agent-check"), ==, f->by_agent);
      g_assert_cmpint (has (why, "no-baseline"), ==, !f->has_baseline);
      g_assert_cmpint (has (why, "flaky"), ==, f->fresh_again != A && (f->fresh == P) != (f->fresh_again == P));
      g_assert_cmpint (has (why, "inputs-changed"), ==, f->protected_differs && f->protected_run != P);
    }
  if (verdict == BJ_VERDICT_FAILED)
    g_assert_true (f->same != P && f->fresh != P && (f->same != A || f->fresh != A));
  for (guint i = 0; why[i] != NULL; i++)
    g_assert_cmpstr (bj_verdict_explain (why[i]), !=, bj_verdict_explain ("unknown"));
}

static void
test_all (void)
{
  const guint n = 7;

  for (guint flags = 0; flags < 16; flags++)
    for (guint runs = 0; runs < n * n * n * n * n; runs++)
      {
        BjVerdictFacts facts = {
          .has_check = flags & 1, .by_agent = (flags & 2) != 0, .has_baseline = (flags & 4) != 0,
          .protected_differs = (flags & 8) != 0, .same = runs % n, .fresh = runs / n % n,
          .fresh_again = runs / n / n % n, .baseline = runs / n / n / n % n, .protected_run = runs / n / n / n / n % n,
        };

        check_invariants (&facts);
      }
}

static void
test_words (void)
{
  static const char *const reasons[] = { "baseline-passed", "baseline-unclean", "no-baseline", "agent-check",
                                         "inputs-changed", "flaky", "no-check", "not-run", "no-fresh-run", "check-failed",
                                         "check-unclean", "timeout", "setup-failed", "machine-gone" };
  static const char *const words[] = { "none", "failed", "passes-here", "passes", "proved" };

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    g_assert_cmpstr (bj_verdict_to_string ((BjVerdict) i), ==, words[i]);
  for (guint i = 0; i < G_N_ELEMENTS (reasons); i++)
    g_assert_true (g_str_has_suffix (bj_verdict_explain (reasons[i]), "."));
  g_assert_nonnull (bj_verdict_explain (NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/verdict/named", test_named);
  g_test_add_func ("/verdict/all", test_all);
  g_test_add_func ("/verdict/words", test_words);
  return g_test_run ();
}
