/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-gate"

#include "bj-gate.h"

#include "bj-callers.h"
#include "bj-error.h"
#include "bj-weak-table.h"

#include <glib/gi18n.h>
#include <polkit/polkit.h>

#define ANNOTATION "org.belljar1.Polkit"
/* How long polkitd may think, and how long a person may take to type a password. */
#define CHECK_S 25
#define CHECK_INTERACTIVE_S 300

struct _BjGate
{
  GObject parent_instance;
  BjAuth auth;
  BjCallers *callers;
  PolkitAuthority *authority; /* (nullable): until it is first needed */
};

G_DEFINE_FINAL_TYPE (BjGate, bj_gate, G_TYPE_OBJECT)

typedef struct
{
  BjGate *gate;
  uid_t owner_uid;
  char *label;
} BjGuard;

static void
guard_free (gpointer data)
{
  BjGuard *guard = data;

  g_object_unref (guard->gate);
  g_free (guard->label);
  g_free (guard);
}

static void
free_caller (gpointer caller)
{
  bj_caller_free (caller);
}

static BjWeakTable guards = BJ_WEAK_TABLE_INIT (guard_free);            /* by skeleton */
static BjWeakTable invocation_callers = BJ_WEAK_TABLE_INIT (free_caller); /* by invocation */

static void
bj_gate_finalize (GObject *object)
{
  BjGate *self = BJ_GATE (object);

  g_object_unref (self->callers);
  g_clear_object (&self->authority);
  G_OBJECT_CLASS (bj_gate_parent_class)->finalize (object);
}

static void
bj_gate_class_init (BjGateClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_gate_finalize;
}

static void
bj_gate_init (BjGate *self)
{
}

BjGate *
bj_gate_new (GDBusConnection *connection, BjAuth auth)
{
  BjGate *self = g_object_new (BJ_TYPE_GATE, NULL);

  self->auth = auth;
  self->callers = bj_callers_new (connection);
  return self;
}

void
bj_gate_return_error (GDBusMethodInvocation *invocation, const GError *error)
{
  g_autoptr(GError) stripped = error != NULL ? g_error_copy (error) : NULL;
  g_autoptr(GError) ours = NULL;
  g_autofree char *valid = NULL;

  g_warn_if_fail (error != NULL); /* somebody forgot to say why: that must not end the daemon */
  if (stripped == NULL)
    bj_error_set (&stripped, BJ_ERROR_FAILED, "It failed, and the reason got lost");
  g_dbus_error_strip_remote_error (stripped);
  ours = bj_error_to_bus (stripped);
  valid = g_utf8_make_valid (ours->message, -1); /* anything else would end the connection */
  g_debug ("%s is refused or failed: %s", g_dbus_method_invocation_get_method_name (invocation), valid);
  g_dbus_method_invocation_return_error_literal (invocation, ours->domain, ours->code, valid);
}

/* One question to polkit. */
typedef struct
{
  BjCaller *caller;
  const char *action; /* interned */
  char *label;
  gboolean own; /* the caller is the object's owner */
  gboolean interactive;
  GCancellable *deadline;
  guint deadline_id;
} BjQuestion;

static void
question_free (BjQuestion *question)
{
  g_clear_handle_id (&question->deadline_id, g_source_remove);
  g_object_unref (question->deadline);
  bj_caller_free (question->caller);
  g_free (question->label);
  g_free (question);
}

/* What a password prompt says; the policy file's own message serves for the rest. */
static const struct
{
  const char *action;
  const char *message;
} prompts[] = {
  { "org.belljar1.view-other", N_("Authentication is required to see the $(object) of another user") },
  { "org.belljar1.session.control-other", N_("Authentication is required to control the $(object) of another user") },
  { "org.belljar1.job.cancel-other", N_("Authentication is required to cancel the $(object) of another user") },
  { "org.belljar1.image.build", N_("Authentication is required to change the $(object)") },
  { "org.belljar1.image.delete", N_("Authentication is required to delete the $(object)") },
  { "org.belljar1.project.delete", N_("Authentication is required to delete the $(object)") },
};

static PolkitDetails *
make_details (const BjQuestion *question)
{
  PolkitDetails *details;

  if (geteuid () != 0 || *question->label == '\0') /* polkit takes details of root only */
    return NULL;
  details = polkit_details_new ();
  polkit_details_insert (details, "object", question->label);
  polkit_details_insert (details, "own", question->own ? "true" : "false");
  for (guint i = 0; i < G_N_ELEMENTS (prompts); i++)
    if (g_str_equal (prompts[i].action, question->action))
      {
        polkit_details_insert (details, "polkit.message", prompts[i].message);
        polkit_details_insert (details, "polkit.gettext_domain", GETTEXT_PACKAGE);
      }
  return details;
}

static void
return_unreachable (GTask *task, const GError *error)
{
  const BjQuestion *question = g_task_get_task_data (task);
  g_autoptr(GError) stripped = g_error_copy (error);

  g_dbus_error_strip_remote_error (stripped);
  g_warning ("polkit could not check %s: %s", question->action, stripped->message);
  g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_DENIED,
                           "polkit could not check %s (%s): see that polkitd runs and that org.belljar1.policy is "
                           "installed among its actions",
                           question->action, stripped->message);
}

static void
on_checked (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GTask) task = user_data;
  const BjQuestion *question = g_task_get_task_data (task);
  g_autoptr(GError) error = NULL;
  g_autoptr(PolkitAuthorizationResult) answer
      = polkit_authority_check_authorization_finish (POLKIT_AUTHORITY (source), result, &error);

  if (answer == NULL)
    return_unreachable (task, error);
  else if (polkit_authorization_result_get_is_authorized (answer))
    g_task_return_boolean (task, TRUE);
  else if (polkit_authorization_result_get_dismissed (answer))
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_AUTH_DISMISSED, "Authentication for %s was dismissed",
                             question->action);
  else if (polkit_authorization_result_get_is_challenge (answer))
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_AUTH_NEEDED,
                             "%s needs authentication: call interactively with an authentication agent, or as root",
                             question->action);
  else
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_DENIED,
                             "You may not do this (%s): ask an administrator, for example to join group belljar",
                             question->action);
}

static gboolean
on_deadline (gpointer user_data)
{
  BjQuestion *question = user_data;

  question->deadline_id = 0;
  g_cancellable_cancel (question->deadline);
  return G_SOURCE_REMOVE;
}

static void
ask_polkit (GTask *task)
{
  BjGate *self = g_task_get_source_object (task);
  BjQuestion *question = g_task_get_task_data (task);
  g_autoptr(PolkitSubject) subject = polkit_system_bus_name_new (question->caller->sender);
  g_autoptr(PolkitDetails) details = make_details (question);
  PolkitCheckAuthorizationFlags flags = POLKIT_CHECK_AUTHORIZATION_FLAGS_NONE;

  if (question->interactive)
    flags = POLKIT_CHECK_AUTHORIZATION_FLAGS_ALLOW_USER_INTERACTION;
  polkit_authority_check_authorization (self->authority, subject, question->action, details, flags, question->deadline,
                                        on_checked, g_object_ref (task));
}

static void
on_authority (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GTask) task = user_data;
  BjGate *self = g_task_get_source_object (task);
  g_autoptr(GError) error = NULL;
  g_autoptr(PolkitAuthority) authority = polkit_authority_get_finish (result, &error);

  if (authority == NULL)
    {
      return_unreachable (task, error);
      return;
    }
  g_set_object (&self->authority, authority);
  ask_polkit (task);
}

/* The daemon's own uid and root: they could do as they like anyway. */
static void
ask_owner (GTask *task)
{
  const BjQuestion *question = g_task_get_task_data (task);

  if (question->caller->uid == geteuid () || question->caller->uid == 0)
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_DENIED,
                             "This belljard runs with --auth=owner: only uid %u may call it, not uid %u",
                             (guint) geteuid (), (guint) question->caller->uid);
}

/* For what belongs to somebody else a stronger action is needed. */
static const char *
action_for_owner (const char *action, uid_t owner_uid, uid_t caller_uid)
{
  static const char *const stronger[][2] = {
    { "org.belljar1.view", "org.belljar1.view-other" },
    { "org.belljar1.session.control", "org.belljar1.session.control-other" },
    { "org.belljar1.job.cancel", "org.belljar1.job.cancel-other" },
  };

  if (owner_uid == BJ_GATE_NOBODY || owner_uid == caller_uid)
    return action;
  for (guint i = 0; i < G_N_ELEMENTS (stronger); i++)
    if (g_str_equal (action, stronger[i][0]))
      return stronger[i][1];
  return action;
}

static void
check_async (BjGate *self, GDBusMethodInvocation *invocation, const BjCaller *caller, const char *action,
             uid_t owner_uid, const char *label, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr(GTask) task = g_task_new (self, NULL, callback, user_data);
  BjQuestion *question = g_new0 (BjQuestion, 1);
  GDBusMessage *message = g_dbus_method_invocation_get_message (invocation);

  question->caller = bj_caller_copy (caller);
  question->action = g_intern_string (action_for_owner (action, owner_uid, caller->uid));
  question->label = g_strdup (label);
  question->own = owner_uid == caller->uid;
  question->interactive
      = (g_dbus_message_get_flags (message) & G_DBUS_MESSAGE_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION) != 0;
  question->deadline = g_cancellable_new ();
  g_task_set_source_tag (task, check_async);
  g_task_set_task_data (task, question, (GDestroyNotify) question_free);
  if (g_str_equal (action, "open"))
    g_task_return_boolean (task, TRUE);
  else if (self->auth == BJ_AUTH_OWNER)
    ask_owner (task);
  else
    {
      question->deadline_id
          = g_timeout_add_seconds (question->interactive ? CHECK_INTERACTIVE_S : CHECK_S, on_deadline, question);
      if (self->authority != NULL)
        ask_polkit (task);
      else
        polkit_authority_get_async (question->deadline, on_authority, g_object_ref (task));
    }
}

/* A call on its way through the gate. */
typedef struct
{
  BjGate *gate;
  GDBusInterfaceSkeleton *skeleton;
  GDBusMethodInvocation *invocation; /* (nullable): NULL once it was handed on or answered */
  const char *action;                /* (nullable) */
  uid_t owner_uid;
  char *label;
} BjPass;

static void
pass_free (BjPass *pass)
{
  if (pass->invocation != NULL)
    g_dbus_method_invocation_return_error_literal (pass->invocation, BJ_ERROR, BJ_ERROR_FAILED,
                                                   "No answer was prepared");
  g_object_unref (pass->gate);
  g_object_unref (pass->skeleton);
  g_free (pass->label);
  g_free (pass);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjPass, pass_free)

/* The class of each guarded skeleton, as it was. */
typedef struct
{
  const GDBusInterfaceVTable *original;
  GDBusInterfaceVTable gated;
} BjHook;

static GMutex hooks_lock;
static GHashTable *hooks; /* (element-type GType BjHook): entries stay for good */

static BjHook *
find_hook (GType type)
{
  BjHook *hook;

  g_mutex_lock (&hooks_lock);
  hook = hooks != NULL ? g_hash_table_lookup (hooks, GSIZE_TO_POINTER (type)) : NULL;
  g_mutex_unlock (&hooks_lock);
  return hook;
}

static void
on_pass_checked (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(BjPass) pass = user_data;
  g_autoptr(GError) error = NULL;
  GDBusMethodInvocation *call;

  if (!bj_gate_check_owner_finish (pass->gate, result, &error))
    {
      bj_gate_return_error (g_steal_pointer (&pass->invocation), error);
      return;
    }
  call = g_steal_pointer (&pass->invocation);
  find_hook (G_OBJECT_TYPE (pass->skeleton))
      ->original->method_call (g_dbus_method_invocation_get_connection (call),
                               g_dbus_method_invocation_get_sender (call),
                               g_dbus_method_invocation_get_object_path (call),
                               g_dbus_method_invocation_get_interface_name (call),
                               g_dbus_method_invocation_get_method_name (call),
                               g_dbus_method_invocation_get_parameters (call), call, pass->skeleton);
}

static void
on_pass_caller (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(BjPass) pass = user_data;
  g_autoptr(GError) error = NULL;
  BjCaller *caller = bj_callers_lookup_finish (BJ_CALLERS (source), result, &error);
  BjGate *gate = pass->gate;
  GDBusMethodInvocation *invocation = pass->invocation;

  if (caller == NULL)
    {
      bj_gate_return_error (g_steal_pointer (&pass->invocation), error);
      return;
    }
  bj_weak_table_put (&invocation_callers, invocation, caller);
  check_async (gate, invocation, caller, pass->action, pass->owner_uid, pass->label, on_pass_checked, pass);
  g_steal_pointer (&pass);
}

static void
refuse (GDBusMethodInvocation *invocation, const char *why)
{
  g_autoptr(GError) error = g_error_new_literal (BJ_ERROR, BJ_ERROR_DENIED, why);

  g_warning ("%s.%s: %s", g_dbus_method_invocation_get_interface_name (invocation),
             g_dbus_method_invocation_get_method_name (invocation), why);
  bj_gate_return_error (invocation, error);
}

static void
gated_method_call (GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                   const char *method, GVariant *parameters, GDBusMethodInvocation *invocation, gpointer user_data)
{
  const GDBusMethodInfo *info = g_dbus_method_invocation_get_method_info (invocation);
  const char *action = info != NULL ? g_dbus_annotation_info_lookup (info->annotations, ANNOTATION) : NULL;
  const BjGuard *guard = bj_weak_table_get (&guards, user_data);
  BjPass *pass;

  if (guard == NULL || sender == NULL || action == NULL)
    {
      refuse (invocation, guard == NULL    ? "This object is not guarded, so nobody may call it"
                          : sender == NULL ? "A call without a sender is refused"
                                           : "Nobody may call this method: it names no polkit action");
      return;
    }
  pass = g_new0 (BjPass, 1);
  pass->gate = g_object_ref (guard->gate);
  pass->skeleton = g_object_ref (user_data);
  pass->invocation = invocation;
  pass->action = action;
  pass->owner_uid = guard->owner_uid;
  pass->label = g_strdup (guard->label);
  bj_callers_lookup_async (pass->gate->callers, sender, on_pass_caller, pass);
}

static GDBusInterfaceVTable *
gated_get_vtable (GDBusInterfaceSkeleton *skeleton)
{
  return &find_hook (G_OBJECT_TYPE (skeleton))->gated;
}

/*
 * GDBusInterfaceSkeleton takes its vtable from its class, and generated classes are final. So the class itself gets a
 * get_vtable of ours, once for each type; an instance that nobody guarded is refused by it.
 */
static void
hook_class (GDBusInterfaceSkeleton *skeleton)
{
  GDBusInterfaceSkeletonClass *klass = G_DBUS_INTERFACE_SKELETON_GET_CLASS (skeleton);
  BjHook *hook;

  g_mutex_lock (&hooks_lock);
  if (klass->get_vtable != gated_get_vtable)
    {
      if (hooks == NULL)
        hooks = g_hash_table_new (NULL, NULL);
      hook = g_new0 (BjHook, 1);
      hook->original = klass->get_vtable (skeleton);
      hook->gated = *hook->original;
      hook->gated.method_call = gated_method_call;
      g_type_class_ref (G_OBJECT_TYPE (skeleton));
      g_hash_table_insert (hooks, GSIZE_TO_POINTER (G_OBJECT_TYPE (skeleton)), hook);
      klass->get_vtable = gated_get_vtable;
    }
  g_mutex_unlock (&hooks_lock);
}

void
bj_gate_guard (BjGate *self, GDBusInterfaceSkeleton *skeleton, uid_t owner_uid, const char *label)
{
  BjGuard *guard = g_new0 (BjGuard, 1);

  guard->gate = g_object_ref (self);
  guard->owner_uid = owner_uid;
  guard->label = g_strdup (label != NULL ? label : "");
  hook_class (skeleton);
  bj_weak_table_put (&guards, skeleton, guard);
}

const BjCaller *
bj_gate_get_caller (GDBusMethodInvocation *invocation)
{
  return bj_weak_table_get (&invocation_callers, invocation);
}

void
bj_gate_check_owner_async (BjGate *self, GDBusMethodInvocation *invocation, const char *action, uid_t owner_uid,
                           const char *label, GAsyncReadyCallback callback, gpointer user_data)
{
  check_async (self, invocation, bj_gate_get_caller (invocation), action, owner_uid, label != NULL ? label : "",
               callback, user_data);
}

gboolean
bj_gate_check_owner_finish (BjGate *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}
