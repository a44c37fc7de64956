/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-report.h"

#include "bj-error.h"
#include "bj-json.h"
#include "bj-untrusted.h"

#include <string.h>

#define FORMAT 1
#define SUMMARY_CAP 4096
#define WARNINGS_MAX 500

static const char *const phases[] = { "queue", "overlay", "clone",  "ready", "setup", "first_command", "verify",
                                      "commit" };
static const char *const outcomes[] = { "DONE", "NEEDS INPUT", "FAILED", "CANCELLED", NULL };

/* What a pass over the records found; objects and strings are the records'. */
typedef struct
{
  JsonObject *session;
  double      started;
  double      last; /* time of the last record that counts */
  JsonObject *tree;
  JsonObject *commit;
  JsonObject *finish;    /* claimed */
  JsonObject *set_check; /* claimed */
  JsonObject *error;
  JsonObject *end;
  JsonObject *asked;    /* claimed: the newest question */
  gboolean    waits;    /* for an answer to it */
  guint       steps;
  JsonArray  *commands;
  JsonArray  *runs; /* of the records' data */
  JsonArray  *warnings;
  JsonArray  *limits;
  JsonArray  *machines;
  JsonObject *timing;
} Scan;

typedef struct
{
  const char *command; /* (nullable) */
  const char *setup;
  const char *source;
} Check;

static void
scan_init (Scan *scan)
{
  *scan = (Scan) { .commands = json_array_new (), .runs = json_array_new (), .warnings = json_array_new (),
                   .limits = json_array_new (), .machines = json_array_new (),
                   .timing = json_object_new () };
}

static void
scan_clear (Scan *scan)
{
  g_clear_pointer (&scan->commands, json_array_unref);
  g_clear_pointer (&scan->runs, json_array_unref);
  g_clear_pointer (&scan->warnings, json_array_unref);
  g_clear_pointer (&scan->limits, json_array_unref);
  g_clear_pointer (&scan->machines, json_array_unref);
  g_clear_pointer (&scan->timing, json_object_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Scan, scan_clear)

/* What transcripts of earlier versions do not have is not in their reports either: they still verify. */
static void
copy_if_there (JsonObject *to, JsonObject *from, const char *key)
{
  if (json_object_has_member (from, key))
    bj_json_copy_member (to, from, key);
}

static JsonObject *
new_command (Scan *scan, gint64 n, const char *tool, JsonObject *data)
{
  static const char *const newer[] = { "command_bytes", "command_sha256", "command_truncated", "lost" };
  JsonObject *command = json_object_new ();

  json_object_set_int_member (command, "n", json_array_get_length (scan->commands) + 1);
  json_object_set_int_member (command, "record", n);
  json_object_set_string_member (command, "tool", tool);
  bj_json_copy_member (command, data, "command");
  bj_json_copy_member (command, data, "exit");
  bj_json_copy_member (command, data, "signal");
  for (guint i = 0; i < G_N_ELEMENTS (newer); i++)
    copy_if_there (command, data, newer[i]);
  json_array_add_object_element (scan->commands, command);
  return command;
}

static void
scan_command (Scan *scan, gint64 n, double at, JsonObject *data)
{
  static const char *const copied[] = { "duration_s", "timed_out", "stdout_bytes", "stderr_bytes", "stdout_sha256",
                                        "truncated", "failure" };
  JsonObject *command = new_command (scan, n, bj_json_get_string (data, "tool", ""), data);

  for (guint i = 0; i < G_N_ELEMENTS (copied); i++)
    bj_json_copy_member (command, data, copied[i]);
  scan->steps++;
}

static void
start_background (Scan *scan, gint64 n, double at, JsonObject *data)
{
  static const char *const unknown[] = { "duration_s", "stdout_bytes", "stderr_bytes", "stdout_sha256" };
  JsonObject *command = new_command (scan, n, "start", data);

  for (guint i = 0; i < G_N_ELEMENTS (unknown); i++)
    json_object_set_null_member (command, unknown[i]);
  json_object_set_boolean_member (command, "timed_out", FALSE);
  copy_if_there (command, data, "failure");
  json_object_set_int_member (command, "background", bj_json_get_int (data, "id", 0));
}

static void
end_background (Scan *scan, JsonObject *data)
{
  gint64 id = bj_json_get_int (data, "id", -1);

  for (guint i = json_array_get_length (scan->commands); i > 0; i--)
    {
      JsonObject *command = bj_json_array_get_object (scan->commands, i - 1);

      if (bj_json_get_int (command, "background", -2) != id)
        continue;
      bj_json_copy_member (command, data, "exit");
      bj_json_copy_member (command, data, "signal");
      return;
    }
}

static void
scan_background (Scan *scan, gint64 n, double at, JsonObject *data)
{
  const char *event = bj_json_get_string (data, "event", "");

  if (g_str_equal (event, "end"))
    {
      end_background (scan, data);
      return;
    }
  scan->steps++;
  if (g_str_equal (event, "start"))
    start_background (scan, n, at, data);
}

static void
scan_step (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->steps++;
}

static void
scan_timing (Scan *scan, gint64 n, double at, JsonObject *data)
{
  const char *phase = bj_json_get_string (data, "phase", "");

  for (guint i = 0; i < G_N_ELEMENTS (phases); i++)
    if (g_str_equal (phases[i], phase))
      bj_json_set_seconds (scan->timing, phases[i], bj_json_get_double (data, "seconds", 0));
}

static void
scan_tree (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->tree = data;
}

static void
scan_commit (Scan *scan, gint64 n, double at, JsonObject *data)
{
  if (!bj_json_get_boolean (data, "baseline"))
    scan->commit = data;
}

static void
scan_check_run (Scan *scan, gint64 n, double at, JsonObject *data)
{
  json_array_add_object_element (scan->runs, json_object_ref (data));
}

static void
add_warning (Scan *scan, const char *text)
{
  if (text != NULL && json_array_get_length (scan->warnings) < WARNINGS_MAX)
    json_array_add_string_element (scan->warnings, text);
}

static void
scan_warning (Scan *scan, gint64 n, double at, JsonObject *data)
{
  add_warning (scan, bj_json_get_string (data, "text", NULL));
}

static void
scan_limit (Scan *scan, gint64 n, double at, JsonObject *data)
{
  JsonObject *limit = json_object_new ();

  bj_json_copy_member (limit, data, "limit");
  bj_json_copy_member (limit, data, "value");
  json_array_add_object_element (scan->limits, limit);
}

static void
scan_machine (Scan *scan, gint64 n, double at, JsonObject *data)
{
  json_array_add_object_element (scan->machines, json_object_ref (data));
}

static void
scan_error (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->error = data;
}

static void
scan_end (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->end = data;
}

static void
scan_ask (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->asked = data;
}

/* Only the daemon says whether a question is waited for. */
static void
scan_state (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->waits = g_strcmp0 (bj_json_get_string (data, "state", NULL), "needs-input") == 0;
}

static void
scan_answer (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->waits = FALSE;
}

static void
scan_finish (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->finish = data;
}

static void
scan_set_check (Scan *scan, gint64 n, double at, JsonObject *data)
{
  scan->set_check = data;
}

/* A record counts only as what it is and by whom it is: a claimed one is never a fact. */
static const struct
{
  const char *by, *type;
  void (*handle) (Scan *scan, gint64 n, double at, JsonObject *data);
} handlers[] = {
  { "seen", "command", scan_command },     { "seen", "background", scan_background },
  { "seen", "file", scan_step },           { "seen", "screenshot", scan_step },
  { "seen", "timing", scan_timing },       { "seen", "tree", scan_tree },
  { "seen", "commit", scan_commit },       { "seen", "check-run", scan_check_run },
  { "seen", "warning", scan_warning },     { "seen", "limit", scan_limit },
  { "seen", "machine", scan_machine },     { "seen", "input", scan_step },
  { "seen", "state", scan_state },
  { "seen", "answer", scan_answer },       { "claimed", "ask", scan_ask },
  { "seen", "error", scan_error },         { "seen", "end", scan_end },
  { "claimed", "finish", scan_finish },    { "claimed", "set-check", scan_set_check },
};

static void
scan_record (Scan *scan, JsonObject *record)
{
  const char *by = bj_json_get_string (record, "by", "");
  const char *type = bj_json_get_string (record, "type", "");
  JsonObject *data = bj_json_get_object (record, "data");
  double at = bj_json_get_double (record, "at", 0);

  if (data == NULL)
    return;
  scan->last = at;
  for (guint i = 0; i < G_N_ELEMENTS (handlers); i++)
    if (g_str_equal (handlers[i].by, by) && g_str_equal (handlers[i].type, type))
      handlers[i].handle (scan, bj_json_get_int (record, "n", -1), at, data);
}

static gboolean
is_record (JsonObject *record, const char *by, const char *type)
{
  return g_str_equal (bj_json_get_string (record, "by", ""), by)
         && (type == NULL || g_str_equal (bj_json_get_string (record, "type", ""), type));
}

/* The first session record binds; before it there may be warnings of the daemon's, and a session that failed early has none. Nothing
 * after the first end counts. */
static gboolean
scan_records (Scan *scan, JsonArray *records, GError **error)
{
  guint count = json_array_get_length (records);

  if (count == 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "The transcript is empty");
  scan->started = bj_json_get_double (bj_json_array_get_object (records, 0), "at", 0);
  for (guint i = 0; i < count && scan->end == NULL; i++)
    {
      JsonObject *record = bj_json_array_get_object (records, i);

      if (scan->session == NULL && !is_record (record, "seen", NULL))
        return bj_error_set (error, BJ_ERROR_INVALID, "Record %u comes before the session's own record", i);
      if (scan->session == NULL && is_record (record, "seen", "session"))
        scan->session = bj_json_get_object (record, "data");
      scan_record (scan, record);
    }
  return TRUE;
}

static gboolean
is_trusted_source (const char *source)
{
  return g_strcmp0 (source, "caller") == 0 || g_strcmp0 (source, "project") == 0;
}

/* The check that the first record binds; without one, whatever ran was the agent's choice. */
static Check
choose_check (const Scan *scan)
{
  JsonObject *bound = bj_json_get_object (scan->session, "check");
  JsonObject *other = scan->set_check;

  if (bj_json_get_string (bound, "command", NULL) != NULL)
    return (Check) { bj_json_get_string (bound, "command", NULL), bj_json_get_string (bound, "setup", NULL),
                     is_trusted_source (bj_json_get_string (bound, "source", NULL))
                     ? bj_json_get_string (bound, "source", NULL) : "agent" };
  if (json_array_get_length (scan->runs) > 0)
    other = bj_json_array_get_object (scan->runs, 0);
  if (bj_json_get_string (other, "command", NULL) == NULL)
    return (Check) { NULL, NULL, NULL };
  return (Check) { bj_json_get_string (other, "command", NULL), bj_json_get_string (other, "setup", NULL), "agent" };
}

static BjRun
judge_run (JsonObject *run)
{
  gint64 exit = bj_json_get_int (run, "exit", -1);

  if (bj_json_has (run, "failure"))
    return bj_json_get_boolean (run, "stopped") ? BJ_RUN_STOPPED : BJ_RUN_MACHINE;
  if (bj_json_get_boolean (run, "timed_out"))
    return BJ_RUN_TIMEOUT;
  if (bj_json_get_boolean (run, "setup_failed"))
    return BJ_RUN_SETUP;
  if (bj_json_has (run, "signal") || exit < 0 || exit > 125)
    return BJ_RUN_UNCLEAN;
  return exit == 0 ? BJ_RUN_PASSED : BJ_RUN_FAILED;
}

/* Of several runs in one place the one that says less stays. */
static void
keep_worse (BjRun *kept, BjRun run, BjRun good)
{
  if (*kept == BJ_RUN_ABSENT || *kept == good)
    *kept = run;
}

static gboolean
is_on (JsonObject *run, JsonObject *of, const char *key)
{
  const char *tree = bj_json_get_string (of, key, NULL);

  return tree != NULL && g_strcmp0 (bj_json_get_string (run, "tree", NULL), tree) == 0;
}

/* A run counts for what it is said to be only on the tree that belongs there. */
static void
count_run (BjVerdictFacts *facts, const Scan *scan, JsonObject *run)
{
  const char *where = bj_json_get_string (run, "where", "");
  BjRun result = judge_run (run);

  if (g_str_equal (where, "same"))
    keep_worse (&facts->same, result, BJ_RUN_PASSED);
  else if (g_str_equal (where, "baseline") && is_on (run, scan->session, "baseline_tree"))
    keep_worse (&facts->baseline, result, BJ_RUN_FAILED);
  else if (g_str_equal (where, "protected") && is_on (run, scan->tree, "protected_tree"))
    keep_worse (&facts->protected_run, result, BJ_RUN_PASSED);
  else if (g_str_equal (where, "fresh") && is_on (run, scan->tree, "tree") && facts->fresh == BJ_RUN_ABSENT)
    facts->fresh = result;
  else if (g_str_equal (where, "fresh") && is_on (run, scan->tree, "tree"))
    keep_worse (&facts->fresh_again, result, BJ_RUN_PASSED);
}

/* Where it is not known what the protected run would run on, it counts as different, unless there is nothing to prove anyway. */
static gboolean
protected_differs (const Scan *scan, const BjVerdictFacts *facts)
{
  if (bj_json_get_string (scan->tree, "protected_tree", NULL) == NULL)
    return facts->has_baseline && !facts->by_agent;
  return bj_json_get_string (scan->tree, "tree", NULL) == NULL || !is_on (scan->tree, scan->tree, "protected_tree");
}

static void
fill_verdict_facts (const Scan *scan, BjVerdictFacts *facts)
{
  Check check = choose_check (scan);

  facts->has_check = check.command != NULL;
  facts->by_agent = facts->has_check && !is_trusted_source (check.source);
  facts->has_baseline = bj_json_has (scan->session, "baseline") && bj_json_has (scan->session, "baseline_tree");
  facts->protected_differs = protected_differs (scan, facts);
  for (guint i = 0; facts->has_check && i < json_array_get_length (scan->runs); i++)
    {
      JsonObject *run = bj_json_array_get_object (scan->runs, i);

      if (g_strcmp0 (bj_json_get_string (run, "command", NULL), check.command) == 0)
        count_run (facts, scan, run);
    }
}

void
bj_report_get_verdict_facts (JsonArray *records, BjVerdictFacts *facts)
{
  g_auto(Scan) scan = { 0 };

  scan_init (&scan);
  *facts = (BjVerdictFacts) { 0 };
  if (scan_records (&scan, records, NULL))
    fill_verdict_facts (&scan, facts);
}

static JsonObject *
report_run (JsonObject *from)
{
  static const char *const copied[] = { "where", "exit", "signal", "timed_out", "setup_failed", "failure", "duration_s",
                                        "tail", "network", "tree" };
  JsonObject *run = json_object_new ();

  for (guint i = 0; i < G_N_ELEMENTS (copied); i++)
    bj_json_copy_member (run, from, copied[i]);
  return run;
}

static JsonObject *
report_check (const Scan *scan)
{
  Check check = choose_check (scan);
  BjVerdictFacts facts = { 0 };
  JsonObject *report = json_object_new ();
  JsonArray *runs = json_array_new ();
  JsonArray *reasons = json_array_new ();
  g_auto(GStrv) why = NULL;

  fill_verdict_facts (scan, &facts);
  bj_json_set_string (report, "command", check.command);
  bj_json_set_string (report, "setup", check.setup);
  bj_json_set_string (report, "source", check.source);
  json_object_set_string_member (report, "verdict", bj_verdict_to_string (bj_verdict_decide (&facts, &why)));
  for (guint i = 0; why[i] != NULL; i++)
    json_array_add_string_element (reasons, why[i]);
  for (guint i = 0; i < json_array_get_length (scan->runs); i++)
    json_array_add_object_element (runs, report_run (bj_json_array_get_object (scan->runs, i)));
  json_object_set_array_member (report, "why", reasons);
  json_object_set_array_member (report, "runs", runs);
  return report;
}

static JsonObject *
report_summary (const Scan *scan)
{
  JsonObject *report = json_object_new ();
  gboolean cut = FALSE;
  g_autofree char *text = bj_untrusted_cut (bj_json_get_string (scan->finish, "text", ""), SUMMARY_CAP, &cut);

  json_object_set_string_member (report, "text", text);
  json_object_set_boolean_member (report, "truncated", cut);
  json_object_set_boolean_member (report, "untrusted", TRUE);
  return report;
}

static void
set_time (JsonObject *report, const char *key, double at)
{
  g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc ((gint64) at);
  g_autofree char *text = time != NULL ? g_date_time_format (time, "%Y-%m-%dT%H:%M:%SZ") : NULL;

  bj_json_set_string (report, key, text);
}

static void
set_outcome (JsonObject *report, const Scan *scan)
{
  const char *outcome = bj_json_get_string (scan->end, "outcome", "FAILED");
  JsonObject *cause = scan->end;

  if (scan->end == NULL)
    outcome = scan->waits ? "NEEDS INPUT" : "IN PROGRESS";
  else if (!g_strv_contains (outcomes, outcome))
    outcome = "FAILED";
  json_object_set_string_member (report, "outcome", outcome);
  if (cause != NULL && !bj_json_has (cause, "name") && g_str_equal (outcome, "FAILED"))
    cause = scan->error;
  json_object_set_null_member (report, "error");
  if (bj_json_has (cause, "name"))
    {
      JsonObject *error = json_object_new ();

      bj_json_copy_member (error, cause, "name");
      bj_json_copy_member (error, cause, "message");
      json_object_set_object_member (report, "error", error);
    }
}

static void
set_session (JsonObject *report, const Scan *scan)
{
  static const char *const copied[] = { "session", "project", "image", "accelerator", "isolation", "model", "network",
                                        "task", "baseline" };

  for (guint i = 0; i < G_N_ELEMENTS (copied); i++)
    bj_json_copy_member (report, scan->session, copied[i]);
  set_time (report, "started", scan->started);
  json_object_set_null_member (report, "finished");
  if (scan->end != NULL)
    set_time (report, "finished", scan->last);
  bj_json_set_seconds (report, "duration_s", MAX (0, scan->last - scan->started));
  json_object_set_int_member (report, "steps", scan->steps);
}

/* A report that does not name every file says so. Records of older daemons have no total, and their reports stay as they were signed. */
static void
set_files (JsonObject *report, Scan *scan)
{
  JsonArray *files = bj_json_get_array (scan->tree, "files_changed");
  gint64 listed = files != NULL ? json_array_get_length (files) : 0;
  gint64 total = MAX (bj_json_get_int (scan->tree, "files_total", 0), listed);
  g_autofree char *text = g_strdup_printf ("%" G_GINT64_FORMAT " files were changed, but only %" G_GINT64_FORMAT " of them are "
                                           "listed; git diff --stat of baseline and commit shows all", total, listed);

  json_object_set_array_member (report, "files_changed", files != NULL ? json_array_ref (files) : json_array_new ());
  if (bj_json_has (scan->tree, "files_total"))
    json_object_set_int_member (report, "files_total", total);
  if (listed < total)
    json_array_add_string_element (scan->warnings, text);
}

static void
set_results (JsonObject *report, Scan *scan)
{
  JsonArray *warnings = bj_json_get_array (scan->tree, "warnings");

  set_files (report, scan);
  for (guint i = 0; warnings != NULL && i < json_array_get_length (warnings); i++)
    add_warning (scan, bj_json_array_get_string (warnings, i));
  json_object_set_array_member (report, "commands", json_array_ref (scan->commands));
  bj_json_copy_member (report, scan->tree, "tree");
  bj_json_copy_member (report, scan->commit, "commit");
  json_object_set_null_member (report, "published");
  json_object_set_object_member (report, "check", report_check (scan));
  json_object_set_object_member (report, "summary", report_summary (scan));
  bj_json_set_string (report, "question", scan->waits ? bj_json_get_string (scan->asked, "text", "") : NULL);
  json_object_set_array_member (report, "warnings", json_array_ref (scan->warnings));
  json_object_set_array_member (report, "limits", json_array_ref (scan->limits));
  json_object_set_array_member (report, "machines", json_array_ref (scan->machines));
  json_object_set_object_member (report, "timing", json_object_ref (scan->timing));
}

JsonObject *
bj_report_build (JsonArray *records, const char *head, GError **error)
{
  g_auto(Scan) scan = { 0 };
  JsonObject *report = NULL;
  JsonObject *transcript = NULL;

  scan_init (&scan);
  if (!scan_records (&scan, records, error))
    return NULL;
  report = json_object_new ();
  transcript = json_object_new ();
  json_object_set_int_member (report, "format", FORMAT);
  set_outcome (report, &scan);
  set_session (report, &scan);
  set_results (report, &scan);
  json_object_set_string_member (transcript, "head", head);
  json_object_set_int_member (transcript, "count", json_array_get_length (records));
  json_object_set_object_member (report, "transcript", transcript);
  return report;
}
