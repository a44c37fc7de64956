/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* A session from its first step to its last, in one worker thread. Every step that changes the world has an entry in the
 * journal before it and an outcome after it. */

#include "bj-work.h"

#include "bj-error.h"
#include "bj-fault.h"
#include "bj-fd.h"
#include "bj-lease.h"
#include "bj-machine-note.h"
#include "bj-record.h"
#include "bj-remove.h"
#include "bj-worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WATCH_S 1.0
#define AGENT_GRACE_S 5

static void
work_free (BjWork *work)
{
  g_clear_pointer (&work->cable, bj_cable_free);
  g_clear_object (&work->machine);
  g_clear_object (&work->kept);
  g_clear_pointer (&work->model, g_variant_unref);
  g_object_unref (work->session);
  g_free (work->baseline);
  g_free (work->baseline_tree);
  g_free (work->tree);
  g_free (work->protected_tree);
  g_free (work->check);
  g_free (work->setup);
  g_strfreev (work->protect);
  bj_project_settings_clear (&work->settings);
  g_free (work);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjWork, work_free)

static BjWork *
work_new (BjSession *session, BjGateway *gateway)
{
  BjWork *work = g_new0 (BjWork, 1);

  work->session = g_object_ref (session);
  work->context = bj_session_get_context (session);
  work->plan = bj_session_get_plan (session);
  work->gateway = gateway;
  work->clock_offset_us = bj_work_get_clock_offset ();
  return work;
}

gboolean
bj_work_journaled (BjWork *work, const char *action, BjStep step, GError **error)
{
  BjStore *store = work->context->store;
  g_autofree char *subject = g_strconcat ("session/", work->plan->id, NULL);
  g_autofree char *data = g_strdup_printf ("{\"slot\":%u}", work->plan->slot);
  g_autoptr(GError) failure = NULL;
  gint64 entry = bj_journal_begin (store, subject, action, data, error);

  if (entry == 0)
    return FALSE;
  bj_fault_point (action, "begun");
  step (work, &failure);
  bj_fault_point (action, "done");
  if (!bj_journal_end (store, entry, failure, failure == NULL ? error : NULL))
    return FALSE;
  if (failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
make_folders (BjWork *work, GError **error)
{
  static const struct
  {
    const char *name;
    mode_t mode;
  } folders[] = { { NULL, 0711 }, { "evidence", 0700 }, { "evidence/screenshots", 0700 } };

  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *path = bj_session_dup_dir (work->session, folders[i].name);

      if (g_mkdir_with_parents (path, 0711) < 0 || chmod (path, folders[i].mode) < 0)
        return bj_fd_set_io_error (error, errno, "Making %s", path);
    }
  return TRUE;
}

static gboolean
start_up (BjWork *work, GError **error)
{
  if (!make_folders (work, error) || !bj_session_open_transcript (work->session, error)
      || !bj_work_journaled (work, "baseline", bj_work_take_baseline, error))
    return FALSE;
  bj_work_settle_network (work);
  bj_work_record_begin (work);
  bj_session_note_queue (work->session);
  if (!bj_work_probe_model (work, error) || !bj_work_journaled (work, "machine-start", bj_work_start_machine, error))
    return FALSE;
  bj_session_set_state (work->session, "running");
  bj_session_record (work->session, TRUE, "state", bj_record_state ("running"));
  if (work->plan->task != NULL)
    return bj_work_start_agent (work, error);
  bj_session_set_activity (work->session, "waiting for commands");
  bj_session_touch (work->session);
  return TRUE;
}

/* Until the agent is done, a limit is reached, somebody stops it, or the machine or the agent is gone. */
static void
wait_for_work (BjWork *work)
{
  BjSession *session = work->session;

  while (bj_session_wait_end (session, WATCH_S) == BJ_END_NONE && !bj_session_is_asking (session))
    {
      bj_work_watch_time (work);
      bj_work_watch_machine (work);
      if (work->agent != NULL && !bj_agent_peer_is_running (work->agent)
          && bj_session_wait_end (session, AGENT_GRACE_S) == BJ_END_NONE && !bj_session_is_asking (session))
        bj_session_end_work (session, BJ_END_AGENT, bj_error_get_name (BJ_ERROR_FAILED),
                             "The agent ended without a result");
    }
}

static void
record_limit (BjWork *work, BjEnd end)
{
  if (end == BJ_END_STEPS)
    bj_session_record (work->session, TRUE, "limit", bj_record_limit ("steps", work->plan->steps));
  else if (end == BJ_END_AGENT_LIMIT)
    bj_session_record (work->session, TRUE, "limit", bj_record_limit ("agent", bj_session_get_steps (work->session)));
  else if (end == BJ_END_IDLE)
    bj_session_record (work->session, TRUE, "limit", bj_record_limit ("idle", work->context->config->idle_s));
  else if (end == BJ_END_TRANSCRIPT)
    bj_session_record (work->session, TRUE, "limit", bj_record_limit ("transcript", 0));
}

/* Whether the work ended in a way that its result is worth checking. */
static gboolean
is_checkable (BjEnd end)
{
  return end == BJ_END_FINISHED || end == BJ_END_WALL_CLOCK || end == BJ_END_STEPS || end == BJ_END_AGENT_LIMIT
         || end == BJ_END_TRANSCRIPT || end == BJ_END_IDLE;
}

/* Paused and unplugged first: from here on nothing in the guest can change the folder. */
static gboolean
take_back_folder (BjWork *work, GError **error)
{
  if (work->machine == NULL || !work->shared)
    return TRUE;
  if (bj_machine_get_state (work->machine) == BJ_MACHINE_STATE_RUNNING && !bj_machine_pause (work->machine, error))
    return FALSE;
  return bj_machine_detach_share (work->machine, error);
}

static gboolean
write_tree_step (BjWork *work, GError **error)
{
  return bj_work_write_tree (work, error);
}

/* A project made only because the caller named none is not kept when nothing came of it. */
static void
drop_empty_project (BjWork *work)
{
  g_autofree char *head = NULL;
  g_autoptr(GError) error = NULL;

  if (!work->plan->own_project)
    return;
  head = bj_project_store_head (work->context->projects, work->plan->project, NULL, &error);
  if (head == NULL && error == NULL && !bj_project_store_delete (work->context->projects, work->plan->project, &error))
    g_message ("The empty project %s stays: %s", work->plan->project, error->message);
}

/* What must happen whatever came before: folder back, tree, machine gone, check, commit. Returns the first failure. */
static void
wrap_up (BjWork *work, BjEnd end, gboolean had_machine, GError **failure)
{
  g_autoptr(GError) error = NULL;

  bj_session_set_state (work->session, "verifying");
  if (bj_session_is_asking (work->session))
    bj_session_record (work->session, TRUE, "state", bj_record_state ("verifying"));
  record_limit (work, end);
  if (work->agent != NULL)
    bj_agent_peer_end (g_steal_pointer (&work->agent));
  if ((is_checkable (end) || end == BJ_END_MACHINE) && work->plan->task != NULL)
    bj_work_check_same (work);
  bj_session_set_machine (work->session, NULL);
  if (!take_back_folder (work, &error))
    {
      g_warning ("Session %s: taking back its folder: %s", work->plan->id, error->message);
      g_clear_error (&error);
    }
  bj_work_end_machine (work);
  if (!had_machine)
    return;
  if (!bj_work_journaled (work, "tree", write_tree_step, &error))
    {
      g_propagate_prefixed_error (failure, g_steal_pointer (&error), "Writing the project's tree: ");
      return;
    }
  if (is_checkable (end) && work->plan->task != NULL)
    bj_work_verify (work);
  if (!bj_work_journaled (work, "commit", bj_work_commit, &error))
    g_propagate_prefixed_error (failure, g_steal_pointer (&error), "Committing: ");
}

/* How a session ended, for its last record. */
typedef struct
{
  const char *outcome;
  char *error_name; /* (owned) (nullable) */
  char *message;    /* (owned) (nullable) */
} BjEnding;

static void
decide_ending (BjWork *work, BjEnd end, const GError *failure, BjEnding *ending)
{
  g_autoptr(GError) ours = failure != NULL ? bj_error_to_bus (failure) : NULL;

  if (bj_session_was_stopped_late (work->session) && work->plan->task != NULL && work->check != NULL)
    {
      ending->outcome = "CANCELLED";
      ending->error_name = g_strdup (bj_error_get_name (BJ_ERROR_CANCELLED));
      ending->message = g_strdup ("The session was stopped while its work was checked");
    }
  else if (ours != NULL && end != BJ_END_STOPPED)
    {
      ending->outcome = "FAILED";
      ending->error_name = g_strdup (bj_error_get_name ((BjError) ours->code));
      ending->message = g_strdup (ours->message);
    }
  else if (is_checkable (end) || (end == BJ_END_STOPPED && work->plan->task == NULL))
    ending->outcome = "DONE";
  else
    {
      ending->outcome = end == BJ_END_STOPPED ? "CANCELLED" : "FAILED";
      bj_session_dup_error (work->session, &ending->error_name, &ending->message);
    }
}

static void
seal (BjWork *work, BjEnd end, const GError *failure)
{
  BjEnding ending = { 0 };
  g_autoptr(GError) error = NULL;

  decide_ending (work, end, failure, &ending);
  if (ending.message != NULL)
    g_message ("Session %s: %s: %s", work->plan->id, ending.outcome, ending.message);
  if (!bj_session_seal (work->session, ending.outcome, ending.error_name, ending.message, &error))
    g_warning ("Session %s: its report cannot be written: %s", work->plan->id, error->message);
  g_free (ending.error_name);
  g_free (ending.message);
}

/* Where a session stands when its worker takes it up. */
typedef enum
{
  BJ_STAND_FAILED, /* its machine did not come up */
  BJ_STAND_UP,
  BJ_STAND_WAITS,  /* for an answer */
} BjStand;

/* The agent's work, and the waits for answers between its parts. */
static void
work_on (BjWork *work, BjStand stand)
{
  gboolean goes_on = stand == BJ_STAND_UP || bj_work_go_on_waiting (work);

  while (goes_on)
    {
      wait_for_work (work);
      goes_on = bj_session_is_asking (work->session) && bj_work_wait_answer (work);
    }
}

/* From there to the end. */
static void
carry_on (BjWork *work, BjStand stand, GError *failure)
{
  gboolean up = stand != BJ_STAND_FAILED;
  g_autofree char *folder = bj_session_dup_dir (work->session, "agent");
  g_autoptr(GError) first = failure;
  BjEnd end;

  if (up)
    work_on (work, stand);
  else
    bj_session_end_work (work->session, BJ_END_AGENT, NULL, NULL);
  if (bj_session_is_suspended (work->session))
    return;
  end = bj_session_get_end (work->session);
  if (end == BJ_END_STOPPED)
    g_clear_error (&first);
  wrap_up (work, end, up, first == NULL ? &first : NULL);
  drop_empty_project (work);
  if (!work->slot_is_leased)
    bj_slots_release (work->context->slots, work->plan->slot);
  bj_remove_tree (folder, NULL);
  bj_work_forget_wait (work);
  seal (work, end, first);
  bj_session_announce_over (work->session);
  bj_work_keep_failed (work);
}

static void
run_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  g_autoptr(BjWork) work = work_new (source, data);
  GError *failure = NULL;
  gboolean up = start_up (work, &failure);

  carry_on (work, up ? BJ_STAND_UP : BJ_STAND_FAILED, failure);
  g_task_return_boolean (task, TRUE);
}

static void
adopted_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  carry_on (data, BJ_STAND_UP, NULL);
  g_task_return_boolean (task, TRUE);
}

static void
waiting_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  carry_on (data, BJ_STAND_WAITS, NULL);
  g_task_return_boolean (task, TRUE);
}

/* @work: (transfer full) */
static void
run_in_worker (BjWork *work, GTaskThreadFunc func)
{
  g_autoptr(GTask) task = g_task_new (work->session, NULL, NULL, NULL);

  g_task_set_task_data (task, work, (GDestroyNotify) work_free);
  bj_worker_run (task, func);
}

gboolean
bj_session_wait_on_async (BjSession *session, BjGateway *gateway, GError **error)
{
  g_autoptr(BjWork) work = work_new (session, gateway);

  if (!bj_work_recall_wait (work, error))
    return FALSE;
  bj_session_warn (session, "belljard was restarted; the session went on waiting for an answer");
  run_in_worker (g_steal_pointer (&work), waiting_thread);
  return TRUE;
}

gboolean
bj_session_adopt_async (BjSession *session, BjGateway *gateway, GError **error)
{
  g_autoptr(BjWork) work = work_new (session, gateway);
  BjContext *context = work->context;
  g_autoptr(BjMachineSpec) spec = bj_work_make_spec (work, "", work->plan->slot);
  g_autofree char *dir = bj_session_dup_dir (session, NULL);

  bj_machine_note_apply (dir, spec);
  spec->share = work->shared = work->plan->project != NULL;
  work->machine = bj_machine_new (work->context->engine, spec);
  if (!bj_machine_adopt (work->machine, error) || !bj_session_open_transcript (session, error))
    return FALSE;
  if (work->shared)
    {
      work->baseline = bj_project_store_head (work->context->projects, work->plan->project, &work->baseline_tree, error);
      if (work->baseline == NULL && *error != NULL)
        return FALSE;
    }
  if (!bj_work_lease_adopted (work, spec, spec->memory_mib, error))
    return FALSE;
  work->network = spec->network && context->firewall != NULL;
  if (work->network)
    work->cable = bj_cable_new (session, work->machine);
  bj_session_set_machine (session, work->machine);
  bj_session_set_state (session, "running");
  bj_session_warn (session, "belljard was restarted; the machine went on meanwhile");
  run_in_worker (g_steal_pointer (&work), adopted_thread);
  return TRUE;
}

void
bj_session_run_async (BjSession *session, BjGateway *gateway)
{
  g_autoptr(GTask) task = g_task_new (session, NULL, NULL, NULL);

  g_task_set_source_tag (task, bj_session_run_async);
  g_task_set_task_data (task, gateway, NULL);
  bj_worker_run (task, run_thread);
}

/* Its transcript cannot be continued. What is left to be done is proved by a new one, which says so; the old one stays beside it. */
static void
begin_anew (BjWork *work, const GError *why)
{
  g_autofree char *path = bj_session_dup_transcript_path (work->session);
  g_autofree char *aside = g_strconcat (path, ".damaged", NULL);
  g_autoptr(GError) error = NULL;

  g_warning ("Session %s: its transcript cannot be continued: %s", work->plan->id, why->message);
  if (rename (path, aside) < 0 && errno != ENOENT)
    g_warning ("Renaming %s: %s", path, g_strerror (errno));
  else if (!bj_session_open_transcript (work->session, &error))
    g_warning ("Session %s: it has no transcript: %s", work->plan->id, error->message);
  if (work->plan->image != NULL)
    bj_work_record_begin (work);
  bj_session_warn (work->session, "The transcript of what came before is damaged, and kept as transcript.jsonl.damaged: %s",
                   why->message);
}

/* The agent and its conversation died with the daemon: the machine goes, the person's folder is recorded. */
void
bj_session_finish_after_crash (BjSession *session, BjGateway *gateway, const char *why)
{
  g_autoptr(BjWork) work = work_new (session, gateway);
  g_autoptr(GError) failure = NULL;
  g_autoptr(GError) head_error = NULL;
  g_autoptr(BjMachineSpec) spec = bj_work_make_spec (work, "", work->plan->slot);
  g_autofree char *dir = bj_session_dup_dir (session, NULL);
  g_autofree char *state = bj_session_dup_state (session);
  g_autofree char *message = g_strdup_printf ("belljard ended while the session was %s; its machine was removed%s%s", state,
                                              why != NULL ? ", because the session could not go on: " : "",
                                              why != NULL ? why : "");

  bj_session_end_work (session, BJ_END_AGENT, bj_error_get_name (BJ_ERROR_FAILED), message);
  bj_machine_note_apply (dir, spec);
  work->machine = bj_machine_new (work->context->engine, spec);
  bj_work_end_machine (work);
  bj_teardown_wait (work->context->teardown);
  if (work->plan->project != NULL)
    work->baseline = bj_project_store_head (work->context->projects, work->plan->project, &work->baseline_tree,
                                            &head_error);
  if (!make_folders (work, &failure) || !bj_session_open_transcript (session, &failure))
    begin_anew (work, failure);
  g_clear_error (&failure);
  if (head_error == NULL && work->plan->project != NULL && bj_work_journaled (work, "tree", write_tree_step, &failure))
    bj_work_journaled (work, "commit", bj_work_commit, &failure);
  if (failure != NULL)
    bj_session_warn (session, "What the session left in its project could not be committed: %s", failure->message);
  drop_empty_project (work);
  bj_work_forget_wait (work);
  seal (work, BJ_END_AGENT, NULL);
}
