/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/*
 * The wait for a person's answer. At the question the agent process ends (what it knows is kept) and the machine is paused; after a
 * while, or when the daemon ends, the machine goes to disk. With the answer both come back. Every state of this survives a crash:
 * the note (bj-ask-note.h) stands from the question until a new agent works, and a machine is parked until it runs again.
 */

#include "bj-work-boot.h"

#include "bj-ask-note.h"
#include "bj-error.h"
#include "bj-fault.h"
#include "bj-lease.h"
#include "bj-machine-note.h"
#include "bj-machine-park.h"
#include "bj-record.h"
#include "bj-remove.h"

#define LOOK_S 1.0
#define READY_MAX_S 180

static char *
dup_park_dir (BjWork *work)
{
  return bj_session_dup_dir (work->session, "parked");
}

static char *
dup_mount_point (BjWork *work)
{
  return work->plan->project != NULL ? g_strconcat ("/work/", work->plan->project, NULL) : NULL;
}

static gint64
now_s (void)
{
  return g_get_real_time () / G_USEC_PER_SEC;
}

static void
set_park_time (BjWork *work)
{
  work->park_at_us = g_get_monotonic_time () + (gint64) work->context->config->park_after_s * G_USEC_PER_SEC;
}

/* The question */

/* The next one gets a folder of its own, with a socket of its own. */
static void
end_agent (BjWork *work)
{
  g_autofree char *folder = bj_session_dup_dir (work->session, "agent");

  if (work->agent != NULL)
    bj_agent_peer_end (g_steal_pointer (&work->agent));
  bj_remove_tree (folder, NULL);
}

static gboolean
ask_step (BjWork *work, GError **error)
{
  g_autofree char *dir = bj_session_dup_dir (work->session, NULL);
  g_auto(BjAskNote) note = { .asked_at = work->asked_at, .baseline = g_strdup (work->baseline),
                             .baseline_tree = g_strdup (work->baseline_tree), .network = work->network };

  g_free (bj_session_dup_answer (work->session, &note.memory));
  bj_session_dup_agent_check (work->session, &note.agent_check, &note.agent_setup);
  return bj_machine_pause (work->machine, error) && bj_ask_note_write (dir, &note, error);
}

/* To disk */

static gboolean
park_step (BjWork *work, GError **error)
{
  g_autofree char *dir = dup_park_dir (work);
  g_autofree char *mount_point = dup_mount_point (work);
  BjParkFacts facts;
  gint64 begun = g_get_monotonic_time ();

  bj_session_set_machine (work->session, NULL);
  g_clear_pointer (&work->cable, bj_cable_free); /* its network card is unplugged */
  if (!bj_machine_park (work->machine, dir, mount_point, &facts, bj_session_get_cancellable (work->session), error))
    {
      bj_session_set_machine (work->session, work->machine);
      return FALSE;
    }
  work->shared = FALSE;
  bj_session_set_parked (work->session, TRUE);
  bj_lease_give_memory (bj_machine_get_holding (work->machine));
  bj_session_record (work->session, TRUE, "park",
                     bj_record_park (facts.bytes, (double) (g_get_monotonic_time () - begun) / G_USEC_PER_SEC, facts.users));
  if (facts.users > 0)
    bj_session_warn (work->session, "%u processes had files of the project open or worked in its folder when the machine went to "
                     "disk: they lost them", facts.users);
  return TRUE;
}

static gboolean
park (BjWork *work)
{
  g_autoptr(GError) error = NULL;

  if (bj_work_journaled (work, "park", park_step, &error))
    return TRUE;
  set_park_time (work); /* to try again */
  if (bj_session_get_end (work->session) == BJ_END_NONE)
    bj_session_warn (work->session, "The machine stays in memory, it could not go to disk: %s", error->message);
  return FALSE;
}

static void
suspend (BjWork *work)
{
  if (bj_session_is_parked (work->session) || park (work))
    bj_session_announce_suspended (work->session);
  else
    bj_session_end_work (work->session, BJ_END_STOPPED, bj_error_get_name (BJ_ERROR_CANCELLED),
                         "belljard ended, and the machine that waited for an answer could not go to disk");
}

/* And back */

/* Its folder and its slot are the same, its template and its network need not be there any more. */
static BjMachine *
make_successor (BjWork *work)
{
  g_autoptr(BjMachineSpec) spec = bj_machine_spec_copy (bj_machine_get_spec (work->machine));

  g_clear_pointer (&spec->template, bj_template_unref);
  spec->network = work->network;
  return bj_machine_new (work->context->engine, spec);
}

static gboolean
unpark (BjWork *work, GError **error)
{
  GCancellable *cancellable = bj_session_get_cancellable (work->session);
  BjLease *lease = bj_machine_get_holding (work->machine);
  g_autofree char *dir = dup_park_dir (work);
  g_autoptr(BjMachine) machine = NULL;

  if (!bj_lease_take_memory (lease, bj_machine_get_spec (work->machine)->memory_mib, bj_work_say_that_it_waits, work, cancellable, error))
    return FALSE;
  bj_session_set_activity (work->session, "bringing the machine back");
  work->network = FALSE;
  bj_work_settle_network (work);
  machine = make_successor (work);
  if (!bj_machine_unpark (machine, dir, cancellable, error))
    {
      bj_lease_give_memory (lease);
      return FALSE;
    }
  bj_machine_take_over (machine, work->machine);
  g_set_object (&work->machine, machine);
  bj_session_set_parked (work->session, FALSE);
  return TRUE;
}

/* Whatever is plugged already stays. From here on the disk goes on, so that what was parked is worth nothing. */
static gboolean
let_go (BjWork *work, GError **error)
{
  GCancellable *cancellable = bj_session_get_cancellable (work->session);
  g_autofree char *dir = dup_park_dir (work);
  gboolean wants_share = work->plan->project != NULL && !bj_machine_has_share (work->machine);

  if (wants_share && !bj_work_attach_share (work, work->machine, cancellable, error))
    return FALSE;
  work->shared = work->plan->project != NULL;
  bj_machine_forget_park (dir);
  bj_fault_point ("return", "unparked");
  if (work->network && work->cable == NULL)
    work->cable = bj_cable_new (work->session, work->machine);
  return bj_machine_run (work->machine, error)
         && bj_machine_wait_ready (work->machine, READY_MAX_S, cancellable, error);
}

static gboolean
return_step (BjWork *work, GError **error)
{
  const char *start = bj_session_is_parked (work->session) ? "parked" : "paused";
  g_autofree char *mount_point = dup_mount_point (work);
  g_auto(BjMachineFacts) facts = { 0 };

  if (bj_session_is_parked (work->session) && !unpark (work, error))
    return FALSE;
  if (!let_go (work, error)
      || !bj_machine_setup_again (work->machine, mount_point, &facts, bj_session_get_cancellable (work->session), error))
    return FALSE;
  bj_work_record_machine (work, work->machine, start, &facts);
  bj_session_set_machine (work->session, work->machine);
  return TRUE;
}

static void
resume_clock (BjWork *work)
{
  bj_session_set_deadline (work->session,
                           bj_work_move_deadline (bj_session_get_deadline (work->session), work->asked_at, now_s ()));
  work->clock_offset_us = bj_work_get_clock_offset (); /* what was set meanwhile is in it */
  bj_session_set_state (work->session, "running");
  bj_session_record (work->session, TRUE, "state", bj_record_state ("running"));
}

/* The model first: a machine that has nobody to work in it would only have to go back. */
static gboolean
come_back (BjWork *work)
{
  g_autofree char *dir = bj_session_dup_dir (work->session, NULL);
  g_autoptr(GError) error = NULL;

  if (bj_work_probe_model (work, &error) && bj_work_journaled (work, "return", return_step, &error))
    {
      resume_clock (work);
      if (!bj_work_start_agent (work, &error))
        bj_session_end_work (work->session, BJ_END_AGENT, bj_error_get_name (BJ_ERROR_FAILED), error->message);
      bj_ask_note_remove (dir);
      return TRUE;
    }
  if (bj_session_get_end (work->session) != BJ_END_NONE)
    return FALSE;
  bj_session_warn (work->session, "The session could not go on with the answer; answer again when this is mended: %s",
                   error->message);
  if (!bj_session_is_parked (work->session))
    bj_machine_pause (work->machine, NULL);
  set_park_time (work);
  bj_session_refuse_answer (work->session);
  return FALSE;
}

/* The wait */

static void
look (BjWork *work)
{
  if (bj_session_is_parked (work->session))
    return;
  if (bj_machine_get_state (work->machine) == BJ_MACHINE_STATE_ABSENT)
    bj_session_end_work (work->session, BJ_END_MACHINE, bj_error_get_name (BJ_ERROR_GUEST_UNREACHABLE),
                         "The machine was gone while it waited for an answer");
  else if (g_get_monotonic_time () >= work->park_at_us)
    park (work);
}

gboolean
bj_work_go_on_waiting (BjWork *work)
{
  while (!bj_session_is_suspended (work->session))
    switch (bj_session_wait_answer (work->session, LOOK_S))
      {
      case BJ_WAKE_END:
        return FALSE;
      case BJ_WAKE_SUSPEND:
        suspend (work);
        break;
      case BJ_WAKE_ANSWER:
        if (come_back (work))
          return TRUE;
        break;
      case BJ_WAKE_TIME:
      default:
        look (work);
        break;
      }
  return FALSE;
}

gboolean
bj_work_wait_answer (BjWork *work)
{
  g_autoptr(GError) error = NULL;

  end_agent (work);
  work->asked_at = now_s ();
  set_park_time (work);
  if (!bj_work_journaled (work, "ask", ask_step, &error))
    {
      bj_session_end_work (work->session, BJ_END_AGENT, bj_error_get_name (BJ_ERROR_FAILED), error->message);
      return FALSE;
    }
  bj_session_begin_wait (work->session);
  return bj_work_go_on_waiting (work);
}

void
bj_work_forget_wait (BjWork *work)
{
  g_autofree char *dir = bj_session_dup_dir (work->session, NULL);
  g_autofree char *park_dir = dup_park_dir (work);

  bj_ask_note_remove (dir);
  bj_machine_forget_park (park_dir);
}

static void
recall_note (BjWork *work, BjAskNote *note)
{
  work->asked_at = note->asked_at;
  work->baseline = g_steal_pointer (&note->baseline);
  work->baseline_tree = g_steal_pointer (&note->baseline_tree);
  work->network = note->network;
  if (note->agent_check != NULL)
    bj_session_set_agent_check (work->session, note->agent_check, note->agent_setup);
  bj_session_ask_again (work->session, note->memory);
}

static gboolean
recall_machine (BjWork *work, GError **error)
{
  g_autofree char *dir = bj_session_dup_dir (work->session, NULL);
  g_autofree char *park_dir = dup_park_dir (work);
  g_autoptr(BjMachineSpec) spec = bj_work_make_spec (work, "", work->plan->slot);
  gboolean parked = bj_machine_is_parked (park_dir);

  bj_machine_note_apply (dir, spec);
  spec->share = work->plan->project != NULL;
  work->machine = bj_machine_new (work->context->engine, spec);
  if (!parked && (!bj_machine_adopt (work->machine, error) || !bj_machine_pause (work->machine, error)))
    return FALSE;
  if (!bj_work_lease_adopted (work, spec, parked ? 0 : spec->memory_mib, error))
    return FALSE;
  bj_session_set_parked (work->session, parked);
  work->shared = spec->share && !parked;
  if (!parked)
    bj_session_set_machine (work->session, work->machine);
  if (!parked && work->network)
    work->cable = bj_cable_new (work->session, work->machine);
  return TRUE;
}

gboolean
bj_work_recall_wait (BjWork *work, GError **error)
{
  g_autofree char *dir = bj_session_dup_dir (work->session, NULL);
  g_auto(BjAskNote) note = { 0 };

  if (work->plan->image == NULL)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "its image is gone");
  if (!bj_ask_note_read (dir, &note, error) || !bj_session_open_transcript (work->session, error))
    return FALSE;
  recall_note (work, &note);
  set_park_time (work);
  if (!bj_work_recall_baseline (work, error) || !recall_machine (work, error))
    return FALSE;
  if (note.answer != NULL)
    bj_session_answer_again (work->session, note.answer, note.answer_uid);
  else
    bj_session_begin_wait (work->session);
  return TRUE;
}
