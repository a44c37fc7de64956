/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "transcripts.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"
#include "bj-report.h"

#include <string.h>

/* Records made in memory; numbers and times as a transcript has them. */
static void
add (JsonArray *records, const char *by, const char *type, JsonObject *data)
{
  JsonObject *record = json_object_new ();
  guint n = json_array_get_length (records);

  json_object_set_int_member (record, "n", n);
  json_object_set_double_member (record, "at", 1764450000.5 + n);
  json_object_set_string_member (record, "by", by);
  json_object_set_string_member (record, "type", type);
  json_object_set_object_member (record, "data", data);
  json_array_add_object_element (records, record);
}

static JsonObject *
build (JsonArray *records)
{
  g_autoptr(GError) error = NULL;
  JsonObject *report = bj_report_build (records, "head", &error);

  g_assert_no_error (error);
  return report;
}

static JsonObject *
machine_record (const char *id)
{
  return bj_record_machine (&(BjMachineRecord) { .id = id, .start = "template", .clock_offset_s = 0.0123,
                                                 .hostname = "belljar-demo", .machine_id = "0a", .mac = "", .random = "ff", .uuid = "01-23",
                                                 .reseeded = TRUE });
}

static JsonArray *
proved_records (void)
{
  JsonArray *records = json_array_new ();

  add (records, "seen", "session", session_record ("make test", "caller", "commit-old"));
  add (records, "seen", "timing", bj_record_timing ("ready", 7.123));
  add (records, "seen", "timing", bj_record_timing ("made-up", 1));
  add (records, "seen", "command", command_record ("make test", 2));
  add (records, "seen", "background", bj_record_background ("start", 1, "sleep 100", -1, 0));
  add (records, "seen", "file", bj_record_file ("write", "write_file", "/work/demo/a", 12));
  add (records, "seen", "background", bj_record_background ("end", 1, NULL, -1, 9));
  add (records, "claimed", "finish", bj_record_text ("Fixed it.\nReally."));
  add (records, "seen", "check-run", run_record ("same", NULL, 0, "make test", "caller"));
  add (records, "seen", "tree", tree_record ("tree-new", "tree-new"));
  add (records, "seen", "check-run", run_record ("fresh", "tree-new", 0, "make test", "caller"));
  add (records, "seen", "check-run", run_record ("baseline", "tree-old", 1, "make test", "caller"));
  add (records, "seen", "warning", bj_record_warning ("Something odd"));
  add (records, "seen", "commit", bj_record_commit ("commit-old", "tree-old", TRUE));
  add (records, "seen", "commit", bj_record_commit ("commit-new", "tree-new", FALSE));
  add (records, "seen", "machine", machine_record ("demo"));
  return records;
}

static void
test_keys (void)
{
  static const char *const keys[] = { "outcome", "session", "project", "image", "accelerator", "isolation", "started",
                                      "finished", "duration_s", "model", "steps", "commands", "files_changed", "baseline",
                                      "tree", "commit", "published", "check", "summary", "question", "warnings", "timing",
                                      "transcript", "limits", "error", "task", "network", "format", "machines", "files_total" };
  g_autoptr(JsonArray) records = proved_records ();
  g_autoptr(JsonObject) report = NULL;

  add (records, "seen", "end", bj_record_end ("DONE", NULL, NULL));
  report = build (records);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    g_assert_true (json_object_has_member (report, keys[i]));
  g_assert_cmpuint (json_object_get_size (report), ==, G_N_ELEMENTS (keys));
  g_assert_cmpstr (bj_json_get_string (report, "outcome", ""), ==, "DONE");
  g_assert_cmpstr (bj_json_get_string (report, "started", ""), ==, "2025-11-29T21:00:00Z");
  g_assert_cmpstr (bj_json_get_string (report, "finished", ""), ==, "2025-11-29T21:00:16Z");
  g_assert_cmpint (bj_json_get_int (report, "steps", 0), ==, 3);
  g_assert_cmpstr (bj_json_get_string (report, "commit", ""), ==, "commit-new");
  g_assert_cmpstr (bj_json_get_string (report, "baseline", ""), ==, "commit-old");
  g_assert_true (JSON_NODE_HOLDS_NULL (json_object_get_member (report, "published")));
  g_assert_true (JSON_NODE_HOLDS_NULL (json_object_get_member (report, "question")));
}

/* More files than a record has room for: the report says how many, and that it does not name them all. */
static void
test_cut_files (void)
{
  g_autoptr(JsonArray) records = json_array_new ();
  g_autoptr(JsonArray) files = one_file ("a");
  g_autoptr(JsonObject) report = NULL;
  g_autofree char *text = NULL;

  add (records, "seen", "session", session_record ("t", "caller", "b"));
  add (records, "seen", "tree", bj_record_tree ("new", "new", files, 3010, NULL));
  report = build (records);
  g_assert_cmpint (bj_json_get_int (report, "files_total", 0), ==, 3010);
  g_assert_cmpuint (json_array_get_length (bj_json_get_array (report, "files_changed")), ==, 1);
  g_assert_cmpstr (bj_json_array_get_string (bj_json_get_array (report, "warnings"), 0), ==,
                   "3010 files were changed, but only 1 of them are listed; git diff --stat of baseline and commit shows all");
  text = bj_report_to_text (report, "m", 76);
  g_assert_nonnull (strstr (text, "files:       3010, the first 1 of them here"));
}

/* A record without the total is an older daemon's: its report has to stay what was signed. */
static void
test_old_tree (void)
{
  g_autoptr(JsonArray) records = json_array_new ();
  g_autoptr(JsonObject) tree = tree_record ("new", "new");
  g_autoptr(JsonObject) report = NULL;

  json_object_remove_member (tree, "files_total");
  add (records, "seen", "session", session_record ("t", "caller", "b"));
  add (records, "seen", "tree", json_object_ref (tree));
  report = build (records);
  g_assert_false (json_object_has_member (report, "files_total"));
  g_assert_cmpuint (json_array_get_length (bj_json_get_array (report, "files_changed")), ==, 1);
}

static void
test_canonical_parts (void)
{
  static const struct { const char *key, *expected; } parts[] = {
    { "image", "{\"digest\":\"sha256:1234\",\"name\":\"debian\",\"version\":3}" },
    { "timing", "{\"ready\":7.123}" },
    { "summary", "{\"text\":\"Fixed it.\\nReally.\",\"truncated\":false,\"untrusted\":true}" },
    { "transcript", "{\"count\":16,\"head\":\"head\"}" },
  };
  g_autoptr(JsonArray) records = proved_records ();
  g_autoptr(JsonObject) report = build (records);
  g_autofree char *whole = bj_json_to_canonical (report);

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autofree char *text = bj_json_to_canonical (bj_json_get_object (report, parts[i].key));

      g_assert_cmpstr (text, ==, parts[i].expected);
    }
  g_assert_nonnull (strstr (whole, "\"commands\":[{\"command\":\"make test\",\"command_bytes\":9,"
                                   "\"command_sha256\":\"22cc66aa7d2624b4eb4d5b61658614cd6c32477b123afbf7dbc7fc3d7d0f3713\","
                                   "\"command_truncated\":false,\"duration_s\":0.313,\"exit\":2,\"failure\":null,\"lost\":false,"
                                   "\"n\":1,\"record\":3,\"signal\":null,\"stderr_bytes\":0,\"stdout_bytes\":3,"
                                   "\"stdout_sha256\":\"dc51b8c9\",\"timed_out\":false,\"tool\":\"run\",\"truncated\":false},"
                                   "{\"background\":1,\"command\":\"sleep 100\",\"command_bytes\":9,"
                                   "\"command_sha256\":\"6012d921359b0e93daba94bbacef98f928fade7b3579cc85a82f0cf425e7ed06\","
                                   "\"command_truncated\":false,\"duration_s\":null,\"exit\":null,\"n\":2,"
                                   "\"record\":4,\"signal\":9,"));
  g_assert_nonnull (strstr (whole, "\"files_changed\":[{\"added\":12,\"path\":\"src/main.c\",\"path_encoded\":false,"
                                   "\"removed\":3,\"status\":\"modified\"}]"));
  g_assert_nonnull (strstr (whole, "\"warnings\":[\"Something odd\",\"A FIFO was left out: work/pipe\"]"));
  g_assert_nonnull (strstr (whole, "\"machines\":[{\"clock_offset_s\":0.012,\"hostname\":\"belljar-demo\",\"id\":\"demo\","
                                   "\"mac\":\"\",\"machine_id\":\"0a\",\"random\":\"ff\",\"reseeded\":true,"
                                   "\"start\":\"template\",\"uuid\":\"01-23\"}]"));
  g_assert_nonnull (strstr (whole, "\"source\":\"caller\",\"verdict\":\"proved\",\"why\":[]"));
  g_assert_nonnull (strstr (whole, "\"outcome\":\"IN PROGRESS\""));
  g_assert_nonnull (strstr (whole, "\"finished\":null"));
}

/* Every prefix of a transcript gives a report, and none of them says more than it knows. */
static void
test_prefixes (void)
{
  g_autoptr(JsonArray) records = proved_records ();
  g_autoptr(JsonArray) prefix = json_array_new ();

  for (guint i = 0; i < json_array_get_length (records); i++)
    {
      g_autoptr(JsonObject) report = NULL;

      json_array_add_element (prefix, json_node_copy (json_array_get_element (records, i)));
      report = build (prefix);
      g_assert_cmpstr (bj_json_get_string (report, "outcome", ""), ==, "IN PROGRESS");
      g_assert_cmpint (g_str_equal (bj_json_get_string (bj_json_get_object (report, "check"), "verdict", ""), "proved"), ==,
                       i >= 11);
    }
}

typedef struct
{
  const char *name;
  const char *check, *source, *baseline; /* of the session record */
  const char *claimed;                   /* (nullable): what the agent set with set_check */
  const char *tree, *protected_tree;
  struct { const char *where, *tree; int exit; const char *command, *source; } runs[5];
  const char *verdict, *why, *said_source;
} Case;

static const Case cases[] = {
  { "proved", "t", "project", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "project" }, { "baseline", "tree-old", 2, "t", "project" } }, "proved", "", "project" },
  { "protected run on the right tree", "t", "caller", "b", NULL, "new", "mixed",
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" },
      { "protected", "mixed", 0, "t", "caller" } }, "proved", "", "caller" },
  { "protected run on another tree", "t", "caller", "b", NULL, "new", "mixed",
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" },
      { "protected", "new", 0, "t", "caller" } }, "passes", "inputs-changed", "caller" },
  { "protected tree not known", "t", "caller", "b", NULL, "new", NULL,
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" } },
    "passes", "inputs-changed", "caller" },
  { "fresh run on another tree", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "other", 0, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" } }, "none", "not-run", "caller" },
  { "fresh run without a tree", "t", "caller", "b", NULL, NULL, NULL,
    { { "fresh", NULL, 0, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" } }, "none", "not-run", "caller" },
  { "baseline run on another tree", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "new", 2, "t", "caller" } },
    "passes", "baseline-unclean", "caller" },
  { "another command ran", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "true", "caller" }, { "baseline", "tree-old", 2, "t", "caller" } }, "none", "not-run", "caller" },
  { "the agent's check cannot replace the caller's", "t", "caller", "b", "true", "new", "new",
    { { "fresh", "new", 1, "t", "caller" } }, "failed", "check-failed", "caller" },
  { "the agent's check", NULL, NULL, "b", "a", "new", "new",
    { { "fresh", "new", 0, "a", "agent" }, { "baseline", "tree-old", 2, "a", "agent" } }, "passes", "agent-check", "agent" },
  { "a run that calls the agent's check the caller's", NULL, NULL, "b", "a", "new", "new",
    { { "fresh", "new", 0, "a", "caller" }, { "baseline", "tree-old", 2, "a", "caller" } },
    "passes", "agent-check", "agent" },
  { "a source that does not exist", "t", "somebody", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "somebody" }, { "baseline", "tree-old", 2, "t", "somebody" } },
    "passes", "agent-check", "agent" },
  { "the agent's check, protected tree not known", NULL, NULL, "b", "a", "new", NULL,
    { { "fresh", "new", 0, "a", "agent" }, { "baseline", "tree-old", 2, "a", "agent" } }, "passes", "agent-check", "agent" },
  { "no baseline, so no protected tree", "t", "caller", NULL, NULL, "new", NULL, { { "fresh", "new", 0, "t", "caller" } },
    "passes", "no-baseline", "caller" },
  { "no baseline", "t", "caller", NULL, NULL, "new", "new", { { "fresh", "new", 0, "t", "caller" } },
    "passes", "no-baseline", "caller" },
  { "flaky", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "caller" }, { "fresh", "new", 1, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" } },
    "passes", "flaky", "caller" },
  { "three fresh runs, one fails", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "caller" }, { "fresh", "new", 1, "t", "caller" }, { "fresh", "new", 0, "t", "caller" },
      { "baseline", "tree-old", 2, "t", "caller" } }, "passes", "flaky", "caller" },
  { "baseline run twice, one passes", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "tree-old", 2, "t", "caller" },
      { "baseline", "tree-old", 0, "t", "caller" } }, "passes", "baseline-passed", "caller" },
  { "exit 125 is clean", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "tree-old", 125, "t", "caller" } }, "proved", "", "caller" },
  { "exit 126 is not", "t", "caller", "b", NULL, "new", "new",
    { { "fresh", "new", 0, "t", "caller" }, { "baseline", "tree-old", 126, "t", "caller" } },
    "passes", "baseline-unclean", "caller" },
  { "no exit", "t", "caller", "b", NULL, "new", "new", { { "fresh", "new", -1, "t", "caller" } },
    "failed", "check-unclean", "caller" },
  { "only here", "t", "caller", "b", NULL, "new", "new",
    { { "same", NULL, 0, "t", "caller" }, { "fresh", "new", 1, "t", "caller" } }, "passes-here", "check-failed", "caller" },
  { "nobody gave one", NULL, NULL, "b", NULL, "new", "new", { { .where = NULL } }, "none", "no-check", "" },
};

static void
test_verdicts (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const Case *c = &cases[i];
      g_autoptr(JsonArray) records = json_array_new ();
      g_autoptr(JsonObject) report = NULL;
      g_autoptr(GString) why = g_string_new (NULL);
      JsonObject *check;

      g_test_message ("%s", c->name);
      add (records, "seen", "session", session_record (c->check, c->source, c->baseline));
      if (c->claimed != NULL)
        add (records, "claimed", "set-check", bj_record_set_check (c->claimed, ""));
      if (c->tree != NULL)
        add (records, "seen", "tree", tree_record (c->tree, c->protected_tree));
      for (guint j = 0; j < 5 && c->runs[j].where != NULL; j++)
        add (records, "seen", "check-run", run_record (c->runs[j].where, c->runs[j].tree, c->runs[j].exit,
                                                       c->runs[j].command, c->runs[j].source));
      report = build (records);
      check = bj_json_get_object (report, "check");
      for (guint j = 0; j < json_array_get_length (bj_json_get_array (check, "why")); j++)
        g_string_append_printf (why, "%s%s", j > 0 ? "," : "", bj_json_array_get_string (bj_json_get_array (check, "why"), j));
      g_assert_cmpstr (bj_json_get_string (check, "verdict", ""), ==, c->verdict);
      g_assert_cmpstr (why->str, ==, c->why);
      g_assert_cmpstr (bj_json_get_string (check, "source", ""), ==, c->said_source);
    }
}

static const struct { BjCheckRunFacts facts; const char *why; } bad_runs[] = {
  { { .exit = 0, .timed_out = TRUE }, "timeout" },
  { { .exit = 0, .setup_failed = TRUE }, "setup-failed" },
  { { .exit = 0, .failure = "The machine was gone" }, "machine-gone" },
  { { .exit = 0, .signal = 9 }, "check-unclean" },
  { { .exit = 127 }, "check-unclean" },
  { { .exit = 1 }, "check-failed" },
};

static void
test_bad_runs (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad_runs); i++)
    {
      BjCheckRunFacts facts = bad_runs[i].facts;
      g_autoptr(JsonArray) records = json_array_new ();
      g_autoptr(JsonObject) report = NULL;
      JsonObject *check;

      facts.where = "fresh";
      facts.tree = "new";
      facts.command = "t";
      add (records, "seen", "session", session_record ("t", "caller", "b"));
      add (records, "seen", "tree", tree_record ("new", "new"));
      add (records, "seen", "check-run", bj_record_check_run (&facts));
      report = build (records);
      check = bj_json_get_object (report, "check");
      g_assert_cmpstr (bj_json_get_string (check, "verdict", ""), ==, "failed");
      g_assert_cmpstr (bj_json_array_get_string (bj_json_get_array (check, "why"), 0), ==, bad_runs[i].why);
    }
}

/* What only the daemon can see counts for nothing when the agent says it. */
static void
test_claims_are_no_facts (void)
{
  static const char *const kinds[] = { "command", "background", "file", "timing", "tree", "commit", "check-run", "warning",
                                       "limit", "error", "end", "session", "machine", "input" };
  g_autoptr(JsonArray) plain = json_array_new ();
  g_autoptr(JsonArray) records = json_array_new ();
  g_autoptr(JsonObject) plain_report = NULL;
  g_autoptr(JsonObject) report = NULL;
  g_autofree char *expected = NULL;
  g_autofree char *actual = NULL;

  add (plain, "seen", "session", session_record ("t", "caller", "b"));
  add (records, "seen", "session", session_record ("t", "caller", "b"));
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      JsonObject *data = run_record ("fresh", "new", 0, "t", "caller");

      json_object_set_string_member (data, "event", "start");
      json_object_set_string_member (data, "outcome", "DONE");
      json_object_set_string_member (data, "commit", "forged");
      json_object_set_string_member (data, "phase", "ready");
      json_object_set_string_member (data, "text", "forged");
      add (records, "claimed", kinds[i], data);
      add (plain, "claimed", "turn", bj_record_text (""));
    }
  add (records, "seen", "finish", bj_record_text ("a summary cannot be seen"));
  add (plain, "seen", "finish", bj_record_text (""));
  plain_report = build (plain);
  report = build (records);
  expected = bj_json_to_canonical (plain_report);
  actual = bj_json_to_canonical (report);
  g_assert_cmpstr (actual, ==, expected);
}

static void
test_doubles (void)
{
  g_autoptr(JsonArray) records = proved_records ();
  g_autoptr(JsonObject) report = NULL;
  JsonObject *failure;

  add (records, "claimed", "finish", bj_record_text ("second"));
  add (records, "seen", "session", session_record ("true", "caller", NULL));
  add (records, "seen", "end", bj_record_end ("FAILED", "org.belljar1.Error.GuestUnreachable", "gone"));
  add (records, "seen", "end", bj_record_end ("DONE", NULL, NULL));
  add (records, "claimed", "finish", bj_record_text ("after the end"));
  add (records, "seen", "commit", bj_record_commit ("late", "tree", FALSE));
  report = build (records);
  failure = bj_json_get_object (report, "error");
  g_assert_cmpstr (bj_json_get_string (report, "outcome", ""), ==, "FAILED");
  g_assert_cmpstr (bj_json_get_string (failure, "name", ""), ==, "org.belljar1.Error.GuestUnreachable");
  g_assert_cmpstr (bj_json_get_string (bj_json_get_object (report, "summary"), "text", ""), ==, "second");
  g_assert_cmpstr (bj_json_get_string (report, "commit", ""), ==, "commit-new");
  g_assert_cmpstr (bj_json_get_string (bj_json_get_object (report, "check"), "command", ""), ==, "make test");
}

static void
test_no_session (void)
{
  g_autoptr(JsonArray) records = json_array_new ();
  g_autoptr(JsonObject) report = NULL;
  g_autoptr(GError) error = NULL;

  g_assert_null (bj_report_build (records, "head", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);

  /* failed before it began */
  add (records, "seen", "warning", bj_record_warning ("early"));
  add (records, "seen", "end", bj_record_end ("FAILED", "org.belljar1.Error.NoSpace", "full"));
  report = build (records);
  g_assert_cmpstr (bj_json_get_string (report, "outcome", ""), ==, "FAILED");
  g_assert_cmpstr (bj_json_get_string (bj_json_get_object (report, "check"), "verdict", ""), ==, "none");

  json_array_remove_element (records, 1);
  add (records, "claimed", "finish", bj_record_text ("before the session"));
  g_assert_null (bj_report_build (records, "head", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

static void
test_summary_cap (void)
{
  g_autoptr(JsonArray) records = proved_records ();
  g_autoptr(JsonObject) report = NULL;
  g_autofree char *long_text = g_strnfill (6000, '\x1b');
  const char *text;

  add (records, "claimed", "finish", bj_record_text (long_text));
  report = build (records);
  text = bj_json_get_string (bj_json_get_object (report, "summary"), "text", "");
  g_assert_cmpuint (strlen (text), <=, 4096);
  g_assert_true (g_str_has_suffix (text, "\\x1b…"));
  g_assert_true (bj_json_get_boolean (bj_json_get_object (report, "summary"), "truncated"));
}

/* Who waits is for the daemon to say; the question is the model's. */
static void
test_question (void)
{
  static const struct
  {
    const char *by, *type, *text; /* state: its name */
    const char *outcome, *question;
  } steps[] = {
    { "claimed", "ask", "Red?", "IN PROGRESS", NULL },
    { "claimed", "state", "needs-input", "IN PROGRESS", NULL },
    { "seen", "state", "needs-input", "NEEDS INPUT", "Red?" },
    { "claimed", "answer", "yes", "NEEDS INPUT", "Red?" },
    { "seen", "answer", "yes", "IN PROGRESS", NULL },
    { "seen", "state", "running", "IN PROGRESS", NULL },
    { "claimed", "ask", "Sure?", "IN PROGRESS", NULL },
    { "seen", "state", "needs-input", "NEEDS INPUT", "Sure?" },
    { "seen", "state", "verifying", "IN PROGRESS", NULL },
  };
  g_autoptr(JsonArray) records = json_array_new ();

  add (records, "seen", "session", session_record ("make test", "caller", "commit-old"));
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++)
    {
      g_autoptr(JsonObject) report = NULL;

      add (records, steps[i].by, steps[i].type,
           g_str_equal (steps[i].type, "state") ? bj_record_state (steps[i].text)
           : g_str_equal (steps[i].type, "answer") ? bj_record_answer (steps[i].text, 1000) : bj_record_text (steps[i].text));
      report = build (records);
      g_test_message ("step %u", i);
      g_assert_cmpstr (bj_json_get_string (report, "outcome", ""), ==, steps[i].outcome);
      g_assert_cmpstr (bj_json_get_string (report, "question", NULL), ==, steps[i].question);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/report/keys", test_keys);
  g_test_add_func ("/report/cut-files", test_cut_files);
  g_test_add_func ("/report/old-tree", test_old_tree);
  g_test_add_func ("/report/canonical-parts", test_canonical_parts);
  g_test_add_func ("/report/prefixes", test_prefixes);
  g_test_add_func ("/report/verdicts", test_verdicts);
  g_test_add_func ("/report/bad-runs", test_bad_runs);
  g_test_add_func ("/report/claims-are-no-facts", test_claims_are_no_facts);
  g_test_add_func ("/report/doubles", test_doubles);
  g_test_add_func ("/report/question", test_question);
  g_test_add_func ("/report/no-session", test_no_session);
  g_test_add_func ("/report/summary-cap", test_summary_cap);
  return g_test_run ();
}
