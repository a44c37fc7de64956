/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-agent"

#include "bj-agent-peer.h"

#include "bj-child.h"
#include "bj-dbus-agent.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-sandbox.h"
#include "bj-worker.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define OBJECT_PATH "/org/belljar1/agent"
#define END_MAX_S 20

struct _BjAgentPeer
{
  BjSession *session; /* (owned) */
  BjGateway *gateway; /* (not owned) */
  BjChild *child;     /* (owned) */
  GVariant *task;     /* (owned) */
  BjAgentCommands *commands; /* (owned) */
  GCancellable *cancellable;
  guint registration;

  GMutex lock;
  GCond idle;
  guint in_flight;
};

typedef struct
{
  BjAgentPeer *peer; /* (not owned): outlives its calls, bj_agent_peer_end() waits for them */
  GDBusMethodInvocation *invocation;
  GVariant *arguments;
  BjVerbFunc func;
} BjVerbCall;

BjSession *
bj_agent_peer_get_session (BjAgentPeer *self)
{
  return self->session;
}

GCancellable *
bj_agent_peer_get_cancellable (BjAgentPeer *self)
{
  return self->cancellable;
}

GVariant *
bj_agent_peer_get_task (BjAgentPeer *self)
{
  return self->task;
}

BjAgentCommands *
bj_agent_peer_get_commands (BjAgentPeer *self)
{
  return self->commands;
}

gboolean
bj_agent_peer_is_running (BjAgentPeer *self)
{
  return bj_child_is_running (self->child);
}

static void
call_done (BjAgentPeer *self)
{
  g_mutex_lock (&self->lock);
  self->in_flight--;
  g_cond_broadcast (&self->idle);
  g_mutex_unlock (&self->lock);
}

static void
verb_call_free (gpointer data)
{
  BjVerbCall *call = data;

  g_variant_unref (call->arguments);
  if (call->invocation != NULL)
    g_dbus_method_invocation_return_error_literal (call->invocation, BJ_ERROR, BJ_ERROR_FAILED,
                                                   "No answer was prepared");
  g_free (call);
}

static void
verb_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  BjVerbCall *call = data;
  BjAgentPeer *peer = call->peer;
  g_autoptr(GError) error = NULL;
  GVariant *answer = call->func (peer, call->arguments, &error);
  GDBusMethodInvocation *invocation = g_steal_pointer (&call->invocation);

  if (answer != NULL)
    g_dbus_method_invocation_return_value (invocation, answer);
  else
    bj_gate_return_error (invocation, error);
  g_task_return_boolean (task, answer != NULL);
  call_done (peer);
}

static gboolean
admit (BjAgentPeer *self, gboolean counted, GError **error)
{
  gboolean full;

  if (bj_session_get_end (self->session) != BJ_END_NONE)
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The session's work has ended");
  if (bj_session_is_asking (self->session))
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The session waits for an answer");
  if (counted && !bj_session_take_step (self->session, error))
    return FALSE;
  g_mutex_lock (&self->lock);
  full = self->in_flight >= BJ_AGENT_CALLS_MAX;
  if (!full)
    self->in_flight++;
  g_mutex_unlock (&self->lock);
  return !full || bj_error_set (error, BJ_ERROR_LIMIT, "At most %d calls at once", BJ_AGENT_CALLS_MAX);
}

static void
on_method_call (GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                const char *method, GVariant *arguments, GDBusMethodInvocation *invocation, gpointer data)
{
  BjAgentPeer *self = data;
  gboolean counted = FALSE;
  g_autoptr(GError) error = NULL;
  g_autoptr(GTask) task = NULL;
  BjVerbFunc func = bj_agent_verb_lookup (method, &counted);
  BjVerbCall *call;

  if (func == NULL)
    bj_error_set (&error, BJ_ERROR_DENIED, "There is no verb %s", method);
  if (func == NULL || !admit (self, counted, &error))
    {
      bj_gate_return_error (invocation, error);
      return;
    }
  call = g_new0 (BjVerbCall, 1);
  call->peer = self;
  call->invocation = invocation;
  call->arguments = g_variant_ref (arguments);
  call->func = func;
  task = g_task_new (self->session, NULL, NULL, NULL);
  g_task_set_source_tag (task, on_method_call);
  g_task_set_task_data (task, call, verb_call_free);
  bj_worker_run (task, verb_thread);
}

static const GDBusInterfaceVTable agent_vtable = { on_method_call, NULL, NULL, { 0 } };

/* The folder that holds the agent's socket to the gateway; nobody but the agent may pass it. */
static char *
make_agent_dir (BjSession *session, uid_t uid, GError **error)
{
  g_autofree char *directory = bj_session_dup_dir (session, "agent");

  if (g_mkdir_with_parents (directory, 0700) < 0 || (geteuid () == 0 && lchown (directory, uid, uid) < 0))
    {
      bj_fd_set_io_error (error, errno, "Making %s", directory);
      return NULL;
    }
  return g_steal_pointer (&directory);
}

static GStrv
make_argv (BjContext *context, uid_t uid)
{
  g_autofree char *program = bj_context_dup_program (context, "belljar-agent");
  g_autofree char *data = bj_context_dup_data (context, "agent");
  g_autofree char *data_option = g_strdup_printf ("--data=%s", data);
  const char *arguments[] = { data_option, NULL };
  const char *read_only[] = { data, NULL };
  const BjSandbox sandbox = {
    .uid = uid, .gid = uid, .program = program, .arguments = arguments, .read_only = read_only,
  };

  return bj_sandbox_dup_argv (&sandbox);
}

static gboolean
launch (BjAgentPeer *self, GError **error)
{
  BjContext *context = bj_session_get_context (self->session);
  const BjSessionPlan *plan = bj_session_get_plan (self->session);
  uid_t uid = geteuid () == 0 ? BJ_AGENT_UID_BASE + plan->slot : geteuid ();
  g_autofree char *directory = make_agent_dir (self->session, uid, error);
  g_auto(GStrv) argv = make_argv (context, uid);
  g_auto(BjFd) socket = -1;

  if (directory == NULL)
    return FALSE;
  socket = bj_gateway_open_session (self->gateway, plan->id, plan->model, directory, uid, error);
  if (socket < 0)
    return FALSE;
  self->child = bj_child_start ((const char *const *) argv, NULL, socket, error);
  return self->child != NULL;
}

static void
peer_free (BjAgentPeer *self)
{
  g_clear_pointer (&self->child, bj_child_free);
  g_variant_unref (self->task);
  bj_agent_commands_free (self->commands);
  g_object_unref (self->cancellable);
  g_object_unref (self->session);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->idle);
  g_free (self);
}

BjAgentPeer *
bj_agent_peer_start (BjSession *session, BjGateway *gateway, GVariant *task, GError **error)
{
  BjAgentPeer *self = g_new0 (BjAgentPeer, 1);

  self->session = g_object_ref (session);
  self->gateway = gateway;
  self->task = g_variant_ref_sink (task);
  self->commands = bj_agent_commands_new (session);
  bj_agent_commands_recall (self->commands);
  self->cancellable = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->idle);
  if (!launch (self, error))
    {
      bj_gateway_close_session (gateway, bj_session_get_id (session));
      peer_free (self);
      return NULL;
    }
  self->registration = g_dbus_connection_register_object (bj_child_get_connection (self->child), OBJECT_PATH,
                                                          bj_dbus_agent_interface_info (), &agent_vtable, self, NULL,
                                                          error);
  g_dbus_connection_start_message_processing (bj_child_get_connection (self->child));
  return self;
}

static gboolean
unregister (gpointer data)
{
  BjAgentPeer *self = data;

  g_dbus_connection_unregister_object (bj_child_get_connection (self->child), self->registration);
  call_done (self);
  return G_SOURCE_REMOVE;
}

/* Calls are dispatched on the main loop: taking the object away there means that none is on its way to us any more. */
static void
stop_dispatch (BjAgentPeer *self)
{
  g_mutex_lock (&self->lock);
  self->in_flight++;
  g_mutex_unlock (&self->lock);
  g_idle_add_full (G_PRIORITY_LOW, unregister, self, NULL);
}

void
bj_agent_peer_end (BjAgentPeer *self)
{
  gint64 until = g_get_monotonic_time () + (gint64) END_MAX_S * G_USEC_PER_SEC;
  gboolean idle = TRUE;

  g_cancellable_cancel (self->cancellable);
  bj_child_stop (self->child);
  bj_gateway_close_session (self->gateway, bj_session_get_id (self->session));
  stop_dispatch (self);
  g_mutex_lock (&self->lock);
  while (self->in_flight > 0 && idle)
    idle = g_cond_wait_until (&self->idle, &self->lock, until);
  g_mutex_unlock (&self->lock);
  if (idle)
    peer_free (self);
  else
    g_warning ("Session %s: calls of its agent do not end; their memory is left behind", bj_session_get_id (self->session));
}
