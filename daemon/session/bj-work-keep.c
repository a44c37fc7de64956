/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* What becomes of the machine of a task whose machine is wanted if the work does not turn out well. */

#include "bj-work.h"

gboolean
bj_work_hold_machine (BjWork *work)
{
  if (!bj_session_wants_keep (work->session) || work->plan->task == NULL
      || bj_machine_get_state (work->machine) != BJ_MACHINE_STATE_PAUSED)
    return FALSE;
  /* The machines that check must not wait for the memory of this one. */
  if (!bj_budget_try (work->context->budget, work->memory_mib))
    {
      bj_session_warn (work->session, "The machine is not kept: there is no memory for it beside those that check");
      return FALSE;
    }
  bj_budget_give (work->context->budget, work->memory_mib);
  work->kept = g_steal_pointer (&work->machine);
  bj_session_set_kept (work->session, work->kept);
  return TRUE;
}

/* Nobody watches its network any more, so it has none. */
static void
cut_off (BjWork *work)
{
  g_autoptr(GError) error = NULL;

  if (bj_machine_get_spec (work->kept)->network && !bj_machine_set_link (work->kept, FALSE, &error))
    {
      g_message ("Session %s: its machine is not kept: %s", work->plan->id, error->message);
      bj_session_release_kept (work->session);
    }
}

void
bj_work_keep_failed (BjWork *work)
{
  if (work->kept == NULL)
    return;
  if (bj_session_turned_out_well (work->session))
    bj_session_release_kept (work->session);
  else
    cut_off (work);
  bj_session_wait_kept (work->session, work->context->config->park_after_s);
  bj_session_set_kept (work->session, NULL);
  bj_teardown_add (work->context->teardown, g_steal_pointer (&work->kept));
  bj_session_announce_over (work->session); /* once more: some wait for the very end */
}
