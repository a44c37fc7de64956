/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-agent"

/* The verbs of org.belljar1.Agent. Each checks its arguments, acts, and leaves a record. */

#include "bj-agent-verbs.h"

#include "bj-error.h"
#include "bj-options.h"
#include "bj-record.h"
#include "bj-session-command.h"
#include "bj-untrusted.h"

#include <string.h>

#define TIMEOUT_DEFAULT_S 600
#define TIMEOUT_MAX_S 3600
#define STDIN_MAX (1024 * 1024)
#define LABEL_MAX (16 * 1024)
#define TEXT_MAX (16 * 1024)
#define FILE_CHUNK_MAX (1024 * 1024)
#define WRITE_MAX (8 * 1024 * 1024)
#define POLL_WAIT_MAX_S 60
#define PLAN_MAX 200
#define RECORD_MAX (1024 * 1024)
#define FAILURE_MAX 500
#define MEMORY_MAX (32 * 1024 * 1024)
#define PATH_BYTES_MAX 4096

static const BjOption exec_options[] = {
  { "timeout", "u", NULL }, { "cwd", "ay", NULL }, { "stdin", "ay", NULL }, { "user", "s", NULL },
};
static const BjOption write_options[] = { { "mode", "u", NULL }, { "append", "b", NULL }, { "tool", "s", NULL } };

char *
bj_agent_verb_dup_path (GVariant *bytes, GError **error)
{
  gsize length;
  const char *data = g_variant_get_fixed_array (bytes, &length, 1);

  if (length > 0 && data[length - 1] == '\0')
    length--;
  if (length > 0 && length <= PATH_BYTES_MAX && memchr (data, '\0', length) == NULL)
    return g_strndup (data, length);
  bj_error_set (error, BJ_ERROR_INVALID, "A path has 1 to %d bytes and no NUL among them", PATH_BYTES_MAX);
  return NULL;
}

static GBytes *
dup_bytes (GVariant *array)
{
  gsize length;
  gconstpointer data = g_variant_get_fixed_array (array, &length, 1);

  return g_bytes_new (data, length);
}

static GVariant *
bytes_to_variant (GBytes *bytes)
{
  return g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, bytes, TRUE);
}

static gboolean
check_text (const char *what, const char *text, gsize max, GError **error)
{
  if (strlen (text) <= max)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "%s may have at most %" G_GSIZE_FORMAT " bytes", what, max);
}

/* A command as it came from the agent, checked. */
typedef struct
{
  BjExec exec;
  GStrv argv;
  char *cwd;
  char *user;
  GBytes *input;
} BjVerbExec;

static void
verb_exec_clear (BjVerbExec *self)
{
  g_strfreev (self->argv);
  g_free (self->cwd);
  g_free (self->user);
  g_clear_pointer (&self->input, g_bytes_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjVerbExec, verb_exec_clear)

static gboolean
parse_exec (BjAgentPeer *peer, GVariant *argv, GVariant *options, BjVerbExec *out, GError **error)
{
  BjContext *context = bj_session_get_context (bj_agent_peer_get_session (peer));
  g_autoptr(GVariant) cwd = NULL;
  g_autoptr(GVariant) input = NULL;

  if (!bj_options_check (options, exec_options, G_N_ELEMENTS (exec_options), error))
    return FALSE;
  out->argv = bj_session_dup_argv (argv, error);
  if (out->argv == NULL)
    return FALSE;
  cwd = g_variant_lookup_value (options, "cwd", G_VARIANT_TYPE_BYTESTRING);
  if (cwd != NULL && (out->cwd = bj_agent_verb_dup_path (cwd, error)) == NULL)
    return FALSE;
  input = g_variant_lookup_value (options, "stdin", G_VARIANT_TYPE_BYTESTRING);
  if (input != NULL && g_variant_get_size (input) > STDIN_MAX)
    return bj_error_set (error, BJ_ERROR_INVALID, "Standard input may have at most %d bytes", STDIN_MAX);
  out->input = input != NULL ? dup_bytes (input) : NULL;
  g_variant_lookup (options, "user", "s", &out->user);
  out->exec.timeout_s = TIMEOUT_DEFAULT_S;
  g_variant_lookup (options, "timeout", "u", &out->exec.timeout_s);
  if (out->exec.timeout_s < 1 || out->exec.timeout_s > TIMEOUT_MAX_S)
    return bj_error_set (error, BJ_ERROR_INVALID, "The timeout is 1 to %d seconds", TIMEOUT_MAX_S);
  out->exec.argv = (const char *const *) out->argv;
  out->exec.cwd = out->cwd;
  out->exec.user = out->user;
  out->exec.input = out->input;
  out->exec.environ = bj_session_environ;
  out->exec.cap = context->config->output_bytes;
  return TRUE;
}

static GVariant *
verb_get_task (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);
  g_auto(GVariantDict) task = G_VARIANT_DICT_INIT (bj_agent_peer_get_task (peer));
  gint64 left = bj_session_get_deadline (session) - g_get_real_time () / G_USEC_PER_SEC;
  guint steps = bj_session_get_plan (session)->steps;

  g_variant_dict_insert (&task, "seconds", "u", (guint32) CLAMP (left, 0, G_MAXUINT32));
  g_variant_dict_insert (&task, "steps", "u", steps - MIN (steps, bj_session_get_steps (session)));
  return g_variant_new ("(@a{sv})", g_variant_dict_end (&task));
}

static GVariant *
exec_result_to_variant (const BjExecResult *result)
{
  g_auto(GVariantBuilder) out = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);

  g_variant_builder_add (&out, "{sv}", "exit", g_variant_new_int32 (result->exit));
  g_variant_builder_add (&out, "{sv}", "signal", g_variant_new_uint32 ((guint32) result->signal));
  g_variant_builder_add (&out, "{sv}", "timed-out", g_variant_new_boolean (result->timed_out));
  g_variant_builder_add (&out, "{sv}", "stdout", bytes_to_variant (result->out));
  g_variant_builder_add (&out, "{sv}", "stderr", bytes_to_variant (result->err));
  g_variant_builder_add (&out, "{sv}", "stdout-bytes", g_variant_new_uint64 (result->out_total));
  g_variant_builder_add (&out, "{sv}", "stderr-bytes", g_variant_new_uint64 (result->err_total));
  g_variant_builder_add (&out, "{sv}", "truncated", g_variant_new_boolean (result->truncated));
  g_variant_builder_add (&out, "{sv}", "duration", g_variant_new_double (result->duration_s));
  return g_variant_builder_end (&out);
}

static GVariant *
verb_exec (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *tool, *label;
  g_autoptr(GVariant) argv = NULL;
  g_autoptr(GVariant) options = NULL;
  g_auto(BjVerbExec) command = { 0 };
  g_auto(BjExecResult) result = { 0 };
  g_autoptr(GBytes) whole = NULL;

  g_variant_get (arguments, "(&s&s@aay@a{sv})", &tool, &label, &argv, &options);
  if (!check_text ("A label", label, LABEL_MAX, error) || !check_text ("A tool's name", tool, 64, error)
      || !parse_exec (peer, argv, options, &command, error))
    return NULL;
  whole = bj_session_describe_exec (&command.exec); /* not the label: that is what the agent says of it */
  if (!bj_session_run_command (bj_agent_peer_get_session (peer), tool, whole, &command.exec, NULL, &result,
                               bj_agent_peer_get_cancellable (peer), error))
    return NULL;
  return g_variant_new ("(@a{sv})", exec_result_to_variant (&result));
}

BjMachine *
bj_agent_verb_get_machine (BjAgentPeer *peer, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);

  if (!bj_session_wait_unpaused (session, error))
    return NULL;
  return bj_session_dup_machine (session, error);
}

/* Without its input, which is sent once it runs. */
static char *
dup_command (const BjExec *exec)
{
  BjExec plain = *exec;
  g_autoptr(GBytes) whole = NULL;

  plain.input = NULL;
  whole = bj_session_describe_exec (&plain);
  return g_strndup (g_bytes_get_data (whole, NULL), g_bytes_get_size (whole));
}

static GVariant *
verb_start (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *label;
  guint id = 0;
  g_autoptr(GVariant) argv = NULL;
  g_autoptr(GVariant) options = NULL;
  g_auto(BjVerbExec) command = { 0 };
  g_autoptr(BjMachine) machine = NULL;
  g_autoptr(GError) failure = NULL;
  g_autofree char *whole = NULL;
  gboolean sent = FALSE;

  g_variant_get (arguments, "(&s@aay@a{sv})", &label, &argv, &options);
  if (!check_text ("A label", label, LABEL_MAX, error) || !parse_exec (peer, argv, options, &command, error))
    return NULL;
  machine = bj_agent_verb_get_machine (peer, error);
  if (machine == NULL)
    return NULL;
  whole = dup_command (&command.exec);
  bj_guest_start (bj_machine_get_guest (machine), &command.exec, &id, &sent, bj_agent_peer_get_cancellable (peer), &failure);
  if (id != 0)
    bj_agent_commands_add (bj_agent_peer_get_commands (peer), id, whole);
  else
    bj_agent_commands_note_failure (bj_agent_peer_get_commands (peer), whole, sent, failure->message);
  if (failure == NULL)
    return g_variant_new ("(u)", id);
  g_propagate_error (error, g_steal_pointer (&failure));
  return NULL;
}

static GVariant *
verb_poll (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  guint id, wait_s;
  g_auto(BjPollResult) result = { 0 };
  g_auto(GVariantBuilder) out = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);

  g_variant_get (arguments, "(uu)", &id, &wait_s);
  if (machine == NULL
      || !bj_guest_poll (bj_machine_get_guest (machine), id, MIN (wait_s, POLL_WAIT_MAX_S), &result,
                         bj_agent_peer_get_cancellable (peer), error))
    return NULL;
  if (!result.running)
    bj_agent_commands_end (bj_agent_peer_get_commands (peer), id, result.exit, result.signal);
  g_variant_builder_add (&out, "{sv}", "running", g_variant_new_boolean (result.running));
  g_variant_builder_add (&out, "{sv}", "exit", g_variant_new_int32 (result.exit));
  g_variant_builder_add (&out, "{sv}", "signal", g_variant_new_uint32 ((guint32) result.signal));
  g_variant_builder_add (&out, "{sv}", "output", bytes_to_variant (result.output));
  g_variant_builder_add (&out, "{sv}", "dropped", g_variant_new_uint64 (result.dropped));
  return g_variant_new ("(@a{sv})", g_variant_builder_end (&out));
}

static GVariant *
verb_send (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  guint id;
  g_autoptr(GVariant) data = NULL;
  g_autoptr(GBytes) bytes = NULL;
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);

  g_variant_get (arguments, "(u@ay)", &id, &data);
  bytes = dup_bytes (data);
  if (machine == NULL)
    return NULL;
  if (g_bytes_get_size (bytes) > STDIN_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "At most %d bytes at once", STDIN_MAX);
      return NULL;
    }
  if (!bj_guest_send (bj_machine_get_guest (machine), id, bytes, bj_agent_peer_get_cancellable (peer), error))
    return NULL;
  bj_agent_commands_note (bj_agent_peer_get_commands (peer), id, "send");
  return g_variant_new ("()");
}

static GVariant *
verb_kill (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  guint id;
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);

  g_variant_get (arguments, "(u)", &id);
  if (machine == NULL
      || !bj_guest_kill (bj_machine_get_guest (machine), id, bj_agent_peer_get_cancellable (peer), error))
    return NULL;
  bj_agent_commands_note (bj_agent_peer_get_commands (peer), id, "kill");
  return g_variant_new ("()");
}

static GVariant *
verb_list_background (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  return g_variant_new ("(@aa{sv})", bj_agent_commands_list (bj_agent_peer_get_commands (peer)));
}

static GVariant *
verb_read_file (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  guint64 offset, limit, size = 0;
  g_autoptr(GVariant) path_bytes = NULL;
  g_autofree char *path = NULL;
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);
  g_autoptr(GBytes) data = NULL;

  g_variant_get (arguments, "(@aytt)", &path_bytes, &offset, &limit);
  if (machine == NULL || (path = bj_agent_verb_dup_path (path_bytes, error)) == NULL)
    return NULL;
  data = bj_guest_read_file (bj_machine_get_guest (machine), path, offset, (gsize) MIN (limit, FILE_CHUNK_MAX), &size,
                             bj_agent_peer_get_cancellable (peer), error);
  if (data == NULL)
    return NULL;
  bj_session_record (bj_agent_peer_get_session (peer), TRUE, "file",
                     bj_record_file ("read", "read_file", path, g_bytes_get_size (data)));
  return g_variant_new ("(@ayt)", bytes_to_variant (data), size);
}

static GVariant *
verb_write_file (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  guint32 mode = 0644;
  gboolean append = FALSE;
  const char *tool = "write_file";
  g_autoptr(GVariant) path_bytes = NULL;
  g_autoptr(GVariant) data = NULL;
  g_autoptr(GVariant) options = NULL;
  g_autofree char *path = NULL;
  g_autoptr(GBytes) bytes = NULL;
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);

  g_variant_get (arguments, "(@ay@ay@a{sv})", &path_bytes, &data, &options);
  if (machine == NULL || (path = bj_agent_verb_dup_path (path_bytes, error)) == NULL
      || !bj_options_check (options, write_options, G_N_ELEMENTS (write_options), error))
    return NULL;
  if (g_variant_lookup (options, "mode", "u", &mode))
    mode = (mode & 07777) | BJ_GUEST_MODE_FORCE;
  g_variant_lookup (options, "append", "b", &append);
  g_variant_lookup (options, "tool", "&s", &tool);
  bytes = dup_bytes (data);
  if (g_bytes_get_size (bytes) > WRITE_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "A file is written with at most %d bytes at once", WRITE_MAX);
      return NULL;
    }
  if (!bj_guest_write_file (bj_machine_get_guest (machine), path, bytes, mode, append,
                            bj_agent_peer_get_cancellable (peer), error))
    return NULL;
  bj_session_record (bj_agent_peer_get_session (peer), TRUE, "file",
                     bj_record_file (append ? "append" : "write", tool, path, g_bytes_get_size (bytes)));
  return g_variant_new ("()");
}

static GVariant *
verb_screenshot (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);
  g_autoptr(GError) why = NULL;
  g_autoptr(GBytes) png = machine != NULL ? bj_session_take_screenshot (bj_agent_peer_get_session (peer), &why) : NULL;

  if (png != NULL)
    return g_variant_new ("(@ay)", bytes_to_variant (png));
  /* To an agent a limit is the end; this one it can work on without. */
  if (g_error_matches (why, BJ_ERROR, BJ_ERROR_LIMIT))
    why->code = BJ_ERROR_QUOTA;
  if (why != NULL)
    g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}

static GVariant *
verb_plan_add (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);
  BjStore *store = bj_session_get_context (session)->store;
  const char *text;
  guint id = 0;
  g_autoptr(GPtrArray) plan = bj_store_list_plan (store, bj_session_get_id (session), error);

  g_variant_get (arguments, "(&s)", &text);
  if (plan == NULL || !check_text ("A step of the plan", text, TEXT_MAX, error))
    return NULL;
  if (plan->len >= PLAN_MAX)
    {
      bj_error_set (error, BJ_ERROR_BUSY, "A plan has at most %d steps", PLAN_MAX);
      return NULL;
    }
  if (!bj_store_add_plan (store, bj_session_get_id (session), text, &id, error))
    return NULL;
  bj_session_record (session, FALSE, "plan", bj_record_plan (id, text, "todo"));
  return g_variant_new ("(u)", id);
}

static GVariant *
verb_plan_update (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  static const char *const statuses[] = { "todo", "doing", "done", "dropped", NULL };
  BjSession *session = bj_agent_peer_get_session (peer);
  const char *status;
  guint id;

  g_variant_get (arguments, "(u&s)", &id, &status);
  if (!g_strv_contains (statuses, status))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "A step's status is todo, doing, done or dropped");
      return NULL;
    }
  if (!bj_store_update_plan (bj_session_get_context (session)->store, bj_session_get_id (session), id, status, error))
    return NULL;
  bj_session_record (session, FALSE, "plan", bj_record_plan (id, "", status));
  return g_variant_new ("()");
}

static GVariant *
verb_plan_list (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  GVariant *plan = bj_session_list_plan (bj_agent_peer_get_session (peer), error);

  return plan != NULL ? g_variant_new ("(@aa{sv})", plan) : NULL;
}

static GVariant *
verb_note (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *text;

  g_variant_get (arguments, "(&s)", &text);
  if (!check_text ("A note", text, TEXT_MAX, error))
    return NULL;
  bj_session_record (bj_agent_peer_get_session (peer), FALSE, "note", bj_record_text (text));
  return g_variant_new ("()");
}

static GVariant *
verb_set_check (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);
  const char *command, *setup;

  g_variant_get (arguments, "(&s&s)", &command, &setup);
  if (!check_text ("A check", command, TEXT_MAX, error) || !check_text ("A setup", setup, TEXT_MAX, error))
    return NULL;
  if (*command == '\0')
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The check is empty");
      return NULL;
    }
  bj_session_set_agent_check (session, command, setup);
  bj_session_record (session, FALSE, "set-check", bj_record_set_check (command, setup));
  return g_variant_new ("()");
}

static GVariant *
verb_record (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  static const char *const types[] = { "turn", "tool-error", "textual-call", "retry", "trim", NULL };
  const char *type, *json;
  JsonObject *data;

  g_variant_get (arguments, "(&s&s)", &type, &json);
  if (!g_strv_contains (types, type))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "There is no record of type “%.32s”", type);
      return NULL;
    }
  if (!check_text ("A record", json, RECORD_MAX, error) || (data = bj_record_from_agent (json, error)) == NULL)
    return NULL;
  bj_session_record (bj_agent_peer_get_session (peer), FALSE, type, data);
  return g_variant_new ("()");
}

static GVariant *
verb_finish (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);
  const char *summary;

  g_variant_get (arguments, "(&s)", &summary);
  if (!check_text ("A summary", summary, RECORD_MAX, error))
    return NULL;
  bj_session_record (session, FALSE, "finish", bj_record_text (summary));
  bj_session_end_work (session, BJ_END_FINISHED, NULL, NULL);
  return g_variant_new ("()");
}

static GVariant *
verb_ask (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);
  const char *question;
  g_autoptr(GVariant) bytes = NULL;
  g_autoptr(GBytes) memory = NULL;

  g_variant_get (arguments, "(&s@ay)", &question, &bytes);
  if (!check_text ("A question", question, TEXT_MAX, error))
    return NULL;
  if (*question == '\0')
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The question is empty");
      return NULL;
    }
  memory = dup_bytes (bytes);
  if (g_bytes_get_size (memory) > MEMORY_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "A memory has at most %d bytes", MEMORY_MAX);
      return NULL;
    }
  return bj_session_ask (session, question, memory, error) ? g_variant_new ("()") : NULL;
}

static GVariant *
verb_fail (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjSession *session = bj_agent_peer_get_session (peer);
  const char *name, *message;
  BjError code;
  g_autofree char *escaped = NULL;

  g_variant_get (arguments, "(&s&s)", &name, &message);
  code = bj_error_code_from_name (name, BJ_ERROR_FAILED);
  escaped = bj_untrusted_escape (message, -1, FAILURE_MAX);
  /* Whether the limit of steps is reached is for our own count to say. */
  if (code == BJ_ERROR_LIMIT && bj_session_get_steps (session) >= bj_session_get_plan (session)->steps)
    bj_session_end_work (session, BJ_END_STEPS, NULL, NULL);
  else if (code == BJ_ERROR_LIMIT)
    bj_session_end_work (session, BJ_END_AGENT_LIMIT, NULL, NULL);
  else
    bj_session_end_work (session, BJ_END_AGENT, bj_error_get_name (code), escaped);
  return g_variant_new ("()");
}

static const struct
{
  const char *method;
  BjVerbFunc func;
  gboolean counted;
} verbs[] = {
  { "GetTask", verb_get_task, FALSE },
  { "Exec", verb_exec, TRUE },
  { "Start", verb_start, TRUE },
  { "Poll", verb_poll, TRUE },
  { "Send", verb_send, TRUE },
  { "Kill", verb_kill, TRUE },
  { "ListBackground", verb_list_background, TRUE },
  { "ReadFile", verb_read_file, TRUE },
  { "WriteFile", verb_write_file, TRUE },
  { "Screenshot", verb_screenshot, TRUE },
  { "TypeText", bj_agent_verb_type_text, TRUE },
  { "PressKeys", bj_agent_verb_press_keys, TRUE },
  { "MouseMove", bj_agent_verb_mouse_move, TRUE },
  { "MouseClick", bj_agent_verb_mouse_click, TRUE },
  { "MouseDrag", bj_agent_verb_mouse_drag, TRUE },
  { "Scroll", bj_agent_verb_scroll, TRUE },
  { "Wait", bj_agent_verb_wait, TRUE },
  { "GitStatus", bj_agent_verb_git_status, TRUE },
  { "GitDiff", bj_agent_verb_git_diff, TRUE },
  { "GitLog", bj_agent_verb_git_log, TRUE },
  { "PlanAdd", verb_plan_add, TRUE },
  { "PlanUpdate", verb_plan_update, TRUE },
  { "PlanList", verb_plan_list, TRUE },
  { "Note", verb_note, TRUE },
  { "SetCheck", verb_set_check, TRUE },
  { "Record", verb_record, FALSE },
  { "Ask", verb_ask, FALSE },
  { "Finish", verb_finish, FALSE },
  { "Fail", verb_fail, FALSE },
};

BjVerbFunc
bj_agent_verb_lookup (const char *method, gboolean *counted)
{
  for (guint i = 0; i < G_N_ELEMENTS (verbs); i++)
    if (g_str_equal (verbs[i].method, method))
      {
        *counted = verbs[i].counted;
        return verbs[i].func;
      }
  return NULL;
}
