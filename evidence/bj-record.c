/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-record.h"

#include "bj-error.h"
#include "bj-json.h"
#include "bj-untrusted.h"

#include <string.h>

#define NAME_CAP 256
#define PATH_CAP 8192
#define LINE_CAP 4096
#define TASK_CAP (64 * 1024)
#define CHECK_CAP (64 * 1024) /* never cuts: a check is bounded before */
#define OUTPUT_CAP (128 * 1024)
#define TAIL_CAP (8 * 1024)
#define FILES_MAX 2000
#define WARNINGS_MAX 200
#define AGENT_BYTES (1024 * 1024)
#define AGENT_DEPTH 16
#define AGENT_VALUES 4096
#define AGENT_STRING_CAP (32 * 1024)
#define AGENT_BUDGET (512 * 1024)

static void
set_line (JsonObject *object, const char *key, const char *text, gsize cap)
{
  g_autofree char *escaped = text != NULL ? bj_untrusted_escape (text, -1, cap) : NULL;

  bj_json_set_string (object, key, escaped);
}

static void
set_block (JsonObject *object, const char *key, const char *text, gsize cap)
{
  g_autofree char *escaped = text != NULL ? bj_untrusted_escape_block (text, -1, cap) : NULL;

  bj_json_set_string (object, key, escaped);
}

/* Text as escaped text, other bytes as {"base64": …}. */
static void
set_bytes (JsonObject *object, const char *key, GBytes *bytes)
{
  gsize size = 0;
  const char *data = bytes != NULL ? g_bytes_get_data (bytes, &size) : NULL;

  if (data == NULL)
    {
      json_object_set_string_member (object, key, "");
    }
  else if (g_utf8_validate_len (data, size, NULL))
    {
      g_autofree char *text = bj_untrusted_escape_block (data, (gssize) size, OUTPUT_CAP);

      json_object_set_string_member (object, key, text);
    }
  else
    {
      g_autofree char *text = g_base64_encode ((const guchar *) data, MIN (size, OUTPUT_CAP / 4 * 3));
      JsonObject *wrapped = json_object_new ();

      json_object_set_string_member (wrapped, "base64", text);
      json_object_set_object_member (object, key, wrapped);
    }
}

/* Exit status and signal: null for what did not happen. */
static void
set_end (JsonObject *object, int exit, int signal)
{
  if (exit >= 0)
    json_object_set_int_member (object, "exit", exit);
  else
    json_object_set_null_member (object, "exit");
  if (signal > 0)
    json_object_set_int_member (object, "signal", signal);
  else
    json_object_set_null_member (object, "signal");
}

/* What is cut can still be told from anything else with the same beginning. */
static void
set_command (JsonObject *object, const char *bytes, gsize size)
{
  g_autofree char *whole = bj_untrusted_escape (bytes, (gssize) size, 0);
  g_autofree char *shown = bj_untrusted_escape (bytes, (gssize) size, LINE_CAP);
  g_autofree char *digest = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) bytes, size);

  json_object_set_string_member (object, "command", shown);
  json_object_set_int_member (object, "command_bytes", (gint64) size);
  json_object_set_string_member (object, "command_sha256", digest);
  json_object_set_boolean_member (object, "command_truncated", !g_str_equal (whole, shown));
}

static void
set_size (JsonObject *object, const char *key, guint64 size)
{
  json_object_set_int_member (object, key, (gint64) MIN (size, (guint64) G_MAXINT64));
}

static JsonArray *
line_array (const char *const *lines, guint max)
{
  JsonArray *array = json_array_new ();

  for (guint i = 0; lines != NULL && lines[i] != NULL && i < max; i++)
    {
      g_autofree char *escaped = bj_untrusted_clean (lines[i], FALSE, LINE_CAP);

      json_array_add_string_element (array, escaped);
    }
  return array;
}

static JsonObject *
image_object (const BjSessionFacts *facts)
{
  JsonObject *image = json_object_new ();

  set_line (image, "name", facts->image_name, NAME_CAP);
  json_object_set_int_member (image, "version", facts->image_version);
  set_line (image, "digest", facts->image_digest, NAME_CAP);
  return image;
}

static JsonObject *
check_object (const BjSessionFacts *facts)
{
  JsonObject *check = json_object_new ();

  set_line (check, "command", facts->check_command, CHECK_CAP);
  set_line (check, "setup", facts->check_setup, CHECK_CAP);
  set_line (check, "source", facts->check_command != NULL ? facts->check_source : NULL, NAME_CAP);
  json_object_set_array_member (check, "protect", line_array (facts->protect, WARNINGS_MAX));
  json_object_set_boolean_member (check, "network", facts->check_network);
  return check;
}

JsonObject *
bj_record_session (const BjSessionFacts *facts)
{
  JsonObject *data = json_object_new ();

  set_line (data, "session", facts->session, NAME_CAP);
  set_line (data, "kind", facts->kind, NAME_CAP);
  set_line (data, "project", facts->project, NAME_CAP);
  json_object_set_object_member (data, "image", image_object (facts));
  set_line (data, "baseline", facts->baseline, NAME_CAP);
  set_line (data, "baseline_tree", facts->baseline_tree, NAME_CAP);
  set_block (data, "task", facts->task, TASK_CAP);
  json_object_set_object_member (data, "check", check_object (facts));
  set_line (data, "model", facts->model, NAME_CAP);
  set_line (data, "accelerator", facts->accelerator, NAME_CAP);
  set_line (data, "network", facts->network, NAME_CAP);
  json_object_set_object_member (data, "isolation", facts->isolation != NULL ? json_object_ref (facts->isolation)
                                                                             : json_object_new ());
  json_object_set_int_member (data, "owner_uid", facts->owner_uid);
  json_object_set_int_member (data, "steps_limit", facts->steps_limit);
  json_object_set_int_member (data, "wall_clock_s", facts->wall_clock_s);
  return data;
}

JsonObject *
bj_record_state (const char *state)
{
  JsonObject *data = json_object_new ();

  set_line (data, "state", state, NAME_CAP);
  return data;
}

JsonObject *
bj_record_machine (const BjMachineRecord *facts)
{
  JsonObject *data = json_object_new ();

  set_line (data, "id", facts->id, NAME_CAP);
  set_line (data, "start", facts->start, NAME_CAP);
  bj_json_set_seconds (data, "clock_offset_s", facts->clock_offset_s);
  set_line (data, "hostname", facts->hostname, NAME_CAP);
  set_line (data, "machine_id", facts->machine_id, NAME_CAP);
  set_line (data, "mac", facts->mac, NAME_CAP);
  set_line (data, "random", facts->random, NAME_CAP);
  set_line (data, "uuid", facts->uuid, NAME_CAP);
  json_object_set_boolean_member (data, "reseeded", facts->reseeded);
  return data;
}

JsonObject *
bj_record_timing (const char *phase, double seconds)
{
  JsonObject *data = json_object_new ();

  set_line (data, "phase", phase, NAME_CAP);
  bj_json_set_seconds (data, "seconds", seconds);
  return data;
}

JsonObject *
bj_record_command (const BjCommandFacts *facts)
{
  JsonObject *data = json_object_new ();
  gsize size;
  const char *command = g_bytes_get_data (facts->command, &size);

  set_line (data, "tool", facts->tool, NAME_CAP);
  set_command (data, command != NULL ? command : "", size);
  set_end (data, facts->failure != NULL ? -1 : facts->exit, facts->signal);
  json_object_set_boolean_member (data, "timed_out", facts->timed_out);
  bj_json_set_seconds (data, "duration_s", facts->duration_s);
  set_bytes (data, "stdout", facts->out);
  set_bytes (data, "stderr", facts->err);
  set_size (data, "stdout_bytes", facts->out_total);
  set_size (data, "stderr_bytes", facts->err_total);
  set_line (data, "stdout_sha256", facts->out_sha256, NAME_CAP);
  json_object_set_boolean_member (data, "truncated", facts->truncated);
  set_line (data, "failure", facts->failure, LINE_CAP);
  json_object_set_boolean_member (data, "lost", facts->failure != NULL && facts->lost);
  return data;
}

JsonObject *
bj_record_background (const char *event, guint id, const char *command, int exit, int signal)
{
  JsonObject *data = json_object_new ();

  set_line (data, "event", event, NAME_CAP);
  json_object_set_int_member (data, "id", id);
  if (command != NULL)
    set_command (data, command, strlen (command));
  else
    json_object_set_null_member (data, "command");
  set_end (data, exit, signal);
  return data;
}

JsonObject *
bj_record_start_failure (const char *command, gboolean lost, const char *failure)
{
  JsonObject *data = bj_record_background ("start", 0, command, -1, 0);

  set_line (data, "failure", failure, LINE_CAP);
  json_object_set_boolean_member (data, "lost", lost);
  return data;
}

JsonObject *
bj_record_file (const char *op, const char *tool, const char *path, guint64 bytes)
{
  JsonObject *data = json_object_new ();
  gboolean encoded = FALSE;
  g_autofree char *name = bj_untrusted_encode_name (path, -1, &encoded);
  g_autofree char *cut = bj_untrusted_cut (name, PATH_CAP, NULL);

  set_line (data, "op", op, NAME_CAP);
  set_line (data, "tool", tool, NAME_CAP);
  json_object_set_string_member (data, "path", cut);
  json_object_set_boolean_member (data, "path_encoded", encoded);
  set_size (data, "bytes", bytes);
  return data;
}

JsonObject *
bj_record_input (const char *tool, const char *what, const char *failure)
{
  JsonObject *data = json_object_new ();

  set_line (data, "tool", tool, NAME_CAP);
  set_line (data, "what", what, LINE_CAP);
  if (failure != NULL)
    set_line (data, "failure", failure, LINE_CAP);
  return data;
}

JsonObject *
bj_record_screenshot (const char *file, const char *sha256, guint64 bytes)
{
  JsonObject *data = json_object_new ();

  set_line (data, "file", file, NAME_CAP);
  set_line (data, "sha256", sha256, NAME_CAP);
  set_size (data, "bytes", bytes);
  return data;
}

JsonObject *
bj_record_model (guint turn, const char *path, guint status, guint64 request_bytes, const char *request_sha256,
                 guint64 response_bytes, const char *response_sha256, double duration_s, const char *error)
{
  JsonObject *data = json_object_new ();

  json_object_set_int_member (data, "turn", turn);
  set_line (data, "path", path, NAME_CAP);
  json_object_set_int_member (data, "status", status);
  set_size (data, "request_bytes", request_bytes);
  set_line (data, "request_sha256", request_sha256, NAME_CAP);
  set_size (data, "response_bytes", response_bytes);
  set_line (data, "response_sha256", response_sha256, NAME_CAP);
  bj_json_set_seconds (data, "duration_s", duration_s);
  set_line (data, "error", error, LINE_CAP);
  return data;
}

static JsonObject *
changed_file (JsonObject *from)
{
  JsonObject *file = json_object_new ();
  g_autofree char *path = bj_untrusted_clean (bj_json_get_string (from, "path", ""), FALSE, PATH_CAP);
  g_autofree char *status = bj_untrusted_clean (bj_json_get_string (from, "status", ""), FALSE, NAME_CAP);

  json_object_set_string_member (file, "path", path);
  json_object_set_boolean_member (file, "path_encoded", bj_json_get_boolean (from, "path_encoded"));
  json_object_set_string_member (file, "status", status);
  json_object_set_int_member (file, "added", bj_json_get_int (from, "added", 0));
  json_object_set_int_member (file, "removed", bj_json_get_int (from, "removed", 0));
  return file;
}

JsonObject *
bj_record_tree (const char *tree, const char *protected_tree, JsonArray *files_changed, guint64 files_total,
                const char *const *warnings)
{
  JsonObject *data = json_object_new ();
  JsonArray *files = json_array_new ();
  guint count = files_changed != NULL ? json_array_get_length (files_changed) : 0;

  for (guint i = 0; i < MIN (count, FILES_MAX); i++)
    json_array_add_object_element (files, changed_file (bj_json_array_get_object (files_changed, i)));
  set_line (data, "tree", tree, NAME_CAP);
  set_line (data, "protected_tree", protected_tree, NAME_CAP);
  json_object_set_array_member (data, "files_changed", files);
  set_size (data, "files_total", MAX (files_total, count));
  json_object_set_array_member (data, "warnings", line_array (warnings, WARNINGS_MAX));
  return data;
}

JsonObject *
bj_record_check_run (const BjCheckRunFacts *facts)
{
  JsonObject *data = json_object_new ();
  gsize size = 0;
  const char *output = facts->output != NULL ? g_bytes_get_data (facts->output, &size) : NULL;
  g_autofree char *tail = bj_untrusted_escape_tail (output != NULL ? output : "", (gssize) size, TAIL_CAP);

  set_line (data, "where", facts->where, NAME_CAP);
  set_line (data, "tree", facts->tree, NAME_CAP);
  set_end (data, facts->failure != NULL ? -1 : facts->exit, facts->signal);
  json_object_set_boolean_member (data, "timed_out", facts->timed_out);
  json_object_set_boolean_member (data, "setup_failed", facts->setup_failed);
  set_line (data, "failure", facts->failure, LINE_CAP);
  json_object_set_boolean_member (data, "lost", facts->failure != NULL && facts->lost);
  json_object_set_boolean_member (data, "stopped", facts->failure != NULL && facts->stopped);
  bj_json_set_seconds (data, "duration_s", facts->duration_s);
  json_object_set_string_member (data, "tail", tail);
  json_object_set_boolean_member (data, "network", facts->network);
  set_line (data, "command", facts->command, CHECK_CAP);
  set_line (data, "source", facts->source, NAME_CAP);
  set_line (data, "setup", facts->setup, CHECK_CAP);
  return data;
}

JsonObject *
bj_record_commit (const char *commit, const char *tree, gboolean is_baseline)
{
  JsonObject *data = json_object_new ();

  set_line (data, "commit", commit, NAME_CAP);
  set_line (data, "tree", tree, NAME_CAP);
  json_object_set_boolean_member (data, "baseline", is_baseline);
  return data;
}

JsonObject *
bj_record_warning (const char *text)
{
  JsonObject *data = json_object_new ();
  g_autofree char *clean = bj_untrusted_clean (text, FALSE, LINE_CAP);

  json_object_set_string_member (data, "text", clean);
  return data;
}

JsonObject *
bj_record_limit (const char *limit, guint64 value)
{
  JsonObject *data = json_object_new ();

  set_line (data, "limit", limit, NAME_CAP);
  set_size (data, "value", value);
  return data;
}

JsonObject *
bj_record_error (const char *error_name, const char *message)
{
  JsonObject *data = json_object_new ();

  set_line (data, "name", error_name, NAME_CAP);
  set_line (data, "message", message, LINE_CAP);
  return data;
}

JsonObject *
bj_record_end (const char *outcome, const char *error_name, const char *message)
{
  JsonObject *data = bj_record_error (error_name, message);

  set_line (data, "outcome", outcome, NAME_CAP);
  return data;
}

JsonObject *
bj_record_answer (const char *text, guint32 uid)
{
  JsonObject *data = bj_record_text (text);

  json_object_set_int_member (data, "uid", uid);
  return data;
}

JsonObject *
bj_record_park (guint64 bytes, double seconds, guint users)
{
  JsonObject *data = json_object_new ();

  set_size (data, "bytes", bytes);
  bj_json_set_seconds (data, "seconds", seconds);
  json_object_set_int_member (data, "users", users);
  return data;
}

JsonObject *
bj_record_text (const char *text)
{
  JsonObject *data = json_object_new ();

  set_block (data, "text", text, TASK_CAP);
  return data;
}

JsonObject *
bj_record_plan (guint id, const char *text, const char *status)
{
  JsonObject *data = json_object_new ();

  json_object_set_int_member (data, "id", id);
  set_line (data, "text", text, LINE_CAP);
  set_line (data, "status", status, NAME_CAP);
  return data;
}

JsonObject *
bj_record_set_check (const char *command, const char *setup)
{
  JsonObject *data = json_object_new ();

  set_line (data, "command", command, CHECK_CAP);
  set_line (data, "setup", setup, CHECK_CAP);
  return data;
}

static JsonNode *tame_node (JsonNode *node, gsize *budget);

/* A string within what is left of the budget. */
static char *
tame_string (const char *text, gsize cap, gsize *budget)
{
  char *escaped = bj_untrusted_escape_block (text, -1, MIN (cap, MAX (*budget, 4)));

  *budget -= MIN (*budget, strlen (escaped));
  return escaped;
}

static JsonNode *
tame_object (JsonObject *object, gsize *budget)
{
  g_autoptr(GList) keys = json_object_get_members (object);
  JsonObject *tame = json_object_new ();
  JsonNode *node = json_node_new (JSON_NODE_OBJECT);

  for (GList *l = keys; l != NULL && *budget > 0; l = l->next)
    {
      g_autofree char *key = tame_string (l->data, NAME_CAP, budget);

      json_object_set_member (tame, key, tame_node (json_object_get_member (object, l->data), budget));
    }
  json_node_take_object (node, tame);
  return node;
}

static JsonNode *
tame_array (JsonArray *array, gsize *budget)
{
  JsonArray *tame = json_array_new ();
  JsonNode *node = json_node_new (JSON_NODE_ARRAY);

  for (guint i = 0; i < json_array_get_length (array) && *budget > 0; i++)
    json_array_add_element (tame, tame_node (json_array_get_element (array, i), budget));
  json_node_take_array (node, tame);
  return node;
}

/* A copy of what a parser within bounds made: no deeper than AGENT_DEPTH. */
static JsonNode *
tame_node (JsonNode *node, gsize *budget)
{
  g_autofree char *text = NULL;

  if (JSON_NODE_HOLDS_OBJECT (node))
    return tame_object (json_node_get_object (node), budget);
  if (JSON_NODE_HOLDS_ARRAY (node))
    return tame_array (json_node_get_array (node), budget);
  if (!JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) != G_TYPE_STRING)
    return json_node_copy (node);
  text = tame_string (json_node_get_string (node), AGENT_STRING_CAP, budget);
  return json_node_init_string (json_node_alloc (), text);
}

JsonObject *
bj_record_from_agent (const char *json, GError **error)
{
  gsize budget = AGENT_BUDGET;
  gsize length = strnlen (json, AGENT_BYTES + 1);
  g_autoptr(JsonObject) object = NULL;
  g_autoptr(JsonNode) tame = NULL;
  JsonObject *data;

  if (length > AGENT_BYTES)
    {
      bj_error_set (error, BJ_ERROR_LIMIT, "The record is longer than %u bytes", (guint) AGENT_BYTES);
      return NULL;
    }
  object = bj_json_parse (json, length, AGENT_DEPTH, AGENT_VALUES, error);
  if (object == NULL)
    return NULL;
  tame = tame_object (object, &budget);
  data = json_node_dup_object (tame);
  if (budget == 0)
    json_object_set_boolean_member (data, "cut", TRUE);
  return data;
}
