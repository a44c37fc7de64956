/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Pure: from what the runs showed to what may be said. DESIGN section 7. */
typedef enum
{
  BJ_VERDICT_NONE,
  BJ_VERDICT_FAILED,
  BJ_VERDICT_PASSES_HERE,
  BJ_VERDICT_PASSES,
  BJ_VERDICT_PROVED,
} BjVerdict;

typedef enum
{
  BJ_RUN_ABSENT,    /* was not made */
  BJ_RUN_PASSED,    /* exit 0 */
  BJ_RUN_FAILED,    /* failed cleanly: exit 1 to 125, no timeout, no signal */
  BJ_RUN_UNCLEAN,   /* signal, exit 126 and more */
  BJ_RUN_TIMEOUT,   /* timed out */
  BJ_RUN_SETUP,     /* the setup before it failed */
  BJ_RUN_MACHINE,   /* the machine was gone or never came up */
  BJ_RUN_STOPPED,   /* a person stopped the session before or while it ran */
} BjRun;

typedef struct
{
  gboolean has_check;
  gboolean by_agent;      /* the checked party chose it */
  gboolean has_baseline;
  gboolean protected_differs; /* protected files differ from the baseline's, so a protected run is needed */
  BjRun same;
  BjRun fresh;
  BjRun fresh_again; /* a second fresh run, when there was one */
  BjRun baseline;
  BjRun protected_run;
} BjVerdictFacts;

/**
 * bj_verdict_decide:
 * @why: (out) (optional) (transfer full): machine-readable reasons for not being stronger, in a fixed order
 *
 * The contract's reasons go with passes: baseline-passed, baseline-unclean, no-baseline, agent-check, inputs-changed, flaky. Others:
 * no-check and not-run (none); no-fresh-run, check-failed, check-unclean, timeout, setup-failed, machine-gone and stopped, which
 * say what the decisive run showed (passes-here: the fresh one; failed: the fresh one, or the session's own when there was none).
 */
BjVerdict bj_verdict_decide (const BjVerdictFacts *facts, GStrv *why);
const char *bj_verdict_to_string (BjVerdict verdict); /* none failed passes-here passes proved */
/** bj_verdict_explain: (transfer none): one translatable sentence for people on a reason of @why */
const char *bj_verdict_explain (const char *reason);

G_END_DECLS
