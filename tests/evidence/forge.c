/* SPDX-License-Identifier: GPL-3.0-or-later */

/*
 * Writes evidence as the daemon does, with whatever bytes a list gives it: evidence-forge
 *   make DIR            standard input has a JSON object a line, each a record; leaves transcript.jsonl and report.json, signed
 *                       with DIR/report.key
 *   sign DIR            the report once more, from the transcript as it is now
 *   text FILE WIDTH     a report as people read it
 *   protect COMMAND     what a check rests on, one pattern a line
 * Strings that a guest, a model or a person chose are base64 in the list: any bytes go.
 */

#include "bj-fd.h"
#include "bj-json.h"
#include "bj-project-protect.h"
#include "bj-record.h"
#include "bj-report.h"
#include "bj-transcript.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64
#define VALUES_MAX (4 * 1024 * 1024)

/* Strings live as long as the program, which is short. */
static GBytes *
get_bytes (JsonObject *from, const char *key)
{
  const char *text = bj_json_get_string (from, key, NULL);
  gsize size = 0;
  guint8 *data = text != NULL ? g_base64_decode (text, &size) : NULL;

  return data != NULL ? g_bytes_new_take (data, size) : NULL;
}

static const char *
get (JsonObject *from, const char *key, const char *fallback)
{
  g_autoptr(GBytes) bytes = get_bytes (from, key);
  gsize size = 0;
  const char *data = bytes != NULL ? g_bytes_get_data (bytes, &size) : NULL;

  if (bytes == NULL)
    return fallback;
  return g_intern_string (data != NULL ? g_strndup (data, size) : "");
}

static int
get_int (JsonObject *from, const char *key, int fallback)
{
  return (int) bj_json_get_int (from, key, fallback);
}

static JsonObject *
make_session (JsonObject *from)
{
  const BjSessionFacts facts = {
    .session = get (from, "session", "abcd2345"), .kind = "task", .project = "demo", .image_name = "debian", .image_version = 1,
    .image_digest = "sha256:12", .baseline = get (from, "baseline", NULL), .baseline_tree = get (from, "baseline_tree", NULL),
    .task = get (from, "task", "mend it"), .check_command = get (from, "check", NULL), .check_source = get (from, "source", NULL),
    .model = "replay", .accelerator = "tcg", .network = "none", .owner_uid = 1000, .steps_limit = 50, .wall_clock_s = 600,
  };

  return bj_record_session (&facts);
}

static JsonObject *
make_command (JsonObject *from)
{
  g_autoptr(GBytes) command = get_bytes (from, "command");
  g_autoptr(GBytes) out = get_bytes (from, "out");
  const BjCommandFacts facts = {
    .tool = get (from, "tool", "run"), .command = command, .exit = get_int (from, "exit", 0), .duration_s = 0.5, .out = out,
    .out_total = out != NULL ? g_bytes_get_size (out) : 0, .out_sha256 = "ab", .failure = get (from, "failure", NULL),
    .lost = bj_json_get_boolean (from, "lost"), .timed_out = bj_json_get_boolean (from, "timed_out"),
    .truncated = bj_json_get_boolean (from, "truncated"),
  };

  return bj_record_command (&facts);
}

static JsonObject *
make_tree (JsonObject *from)
{
  JsonArray *files = bj_json_get_array (from, "files");
  g_autoptr(JsonArray) changed = json_array_new ();
  const char *warnings[] = { get (from, "warning", NULL), NULL };

  for (guint i = 0; files != NULL && i < json_array_get_length (files); i++)
    {
      JsonObject *file = bj_json_array_get_object (files, i);
      JsonObject *entry = json_object_new ();

      json_object_set_string_member (entry, "path", get (file, "path", ""));
      json_object_set_boolean_member (entry, "path_encoded", bj_json_get_boolean (file, "encoded"));
      json_object_set_string_member (entry, "status", "modified");
      json_object_set_int_member (entry, "added", 12);
      json_object_set_int_member (entry, "removed", 3);
      json_array_add_object_element (changed, entry);
    }
  return bj_record_tree (get (from, "tree", "tree-new"), get (from, "protected", NULL), changed, 0, warnings);
}

static JsonObject *
make_check_run (JsonObject *from)
{
  g_autoptr(GBytes) output = get_bytes (from, "output");
  const BjCheckRunFacts facts = {
    .where = get (from, "where", "fresh"), .tree = get (from, "tree", NULL), .exit = get_int (from, "exit", 0),
    .signal = get_int (from, "signal", 0), .timed_out = bj_json_get_boolean (from, "timed_out"),
    .setup_failed = bj_json_get_boolean (from, "setup_failed"), .failure = get (from, "failure", NULL),
    .lost = bj_json_get_boolean (from, "lost"), .duration_s = 1.5, .output = output, .command = get (from, "command", NULL),
    .source = get (from, "source", "caller"),
  };

  return bj_record_check_run (&facts);
}

static JsonObject *
make_file (JsonObject *from)
{
  return bj_record_file ("write", get (from, "tool", "write_file"), get (from, "path", "x"), 5);
}

static JsonObject *
make_commit (JsonObject *from)
{
  return bj_record_commit (get (from, "commit", "commit-new"), get (from, "tree", "tree-new"), FALSE);
}

static JsonObject *
make_warning (JsonObject *from)
{
  return bj_record_warning (get (from, "text", ""));
}

static JsonObject *
make_text (JsonObject *from)
{
  return bj_record_text (get (from, "text", ""));
}

static JsonObject *
make_set_check (JsonObject *from)
{
  return bj_record_set_check (get (from, "command", ""), get (from, "setup", NULL));
}

static JsonObject *
make_plan (JsonObject *from)
{
  return bj_record_plan (1, get (from, "text", ""), get (from, "status", "todo"));
}

static JsonObject *
make_end (JsonObject *from)
{
  return bj_record_end (get (from, "outcome", "DONE"), get (from, "name", NULL), get (from, "message", NULL));
}

static const struct
{
  const char *type;
  gboolean seen;
  JsonObject *(*make) (JsonObject *from);
} records[] = {
  { "session", TRUE, make_session }, { "command", TRUE, make_command }, { "tree", TRUE, make_tree },
  { "check-run", TRUE, make_check_run }, { "file", TRUE, make_file }, { "commit", TRUE, make_commit },
  { "warning", TRUE, make_warning }, { "end", TRUE, make_end }, { "finish", FALSE, make_text }, { "note", FALSE, make_text },
  { "set-check", FALSE, make_set_check }, { "plan", FALSE, make_plan },
};

/* What the agent sends goes the way of its verb; everything else the way of the daemon's own records. */
static gboolean
add_record (BjTranscript *transcript, JsonObject *from, GError **error)
{
  const char *type = bj_json_get_string (from, "record", "");
  gboolean seen = FALSE;
  JsonObject *data = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (records) && data == NULL; i++)
    if (g_str_equal (records[i].type, type))
      {
        seen = records[i].seen;
        data = records[i].make (from);
      }
  if (data == NULL)
    data = bj_record_from_agent (get (from, "json", "{}"), error);
  if (bj_json_has (from, "seen"))
    seen = bj_json_get_boolean (from, "seen");
  return data != NULL && bj_transcript_append (transcript, seen, type, data, error);
}

static gboolean
sign (const char *dir, GError **error)
{
  g_autofree char *transcript = g_build_filename (dir, "transcript.jsonl", NULL);
  g_autofree char *key_path = g_build_filename (dir, "report.key", NULL);
  g_autofree char *path = g_build_filename (dir, "report.json", NULL);
  g_autofree char *head = NULL;
  g_autofree char *text = NULL;
  g_auto(BjFd) fd = open (transcript, O_RDONLY | O_CLOEXEC);
  g_autoptr(JsonArray) list = bj_transcript_read (fd, &head, NULL, error);
  g_autoptr(JsonObject) report = list != NULL ? bj_report_build (list, head, error) : NULL;
  g_autoptr(BjReportKey) key = report != NULL ? bj_report_key_load (key_path, error) : NULL;
  g_autoptr(JsonNode) node = NULL;

  if (key == NULL || !bj_report_sign (report, key, error))
    return FALSE;
  node = json_node_init_object (json_node_alloc (), report);
  text = json_to_string (node, FALSE);
  return g_file_set_contents (path, text, -1, error);
}

static gboolean
make (const char *dir, GError **error)
{
  g_autofree char *path = g_build_filename (dir, "transcript.jsonl", NULL);
  g_autoptr(GBytes) input = bj_fd_read_to_end (STDIN_FILENO, 256 * 1024 * 1024, error);
  g_autofree char *text = input != NULL ? g_strndup (g_bytes_get_data (input, NULL), g_bytes_get_size (input)) : NULL;
  g_auto(GStrv) lines = text != NULL ? g_strsplit (text, "\n", -1) : NULL;
  g_autoptr(BjTranscript) transcript = lines != NULL ? bj_transcript_create (path, error) : NULL;

  for (guint i = 0; transcript != NULL && lines[i] != NULL; i++)
    {
      g_autoptr(JsonObject) from = NULL;

      if (*lines[i] == '\0')
        continue;
      from = bj_json_parse (lines[i], strlen (lines[i]), DEPTH_MAX, VALUES_MAX, error);
      if (from == NULL || !add_record (transcript, from, error))
        return FALSE;
    }
  return transcript != NULL && sign (dir, error);
}

static gboolean
show (const char *path, const char *width, GError **error)
{
  guint64 columns = 0;
  gsize size;
  g_autofree char *json = NULL;
  g_autofree char *text = NULL;
  g_autoptr(JsonObject) report = NULL;

  if (!g_ascii_string_to_unsigned (width, 10, 1, 1000, &columns, error) || !g_file_get_contents (path, &json, &size, error))
    return FALSE;
  report = bj_json_parse (json, size, DEPTH_MAX, VALUES_MAX, error);
  if (report == NULL)
    return FALSE;
  text = bj_report_to_text (report, NULL, (guint) columns);
  return bj_fd_write_all (STDOUT_FILENO, text, strlen (text), error);
}

static gboolean
protect (const char *command)
{
  g_auto(GStrv) named = bj_project_default_protect (command);
  g_auto(GStrv) never = bj_project_never_added ();

  for (guint i = 0; named[i] != NULL; i++)
    g_print ("%s\n", named[i]);
  for (guint i = 0; never[i] != NULL; i++)
    g_print ("%s\n", never[i]);
  return TRUE;
}

int
main (int argc, char **argv)
{
  g_autoptr(GError) error = NULL;
  gboolean ok = FALSE;

  if (argc == 3 && g_str_equal (argv[1], "make"))
    ok = make (argv[2], &error);
  else if (argc == 3 && g_str_equal (argv[1], "sign"))
    ok = sign (argv[2], &error);
  else if (argc == 4 && g_str_equal (argv[1], "text"))
    ok = show (argv[2], argv[3], &error);
  else if (argc == 3 && g_str_equal (argv[1], "protect"))
    ok = protect (argv[2]);
  if (ok)
    return 0;
  g_printerr ("%s\n", error != NULL ? error->message : "evidence-forge make|sign|text|protect");
  return 1;
}
