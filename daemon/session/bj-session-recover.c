/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-session-recover.h"

#include "bj-ask-note.h"
#include "bj-error.h"
#include "bj-lease.h"
#include "bj-machine-note.h"
#include "bj-name.h"
#include "bj-remove.h"
#include "bj-work.h"

#include <string.h>

#define ID_LENGTH 8

static gboolean
waits_for_answer (BjContext *context, const char *id)
{
  g_autofree char *dir = g_build_filename (context->state_dir, "sessions", id, NULL);

  return bj_ask_note_exists (dir);
}

/* A session without an agent can live on: its machine is all there is to it. One that waits for an answer goes on waiting. */
static gboolean
adopt (BjSession *session, BjGateway *gateway, GError **error)
{
  BjContext *context = bj_session_get_context (session);
  const BjSessionPlan *plan = bj_session_get_plan (session);
  gboolean waits = waits_for_answer (context, plan->id);

  if (!waits && (!context->config->keep_sessions || plan->task != NULL || plan->image == NULL))
    return bj_error_set (error, BJ_ERROR_FAILED, "it is not of the kind that lives on");
  if (!bj_slots_reserve (context->slots, plan->slot))
    return bj_error_set (error, BJ_ERROR_BUSY, "its slot is taken");
  if (waits ? bj_session_wait_on_async (session, gateway, error) : bj_session_adopt_async (session, gateway, error))
    return TRUE;
  bj_slots_release (context->slots, plan->slot);
  return FALSE;
}

void
bj_session_recover (BjSession *session, BjGateway *gateway)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *state = bj_session_dup_state (session);
  gboolean waits = waits_for_answer (bj_session_get_context (session), bj_session_get_id (session));

  if (adopt (session, gateway, &error))
    {
      g_message ("Session %s lives on", bj_session_get_id (session));
      return;
    }
  g_message ("Session %s was %s when belljard ended; it is ended now (%s)", bj_session_get_id (session), state,
             error->message);
  bj_session_finish_after_crash (session, gateway, waits ? error->message : NULL);
}

static gboolean
is_known (GPtrArray *rows, const char *name)
{
  for (guint i = 0; i < rows->len; i++)
    {
      const BjSessionRow *row = g_ptr_array_index (rows, i);

      if (strncmp (row->id, name, ID_LENGTH) == 0)
        return TRUE;
    }
  return FALSE;
}

/* Whether a session that is not over goes on, with whatever it has on disk. */
static gboolean
lives_on (BjContext *context, const BjSessionRow *row)
{
  return !bj_session_state_is_final (row->state)
         && (context->config->keep_sessions || waits_for_answer (context, row->id));
}

static gboolean
is_of_one_that_lives_on (BjContext *context, GPtrArray *rows, const char *id)
{
  for (guint i = 0; i < rows->len; i++)
    {
      const BjSessionRow *row = g_ptr_array_index (rows, i);

      if (g_str_equal (row->id, id))
        return lives_on (context, row);
    }
  return FALSE;
}

/* One from the pool has an id of its own: the sessions that live on say which they got. */
static gboolean
is_of_live_session (BjContext *context, GPtrArray *rows, const char *machine)
{
  for (guint i = 0; i < rows->len; i++)
    {
      const BjSessionRow *row = g_ptr_array_index (rows, i);
      g_autofree char *dir = g_build_filename (context->state_dir, "sessions", row->id, NULL);
      g_autoptr(BjMachineSpec) spec = g_new0 (BjMachineSpec, 1);

      if (!lives_on (context, row))
        continue;
      spec->id = g_strdup (row->id);
      bj_machine_note_apply (dir, spec);
      if (g_str_equal (spec->id, machine))
        return TRUE;
    }
  return FALSE;
}

/* Returns: (transfer full): where the machine with this id, of whatever kind, has its files */
static char *
dup_run_dir (BjContext *context, const char *id)
{
  g_autofree char *session = g_strndup (id, strcspn (id, "-"));
  g_autofree char *suffix = g_strconcat ("run", strchr (id, '-') ? strchr (id, '-') : "", NULL);

  if (g_str_has_prefix (id, BJ_POOL_PREFIX))
    return g_build_filename (context->state_dir, "pool", id, NULL);
  return g_build_filename (context->state_dir, "sessions", session, suffix, NULL);
}

/* Machines of ours that no live session has: verification machines, builds, sessions that were forgotten. */
static void
remove_orphan_machines (BjContext *context, GPtrArray *rows)
{
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) machines = bj_engine_list_machines (context->engine, &error);

  if (machines == NULL)
    g_warning ("Machines cannot be listed: %s", error->message);
  for (char **id = machines; id != NULL && *id != NULL; id++)
    {
      g_autoptr(BjMachine) machine = NULL;
      BjMachineSpec spec = { .id = *id };

      if (is_of_live_session (context, rows, *id))
        continue;
      spec.run_dir = dup_run_dir (context, *id);
      machine = bj_machine_new (context->engine, &spec);
      g_message ("Removing the machine %s that an earlier belljard left behind", *id);
      if (!bj_machine_destroy (machine, &error))
        g_warning ("The machine %s is not quite gone: %s", *id, error->message);
      g_clear_error (&error);
      g_free (spec.run_dir);
    }
}

/* Folders of machines that are gone, archives of trees, and whole folders of sessions that nobody knows. */
static void
clean_folder (BjContext *context, GPtrArray *rows, const char *name)
{
  g_autofree char *path = g_build_filename (context->state_dir, "sessions", name, NULL);
  g_autoptr(GDir) entries = NULL;
  const char *entry;

  if (!bj_id_is_valid (name) || !is_known (rows, name))
    {
      g_message ("Removing %s, which belongs to no session", path);
      bj_remove_tree (path, NULL);
      return;
    }
  entries = g_dir_open (path, 0, NULL);
  while (entries != NULL && (entry = g_dir_read_name (entries)) != NULL)
    {
      g_autofree char *below = g_build_filename (path, entry, NULL);

      if (g_str_equal (entry, "evidence") || is_of_one_that_lives_on (context, rows, name))
        continue;
      g_message ("Removing %s, left by an earlier belljard", below);
      bj_remove_tree (below, NULL);
    }
}

gboolean
bj_session_recover_world (BjContext *context, GPtrArray *rows, GError **error)
{
  g_autofree char *sessions = g_build_filename (context->state_dir, "sessions", NULL);
  g_autoptr(GPtrArray) open_entries = bj_journal_list_open (context->store, error);
  g_autoptr(GDir) folders = g_dir_open (sessions, 0, NULL);
  g_autoptr(GError) interrupted
      = g_error_new_literal (BJ_ERROR, BJ_ERROR_FAILED, "interrupted; put in order at the next start");
  const char *name;

  if (open_entries == NULL)
    return FALSE;
  remove_orphan_machines (context, rows);
  while (folders != NULL && (name = g_dir_read_name (folders)) != NULL)
    clean_folder (context, rows, name);
  for (guint i = 0; i < open_entries->len; i++)
    {
      const BjJournalEntry *entry = g_ptr_array_index (open_entries, i);

      g_message ("The step “%s” of %s was under way when belljard ended", entry->action, entry->subject);
      if (!bj_journal_end (context->store, entry->id, interrupted, error))
        return FALSE;
    }
  return TRUE;
}
