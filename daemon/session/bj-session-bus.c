/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* org.belljar1.Session: arguments in, answers out. What takes time runs in a worker. */

#include "bj-session-bus.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"
#include "bj-options.h"
#include "bj-session-command.h"
#include "bj-untrusted.h"
#include "bj-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixfdlist.h>
#include <string.h>

#define EXTEND_MAX_S (24 * 60 * 60)
#define EXEC_TIMEOUT_S 600
#define EXEC_TIMEOUT_MAX_S (24 * 60 * 60)
#define DETAIL_MAX 4096
#define USER_MAX 64

typedef struct _BjBusCall BjBusCall;
typedef gboolean (*BjBusWork) (BjBusCall *call, GError **error);

/* A method call on its way through a worker. */
struct _BjBusCall
{
  BjSession *session;                /* (owned) */
  GDBusMethodInvocation *invocation; /* (owned) until answered */
  BjBusWork work;
  BjDBusSession *skeleton; /* (not owned) */
  uid_t uid; /* Answer: who said it */

  /* Exec */
  GStrv argv;
  char *cwd;
  char *user;
  guint timeout_s;
  int stream[3];
  gboolean streams;
  GCancellable *cancellable; /* (owned): cancelled when the session ends or the caller leaves the bus */
  GCancellable *session_ends; /* (not owned): what the handler is of */
  gulong session_handler;
  guint watch_id;
  gboolean in_line; /* one of the session's commands: the next one waits for its end */
};

static void
bus_call_free (gpointer data)
{
  BjBusCall *call = data;

  if (call->invocation != NULL)
    g_dbus_method_invocation_return_error_literal (call->invocation, BJ_ERROR, BJ_ERROR_FAILED,
                                                   "No answer was prepared");
  for (guint i = 0; i < 3; i++)
    bj_fd_clear (&call->stream[i]);
  g_clear_handle_id (&call->watch_id, g_bus_unwatch_name);
  if (call->session_handler != 0)
    g_cancellable_disconnect (call->session_ends, call->session_handler);
  g_clear_object (&call->cancellable);
  g_strfreev (call->argv);
  g_free (call->cwd);
  g_free (call->user);
  g_object_unref (call->session);
  g_free (call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjBusCall, bus_call_free)

static BjBusCall *
bus_call_new (BjSession *session, GDBusMethodInvocation *invocation, BjBusWork work)
{
  BjBusCall *call = g_new0 (BjBusCall, 1);

  call->session = g_object_ref (session);
  call->skeleton = bj_session_get_skeleton (session);
  call->invocation = invocation;
  call->work = work;
  for (guint i = 0; i < 3; i++)
    call->stream[i] = -1;
  return call;
}

static void
bus_call_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  BjBusCall *call = data;
  g_autoptr(GError) error = NULL;
  BjExecLine *line = call->in_line ? bj_session_get_exec_line (call->session) : NULL;

  /* The work answers by itself when it succeeds. */
  if (!call->work (call, &error))
    bj_gate_return_error (g_steal_pointer (&call->invocation), error);
  if (line != NULL)
    {
      bj_session_touch (call->session);
      bj_exec_line_leave (line);
    }
  g_task_return_boolean (task, error == NULL);
}

static gboolean
bus_call_run (BjBusCall *call)
{
  g_autoptr(GTask) task = g_task_new (call->session, NULL, NULL, NULL);

  g_task_set_source_tag (task, bus_call_run);
  g_task_set_task_data (task, call, bus_call_free);
  bj_worker_run (task, bus_call_thread);
  return TRUE;
}

static void
answer_fd (BjBusCall *call, int fd)
{
  g_autoptr(GUnixFDList) fds = g_unix_fd_list_new_from_array (&fd, 1);

  g_dbus_method_invocation_return_value_with_unix_fd_list (g_steal_pointer (&call->invocation),
                                                           g_variant_new ("(h)", 0), fds);
}

static void
add_untrusted (GVariantBuilder *details, const char *key, const char *text)
{
  g_variant_builder_add (details, "{sv}", key,
                         g_variant_new_take_string (bj_untrusted_escape_block (text != NULL ? text : "", -1, DETAIL_MAX)));
}

static const char *
get_string (JsonObject *report, const char *outer, const char *inner)
{
  JsonNode *node = json_object_get_member (report, outer);
  JsonObject *object = node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;

  return object != NULL ? json_object_get_string_member_with_default (object, inner, "") : "";
}

static gboolean
work_details (BjBusCall *call, GError **error)
{
  const BjSessionPlan *plan = bj_session_get_plan (call->session);
  g_auto(GVariantBuilder) details = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  g_autofree char *text = bj_session_dup_report (call->session, NULL);
  g_autofree char *activity = bj_session_dup_activity (call->session);
  g_autofree char *timing = NULL;
  g_autoptr(JsonNode) root = text != NULL ? json_from_string (text, NULL) : NULL;
  JsonObject *report = root != NULL ? json_node_get_object (root) : NULL;

  if (report != NULL && json_object_has_member (report, "timing"))
    timing = bj_json_to_canonical (json_object_get_object_member (report, "timing"));
  add_untrusted (&details, "task", plan->task);
  add_untrusted (&details, "activity", bj_session_is_over (call->session) ? "" : activity);
  add_untrusted (&details, "question", report != NULL ? json_object_get_string_member_with_default (report, "question", "") : "");
  add_untrusted (&details, "check", report != NULL ? get_string (report, "check", "command") : plan->check);
  add_untrusted (&details, "check-source",
                 report != NULL ? get_string (report, "check", "source") : plan->check != NULL ? "caller" : "");
  add_untrusted (&details, "summary", report != NULL ? get_string (report, "summary", "text") : "");
  add_untrusted (&details, "error", report != NULL ? get_string (report, "error", "message") : "");
  g_variant_builder_add (&details, "{sv}", "timing", g_variant_new_string (timing != NULL ? timing : "{}"));
  g_dbus_method_invocation_return_value (g_steal_pointer (&call->invocation),
                                         g_variant_new ("(@a{sv})", g_variant_builder_end (&details)));
  return TRUE;
}

static gboolean
work_report (BjBusCall *call, GError **error)
{
  g_autofree char *text = bj_session_dup_report (call->session, error);

  if (text == NULL)
    return FALSE;
  bj_dbus_session_complete_report (call->skeleton, g_steal_pointer (&call->invocation), text);
  return TRUE;
}

static gboolean
work_pause (BjBusCall *call, GError **error)
{
  if (!bj_session_set_paused (call->session, TRUE, error))
    return FALSE;
  bj_dbus_session_complete_pause (call->skeleton, g_steal_pointer (&call->invocation));
  return TRUE;
}

static gboolean
work_resume (BjBusCall *call, GError **error)
{
  if (!bj_session_set_paused (call->session, FALSE, error))
    return FALSE;
  bj_dbus_session_complete_resume (call->skeleton, g_steal_pointer (&call->invocation));
  return TRUE;
}

static gboolean
work_answer (BjBusCall *call, GError **error)
{
  const char *text;

  g_variant_get (g_dbus_method_invocation_get_parameters (call->invocation), "(&s)", &text);
  if (!bj_session_answer (call->session, text, call->uid, error))
    return FALSE;
  bj_dbus_session_complete_answer (call->skeleton, g_steal_pointer (&call->invocation));
  return TRUE;
}

static gboolean
on_answer (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, const char *text, BjSession *session)
{
  BjBusCall *call = bus_call_new (session, invocation, work_answer);

  call->uid = bj_gate_get_caller (invocation)->uid;
  return bus_call_run (call);
}

static gboolean
work_screenshot (BjBusCall *call, GError **error)
{
  g_autoptr(GBytes) png = bj_session_take_screenshot (call->session, error);
  int fd = png != NULL ? bj_fd_seal_bytes ("belljar-screenshot", png, error) : -1;

  if (fd < 0)
    return FALSE;
  answer_fd (call, fd);
  return TRUE;
}

static gboolean
work_list_plan (BjBusCall *call, GError **error)
{
  GVariant *plan = bj_session_list_plan (call->session, error);

  if (plan == NULL)
    return FALSE;
  bj_dbus_session_complete_list_plan (call->skeleton, g_steal_pointer (&call->invocation), plan);
  return TRUE;
}

static gboolean
on_details (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_details));
}

static gboolean
on_report (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_report));
}

static gboolean
on_pause (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_pause));
}

static gboolean
on_keep (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  g_autoptr(GError) error = NULL;

  if (bj_session_get_plan (session)->task == NULL)
    bj_error_set (&error, BJ_ERROR_INVALID, "Session %s has no task that could fail", bj_session_get_id (session));
  else if (bj_session_is_over (session) && !bj_session_has_kept (session))
    bj_error_set (&error, BJ_ERROR_INVALID, "Session %s has ended and its machine is gone", bj_session_get_id (session));
  if (error != NULL)
    bj_gate_return_error (invocation, error);
  else
    {
      bj_session_want_keep (session);
      bj_dbus_session_complete_keep (skeleton, invocation);
    }
  return TRUE;
}

static gboolean
on_resume (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_resume));
}

static gboolean
on_screenshot (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_screenshot));
}

static gboolean
on_list_plan (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_list_plan));
}

static gboolean
on_stop (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, BjSession *session)
{
  bj_session_stop (session, "The session was stopped");
  bj_dbus_session_complete_stop (skeleton, invocation);
  return TRUE;
}

static gboolean
on_extend (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, guint seconds, BjSession *session)
{
  g_autoptr(GError) error = NULL;

  if (seconds < 1 || seconds > EXTEND_MAX_S)
    bj_error_set (&error, BJ_ERROR_INVALID, "A session is extended by 1 to %d seconds", EXTEND_MAX_S);
  else if (bj_session_is_over (session))
    bj_error_set (&error, BJ_ERROR_INVALID, "Session %s has ended", bj_session_get_id (session));
  if (error != NULL)
    bj_gate_return_error (invocation, error);
  else
    {
      bj_session_set_deadline (session, bj_session_get_deadline (session) + seconds);
      bj_session_touch (session);
      bj_session_save (session);
      bj_dbus_session_complete_extend (skeleton, invocation);
    }
  return TRUE;
}

static gboolean
work_open_transcript (BjBusCall *call, GError **error)
{
  g_autofree char *path = bj_session_dup_transcript_path (call->session);
  g_auto(BjFd) fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  guint64 offset = 0;

  g_variant_get (g_dbus_method_invocation_get_parameters (call->invocation), "(t)", &offset);
  if (fd < 0)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "Session %s has no transcript yet", bj_session_get_id (call->session));
  if (offset > G_MAXINT64 || lseek (fd, (off_t) offset, SEEK_SET) < 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "%" G_GUINT64_FORMAT " is no offset in a file", offset);
  answer_fd (call, g_steal_fd (&fd));
  return TRUE;
}

static gboolean
on_open_transcript (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, guint64 offset,
                    BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_open_transcript));
}

static gboolean
work_open_evidence (BjBusCall *call, GError **error)
{
  const char *name;
  int fd;

  g_variant_get (g_dbus_method_invocation_get_parameters (call->invocation), "(&s)", &name);
  fd = bj_session_open_evidence (call->session, name, error);
  if (fd < 0)
    return FALSE;
  answer_fd (call, fd);
  return TRUE;
}

static gboolean
on_open_evidence (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, const char *name,
                  BjSession *session)
{
  return bus_call_run (bus_call_new (session, invocation, work_open_evidence));
}

static GVariant *
describe_result (const BjExecResult *result)
{
  g_auto(GVariantBuilder) info = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);

  g_variant_builder_add (&info, "{sv}", "timed-out", g_variant_new_boolean (result->timed_out));
  g_variant_builder_add (&info, "{sv}", "signal", g_variant_new_uint32 ((guint32) result->signal));
  g_variant_builder_add (&info, "{sv}", "duration", g_variant_new_double (result->duration_s));
  g_variant_builder_add (&info, "{sv}", "stdout-bytes", g_variant_new_uint64 (result->out_total));
  g_variant_builder_add (&info, "{sv}", "stderr-bytes", g_variant_new_uint64 (result->err_total));
  g_variant_builder_add (&info, "{sv}", "truncated", g_variant_new_boolean (result->truncated));
  return g_variant_builder_end (&info);
}

static GVariant *
bytes_or_empty (GBytes *bytes)
{
  g_autoptr(GBytes) empty = g_bytes_new_static ("", 0);

  return g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, bytes != NULL ? bytes : empty, TRUE);
}

/* An agent waits, a person is told. */
static gboolean
check_usable (BjSession *session, GError **error)
{
  if (bj_session_has_kept (session))
    return TRUE;
  if (bj_session_set_over_error (session, error))
    return FALSE;
  if (bj_session_is_asking (session))
    return bj_error_set (error, BJ_ERROR_INVALID, "Session %s waits for an answer, its machine is paused: belljar answer",
                         bj_session_get_id (session));
  if (bj_session_is_stalled (session))
    return bj_session_set_stall_error (session, error);
  if (bj_session_is_paused (session))
    return bj_error_set (error, BJ_ERROR_INVALID, "Session %s is paused: resume it first", bj_session_get_id (session));
  return TRUE;
}

static gboolean
work_exec (BjBusCall *call, GError **error)
{
  const BjConfig *config = bj_session_get_context (call->session)->config;
  char *line = bj_session_join_argv ((const char *const *) call->argv);
  g_autoptr(GBytes) command = g_bytes_new_take (line, strlen (line));
  g_auto(BjExecResult) result = { 0 };
  const BjExec exec = {
    .argv = (const char *const *) call->argv,
    .cwd = call->cwd,
    .user = call->user,
    .environ = bj_session_environ,
    .timeout_s = call->timeout_s,
    .cap = config->output_bytes,
  };
  const int *streams = call->streams ? call->stream : NULL;
  GVariant *answer;

  if (!check_usable (call->session, error))
    return FALSE;
  if (bj_session_has_kept (call->session)
          ? !bj_session_run_in_kept (call->session, &exec, streams, &result, call->cancellable, error)
          : !bj_session_run_command (call->session, "exec", command, &exec, streams, &result, call->cancellable, error))
    return FALSE;
  answer = g_variant_new ("(i@ay@ay@a{sv})", result.exit >= 0 ? result.exit : 128 + result.signal,
                          bytes_or_empty (call->streams ? NULL : result.out),
                          bytes_or_empty (call->streams ? NULL : result.err), describe_result (&result));
  g_dbus_method_invocation_return_value (g_steal_pointer (&call->invocation), answer);
  return TRUE;
}

static const BjOption exec_options[] = {
  { "timeout", "u", NULL }, { "cwd", "ay", NULL },   { "user", "s", NULL },
  { "stdin", "h", NULL },   { "stdout", "h", NULL }, { "stderr", "h", NULL },
};

static gboolean
take_fds (BjBusCall *call, GVariant *options, GUnixFDList *fds, GError **error)
{
  static const char *const keys[] = { "stdin", "stdout", "stderr" };

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      gint32 handle;

      if (!g_variant_lookup (options, keys[i], "h", &handle))
        continue;
      call->stream[i] = bj_fd_take (fds, handle, error);
      if (call->stream[i] < 0)
        {
          g_prefix_error (error, "Option “%s”: ", keys[i]);
          return FALSE;
        }
      call->streams = TRUE;
    }
  return TRUE;
}

static gboolean
parse_exec (BjBusCall *call, GVariant *argv, GVariant *options, GUnixFDList *fds, GError **error)
{
  g_autoptr(GVariant) cwd = NULL;

  if (!bj_options_check (options, exec_options, G_N_ELEMENTS (exec_options), error))
    return FALSE;
  call->argv = bj_session_dup_argv (argv, error);
  if (call->argv == NULL || !take_fds (call, options, fds, error))
    return FALSE;
  cwd = g_variant_lookup_value (options, "cwd", G_VARIANT_TYPE_BYTESTRING);
  if (cwd != NULL)
    call->cwd = g_strndup (g_variant_get_data (cwd), g_variant_get_size (cwd));
  g_variant_lookup (options, "user", "s", &call->user);
  if (call->user != NULL && (*call->user == '\0' || strlen (call->user) > USER_MAX))
    return bj_error_set (error, BJ_ERROR_INVALID, "The option user is no user's name");
  call->timeout_s = EXEC_TIMEOUT_S;
  g_variant_lookup (options, "timeout", "u", &call->timeout_s);
  if (call->timeout_s < 1 || call->timeout_s > EXEC_TIMEOUT_MAX_S)
    return bj_error_set (error, BJ_ERROR_INVALID, "The option timeout is 1 to %d seconds", EXEC_TIMEOUT_MAX_S);
  return TRUE;
}

static void
on_session_cancelled (GCancellable *session, gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
}

static void
on_caller_vanished (GDBusConnection *connection, const char *name, gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
}

/* A command does not outlive who asked for it. */
static void
watch_caller (BjBusCall *call)
{
  GDBusMethodInvocation *invocation = call->invocation;

  call->cancellable = g_cancellable_new ();
  call->session_ends = bj_session_has_kept (call->session) ? bj_session_get_kept_cancellable (call->session)
                                                           : bj_session_get_cancellable (call->session);
  call->session_handler = g_cancellable_connect (call->session_ends, G_CALLBACK (on_session_cancelled),
                                                 g_object_ref (call->cancellable), g_object_unref);
  call->watch_id = g_bus_watch_name_on_connection (g_dbus_method_invocation_get_connection (invocation),
                                                   g_dbus_method_invocation_get_sender (invocation),
                                                   G_BUS_NAME_WATCHER_FLAGS_NONE, NULL, on_caller_vanished,
                                                   g_object_ref (call->cancellable), g_object_unref);
}

static void
start_exec (gpointer call)
{
  bus_call_run (call);
}

static gboolean
on_exec (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, GVariant *argv,
         GVariant *options, BjSession *session)
{
  g_autoptr(BjBusCall) call = bus_call_new (session, invocation, work_exec);
  g_autoptr(GError) error = NULL;

  call->in_line = TRUE;
  if (parse_exec (call, argv, options, fds, &error) && check_usable (session, &error))
    {
      watch_caller (call);
      if (bj_exec_line_enter (bj_session_get_exec_line (session), start_exec, call, call->cancellable, &error))
        {
          g_steal_pointer (&call); /* it may be gone already */
          return TRUE;
        }
    }
  bj_gate_return_error (g_steal_pointer (&call->invocation), error);
  return TRUE;
}

/* What Delete needs, kept with the signal handler. */
typedef struct
{
  BjSession *session; /* (not owned) */
  BjSessionDeleteFunc forget;
  gpointer user_data;
} BjForget;

static gboolean
on_delete (BjDBusSession *skeleton, GDBusMethodInvocation *invocation, gpointer data)
{
  BjForget *forget = data;

  forget->forget (forget->session, invocation, forget->user_data);
  return TRUE;
}

static void
free_forget (gpointer data, GClosure *closure)
{
  g_free (data);
}

static const struct
{
  const char *signal;
  GCallback callback;
} handlers[] = {
  { "handle-details", G_CALLBACK (on_details) },
  { "handle-stop", G_CALLBACK (on_stop) },
  { "handle-pause", G_CALLBACK (on_pause) },
  { "handle-resume", G_CALLBACK (on_resume) },
  { "handle-keep", G_CALLBACK (on_keep) },
  { "handle-answer", G_CALLBACK (on_answer) },
  { "handle-extend", G_CALLBACK (on_extend) },
  { "handle-screenshot", G_CALLBACK (on_screenshot) },
  { "handle-open-transcript", G_CALLBACK (on_open_transcript) },
  { "handle-open-evidence", G_CALLBACK (on_open_evidence) },
  { "handle-list-plan", G_CALLBACK (on_list_plan) },
  { "handle-exec", G_CALLBACK (on_exec) },
  { "handle-report", G_CALLBACK (on_report) },
};

void
bj_session_bus_export (BjSession *session, BjSessionDeleteFunc forget_func, gpointer user_data)
{
  BjContext *context = bj_session_get_context (session);
  BjDBusSession *skeleton = bj_session_get_skeleton (session);
  g_autoptr(GDBusObjectSkeleton) object = g_dbus_object_skeleton_new (bj_session_get_path (session));
  g_autofree char *label = g_strconcat ("session ", bj_session_get_id (session), NULL);
  BjForget *forget = g_new0 (BjForget, 1);

  for (guint i = 0; i < G_N_ELEMENTS (handlers); i++)
    g_signal_connect (skeleton, handlers[i].signal, handlers[i].callback, session);
  forget->session = session;
  forget->forget = forget_func;
  forget->user_data = user_data;
  g_signal_connect_data (skeleton, "handle-delete", G_CALLBACK (on_delete), forget, free_forget, 0);
  bj_gate_guard (context->gate, G_DBUS_INTERFACE_SKELETON (skeleton), bj_session_get_plan (session)->owner_uid, label);
  g_dbus_object_skeleton_add_interface (object, G_DBUS_INTERFACE_SKELETON (skeleton));
  g_dbus_object_manager_server_export (context->objects, object);
}

void
bj_session_bus_unexport (BjSession *session)
{
  BjDBusSession *skeleton = bj_session_get_skeleton (session);

  g_dbus_object_manager_server_unexport (bj_session_get_context (session)->objects, bj_session_get_path (session));
  for (guint i = 0; i < G_N_ELEMENTS (handlers); i++)
    g_signal_handlers_disconnect_by_func (skeleton, handlers[i].callback, session);
}
