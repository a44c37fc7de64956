/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-verdict.h"

#include <glib/gi18n-lib.h>

static const struct { const char *reason, *sentence; } reasons[] = {
  { "baseline-passed", N_("The check passes on the code as it was before, too, so that its passing says nothing about the change.") },
  { "baseline-unclean", N_("On the code as it was before, the check did not fail cleanly: it crashed, timed out or could not be run.") },
  { "no-baseline", N_("The project had no commit before this session, so there was nothing to compare with.") },
  { "agent-check", N_("The model chose the check itself; give one with --check or in belljar.ini.") },
  { "inputs-changed", N_("Tests, settings of a test tool or other protected files were changed or added; with the old ones put back, the "
                       "check did not pass.") },
  { "flaky", N_("Two runs in fresh machines disagree.") },
  { "no-check", N_("Nobody gave a check; give one with --check or in belljar.ini.") },
  { "not-run", N_("The check was not run.") },
  { "no-fresh-run", N_("The check was not run in a fresh machine.") },
  { "check-failed", N_("The check failed.") },
  { "check-unclean", N_("The check crashed, was killed or could not be started.") },
  { "timeout", N_("The check did not end in time.") },
  { "setup-failed", N_("The setup before the check failed.") },
  { "machine-gone", N_("The machine that ran the check went away or never came up.") },
  { "stopped", N_("The session was stopped before the check had ended.") },
};

const char *
bj_verdict_to_string (BjVerdict verdict)
{
  switch (verdict)
    {
    case BJ_VERDICT_PROVED:
      return "proved";
    case BJ_VERDICT_PASSES:
      return "passes";
    case BJ_VERDICT_PASSES_HERE:
      return "passes-here";
    case BJ_VERDICT_FAILED:
      return "failed";
    case BJ_VERDICT_NONE:
    default:
      return "none";
    }
}

const char *
bj_verdict_explain (const char *reason)
{
  for (guint i = 0; i < G_N_ELEMENTS (reasons); i++)
    if (g_strcmp0 (reasons[i].reason, reason) == 0)
      return g_dgettext (GETTEXT_PACKAGE, reasons[i].sentence);
  return _("There is a reason that this version of Belljar does not know.");
}

static const char *
failure_reason (BjRun run)
{
  switch (run)
    {
    case BJ_RUN_FAILED:
      return "check-failed";
    case BJ_RUN_TIMEOUT:
      return "timeout";
    case BJ_RUN_SETUP:
      return "setup-failed";
    case BJ_RUN_MACHINE:
      return "machine-gone";
    case BJ_RUN_STOPPED:
      return "stopped";
    case BJ_RUN_ABSENT:
      return "no-fresh-run";
    case BJ_RUN_UNCLEAN:
    case BJ_RUN_PASSED:
    default:
      return "check-unclean";
    }
}

static const char *
baseline_reason (const BjVerdictFacts *facts)
{
  if (!facts->has_baseline)
    return "no-baseline";
  if (facts->baseline == BJ_RUN_PASSED)
    return "baseline-passed";
  return facts->baseline == BJ_RUN_FAILED ? NULL : "baseline-unclean";
}

/* It passed fresh: what keeps it from being proved? */
static BjVerdict
judge_pass (const BjVerdictFacts *facts, gboolean flaky, GPtrArray *why)
{
  const char *baseline = baseline_reason (facts);

  if (baseline != NULL)
    g_ptr_array_add (why, g_strdup (baseline));
  if (facts->by_agent)
    g_ptr_array_add (why, g_strdup ("agent-check"));
  if (facts->protected_differs && facts->protected_run != BJ_RUN_PASSED)
    g_ptr_array_add (why, g_strdup ("inputs-changed"));
  if (flaky)
    g_ptr_array_add (why, g_strdup ("flaky"));
  return why->len == 0 ? BJ_VERDICT_PROVED : BJ_VERDICT_PASSES;
}

static BjVerdict
judge (const BjVerdictFacts *facts, GPtrArray *why)
{
  gboolean first = facts->fresh == BJ_RUN_PASSED;
  gboolean second = facts->fresh_again == BJ_RUN_PASSED;

  if (!facts->has_check)
    {
      g_ptr_array_add (why, g_strdup ("no-check"));
      return BJ_VERDICT_NONE;
    }
  if (first && (second || facts->fresh_again == BJ_RUN_ABSENT))
    return judge_pass (facts, FALSE, why);
  if (facts->fresh != BJ_RUN_ABSENT && (first || second))
    return judge_pass (facts, TRUE, why);
  if (facts->same == BJ_RUN_PASSED)
    {
      g_ptr_array_add (why, g_strdup (failure_reason (facts->fresh)));
      return BJ_VERDICT_PASSES_HERE;
    }
  if (facts->fresh == BJ_RUN_ABSENT && facts->same == BJ_RUN_ABSENT)
    {
      g_ptr_array_add (why, g_strdup ("not-run"));
      return BJ_VERDICT_NONE;
    }
  g_ptr_array_add (why, g_strdup (failure_reason (facts->fresh != BJ_RUN_ABSENT ? facts->fresh : facts->same)));
  return BJ_VERDICT_FAILED;
}

BjVerdict
bj_verdict_decide (const BjVerdictFacts *facts, GStrv *why)
{
  g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func (g_free);
  BjVerdict verdict = judge (facts, list);

  g_ptr_array_add (list, NULL);
  if (why != NULL)
    *why = (GStrv) g_ptr_array_steal (list, NULL);
  return verdict;
}
