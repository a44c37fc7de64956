/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-work.h"

#include "bj-error.h"
#include "bj-json.h"
#include "bj-project-protect.h"
#include "bj-record.h"
#include "bj-untrusted.h"

#include <string.h>

#define SETTINGS_FILE "belljar.ini"
#define SETTINGS_MAX (64 * 1024)
#define SUBJECT_MAX 72
#define WARNINGS_MAX 50
/* git's id of the tree without entries */
#define EMPTY_TREE "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

static void
warn_all (BjWork *work, const char *const *warnings)
{
  for (guint i = 0; warnings != NULL && warnings[i] != NULL && i < WARNINGS_MAX; i++)
    bj_session_warn (work->session, "%s", warnings[i]);
}

/* A folder that differs from the newest commit gets a commit of its owner, so that the session has a baseline. */
static gboolean
record_owner_state (BjWork *work, GError **error)
{
  BjProjectStore *projects = work->context->projects;
  g_auto(BjTreeResult) now = { 0 };
  g_autofree char *head_tree = NULL;
  g_autoptr(GError) no_head = NULL;

  if (!bj_project_store_write_tree (projects, work->plan->project, &now, bj_session_get_cancellable (work->session),
                                    error))
    return FALSE;
  work->baseline = bj_project_store_head (projects, work->plan->project, &head_tree, &no_head);
  if (no_head != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&no_head));
      return FALSE;
    }
  if (work->baseline == NULL && g_str_equal (now.tree, EMPTY_TREE))
    return TRUE;
  if (g_strcmp0 (head_tree, now.tree) != 0)
    {
      g_free (work->baseline);
      work->baseline = bj_project_store_commit (projects, work->plan->project, now.tree, "owner",
                                                "State before a session", NULL, error);
    }
  work->baseline_tree = g_strdup (now.tree);
  return work->baseline != NULL;
}

static gboolean
read_settings (BjWork *work, GError **error)
{
  g_autoptr(GBytes) ini = NULL;
  g_autoptr(GError) failure = NULL;

  if (work->baseline_tree == NULL)
    return TRUE;
  ini = bj_project_store_read_blob (work->context->projects, work->plan->project, work->baseline_tree, SETTINGS_FILE,
                                    SETTINGS_MAX, &failure);
  if (failure != NULL)
    {
      g_propagate_prefixed_error (error, g_steal_pointer (&failure), "Reading %s of project “%s”: ", SETTINGS_FILE,
                                  work->plan->project);
      return FALSE;
    }
  if (ini == NULL || bj_project_settings_parse (ini, &work->settings, error))
    return TRUE;
  g_prefix_error (error, "%s of project “%s”: ", SETTINGS_FILE, work->plan->project);
  return FALSE;
}

static void
protect_inputs (GStrvBuilder *protect, const char *command)
{
  g_auto(GStrv) patterns = bj_project_default_protect (command);

  g_strv_builder_addv (protect, (const char **) patterns);
}

static void
settle_check (BjWork *work)
{
  const char *declared = work->settings.check != NULL ? work->settings.check : "";
  const char *setup = work->settings.setup != NULL ? work->settings.setup : "";
  g_autoptr(GStrvBuilder) protect = g_strv_builder_new ();

  if (work->plan->task == NULL)
    return;
  work->check_source = work->plan->check != NULL ? "caller" : *declared != '\0' ? "project" : NULL;
  if (work->check_source == NULL)
    return;
  work->check = g_strdup (work->plan->check != NULL ? work->plan->check : declared);
  work->setup = *setup != '\0' ? g_strdup (setup) : NULL;
  protect_inputs (protect, work->check);
  if (work->setup != NULL) /* it runs as root before the check: what it names decides no less */
    protect_inputs (protect, work->setup);
  if (work->settings.protect != NULL)
    g_strv_builder_addv (protect, (const char **) work->settings.protect);
  work->protect = g_strv_builder_end (protect);
}

gboolean
bj_work_recall_baseline (BjWork *work, GError **error)
{
  work->memory_mib = work->plan->memory_mib;
  if (!read_settings (work, error))
    return FALSE;
  settle_check (work);
  if (work->memory_mib == 0)
    work->memory_mib = work->settings.memory_mib;
  if (work->memory_mib == 0)
    work->memory_mib = work->context->config->memory_mib;
  return TRUE;
}

gboolean
bj_work_take_baseline (BjWork *work, GError **error)
{
  const BjSessionPlan *plan = work->plan;

  if (plan->project == NULL)
    return bj_work_recall_baseline (work, error);
  bj_session_set_activity (work->session, "recording the project's state");
  if (plan->own_project
      && !bj_project_store_create (work->context->projects, plan->project, plan->owner_uid, plan->owner_gid, error))
    return FALSE;
  return record_owner_state (work, error) && bj_work_recall_baseline (work, error);
}

/* What a protected run will be made on; without it nothing can be proved, but the session goes on. */
static void
restore_protected (BjWork *work)
{
  g_autoptr(GError) error = NULL;

  if (work->protect == NULL || work->baseline_tree == NULL)
    return;
  work->protected_tree = bj_project_store_restore_protected (work->context->projects, work->plan->project,
                                                             work->baseline_tree, work->tree,
                                                             (const char *const *) work->protect, &error);
  if (work->protected_tree == NULL)
    bj_session_warn (work->session, "Protected files could not be put back: %s", error->message);
}

/* The next session takes its check from there, as the project's own. */
static void
warn_of_settings (BjWork *work, JsonArray *changed)
{
  for (guint i = 0; i < json_array_get_length (changed); i++)
    if (g_str_equal (bj_json_get_string (bj_json_array_get_object (changed, i), "path", ""), SETTINGS_FILE))
      bj_session_warn (work->session, "The session changed %s: from the next one on, this is where the project's check comes from",
                       SETTINGS_FILE);
}

gboolean
bj_work_write_tree (BjWork *work, GError **error)
{
  BjProjectStore *projects = work->context->projects;
  g_auto(BjTreeResult) now = { 0 };
  g_autoptr(JsonArray) changed = NULL;
  guint64 total = 0;

  if (work->plan->project == NULL)
    return TRUE;
  bj_session_set_activity (work->session, "writing the project's tree");
  if (!bj_project_store_write_tree (projects, work->plan->project, &now, NULL, error))
    return FALSE;
  changed = bj_project_store_diff (projects, work->plan->project, work->baseline_tree, now.tree,
                                   (const char *const *) work->protect, &total, error);
  if (changed == NULL)
    return FALSE;
  work->tree = g_strdup (now.tree);
  restore_protected (work);
  bj_session_record (work->session, TRUE, "tree", bj_record_tree (now.tree, work->protected_tree, changed, total, NULL));
  warn_all (work, (const char *const *) now.warnings);
  warn_of_settings (work, changed);
  return TRUE;
}

static char *
make_subject (BjWork *work)
{
  const char *text = work->plan->task != NULL ? work->plan->task : "interactive session";
  g_autofree char *line = g_strndup (text, strcspn (text, "\n"));
  g_autofree char *escaped = bj_untrusted_escape (line, -1, SUBJECT_MAX);

  return g_strdup_printf ("%s\n\nWritten by Belljar at the end of session %s.", escaped, work->plan->id);
}

static GStrv
make_trailers (BjWork *work, GError **error)
{
  g_autoptr(GStrvBuilder) trailers = g_strv_builder_new ();
  g_autofree char *head = NULL;
  g_autoptr(JsonArray) records = bj_session_dup_records (work->session, &head, error);
  g_autofree char *lines = NULL;
  g_auto(GStrv) split = NULL;
  BjVerdictFacts facts;

  if (records == NULL)
    return NULL;
  bj_report_get_verdict_facts (records, &facts);
  lines = g_strdup_printf ("Belljar-Session: %s\nBelljar-Model: %s\nBelljar-Image: %s:%u %s\n"
                           "Belljar-Verdict: %s\nBelljar-Transcript: %s %u",
                           work->plan->id, *work->plan->model != '\0' ? work->plan->model : "none",
                           work->plan->image != NULL ? work->plan->image->name : "unknown",
                           work->plan->image != NULL ? work->plan->image->version : 0,
                           work->plan->image != NULL ? work->plan->image->digest : "",
                           bj_verdict_to_string (bj_verdict_decide (&facts, NULL)), head,
                           json_array_get_length (records));
  split = g_strsplit (lines, "\n", -1);
  g_strv_builder_addv (trailers, (const char **) split);
  return g_strv_builder_end (trailers);
}

gboolean
bj_work_commit (BjWork *work, GError **error)
{
  gint64 begun = g_get_monotonic_time ();
  gboolean unchanged = g_strcmp0 (work->tree, work->baseline_tree != NULL ? work->baseline_tree : EMPTY_TREE) == 0;
  g_autofree char *message = NULL;
  g_autofree char *commit = NULL;
  g_auto(GStrv) trailers = NULL;

  if (work->tree == NULL || (unchanged && (work->plan->task == NULL || work->baseline == NULL)))
    return TRUE;
  bj_session_set_activity (work->session, "committing");
  message = make_subject (work);
  trailers = make_trailers (work, error);
  if (trailers == NULL)
    return FALSE;
  commit = bj_project_store_commit (work->context->projects, work->plan->project, work->tree, work->plan->project,
                                    message, (const char *const *) trailers, error);
  if (commit == NULL)
    return FALSE;
  bj_session_record (work->session, TRUE, "commit", bj_record_commit (commit, work->tree, FALSE));
  bj_session_note_time (work->session, "commit", begun);
  return TRUE;
}
