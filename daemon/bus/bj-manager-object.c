/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-manager"

#include "bj-manager-object.h"

#include "bj-bus.h"
#include "bj-call.h"
#include "bj-config-build.h"
#include "bj-dbus-manager.h"
#include "bj-disk-use.h"
#include "bj-doctor.h"
#include "bj-name.h"
#include "bj-options.h"
#include "bj-pruner.h"
#include "bj-session.h"
#include "bj-shared-call.h"

#include <string.h>

#define MIRROR_BYTES_MAX 512
/* How many calls of WaitReport one user may have waiting. */
#define WAITS_PER_USER 256

struct _BjManagerObject
{
  BjContext *context;
  BjSessionManager *sessions; /* (owned) */
  BjDBusManager *skeleton;
  GHashTable *waits; /* uid to how many wait */
  BjSharedCall *doctor;
  BjSharedCall *disk_use;
  BjPruner *pruner;
};

static gboolean
start_session (BjManagerObject *self, GDBusMethodInvocation *invocation, const char *task, GVariant *options)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path
      = bj_session_manager_start (self->sessions, bj_gate_get_caller (invocation), task, options, &error);

  if (path != NULL)
    g_dbus_method_invocation_return_value (invocation, g_variant_new ("(o)", path));
  else
    bj_gate_return_error (invocation, error);
  return TRUE;
}

static gboolean
on_run_task (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, const char *task, GVariant *options,
             gpointer user_data)
{
  return start_session (user_data, invocation, task, options);
}

static gboolean
on_open_session (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, GVariant *options, gpointer user_data)
{
  return start_session (user_data, invocation, NULL, options);
}

/* A call that names a session, from the check of its owner to the answer. */
typedef struct
{
  BjManagerObject *manager;
  GDBusMethodInvocation *invocation; /* (owned) until it is answered */
  BjSession *session;                /* (owned) */
  uid_t uid;
  guint timeout_ms; /* of WaitReport */
  gboolean counted; /* among those that wait */
  char *text;       /* of Answer */
} BjSessionCall;

static guint
count_waits (BjManagerObject *self, uid_t uid, int change)
{
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (self->waits, GUINT_TO_POINTER (uid))) + (guint) change;

  if (n == 0)
    g_hash_table_remove (self->waits, GUINT_TO_POINTER (uid));
  else
    g_hash_table_insert (self->waits, GUINT_TO_POINTER (uid), GUINT_TO_POINTER (n));
  return n;
}

/* Returns: (transfer full): %NULL: there is no such session, and the caller has been told */
static BjSessionCall *
session_call_new (BjManagerObject *self, GDBusMethodInvocation *invocation, const char *path)
{
  BjSession *session = bj_session_manager_lookup (self->sessions, path);
  BjSessionCall *call;

  if (session == NULL)
    {
      bj_call_return_error (invocation, BJ_ERROR_NOT_FOUND, "There is no session %s: see belljar sessions", path);
      return NULL;
    }
  call = g_new0 (BjSessionCall, 1);
  call->manager = self;
  call->invocation = invocation;
  call->session = g_object_ref (session);
  call->uid = bj_gate_get_caller (invocation)->uid;
  return call;
}

static void
session_call_free (gpointer data)
{
  BjSessionCall *call = data;

  if (call->counted)
    count_waits (call->manager, call->uid, -1);
  g_object_unref (call->session);
  g_free (call->text);
  g_free (call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjSessionCall, session_call_free)

/* @call: (transfer full): it is the user_data of @checked */
static void
session_call_check (BjSessionCall *call, const char *action, GAsyncReadyCallback checked)
{
  g_autofree char *label = g_strdup_printf ("session %s", bj_session_get_id (call->session));

  bj_gate_check_owner_async (call->manager->context->gate, call->invocation, action,
                             bj_session_get_plan (call->session)->owner_uid, label, checked, call);
}

/* Returns: whether the call goes on; else it has been answered */
static gboolean
session_call_is_allowed (BjSessionCall *call, GObject *gate, GAsyncResult *result)
{
  const char *path = bj_session_get_path (call->session);
  g_autoptr(GError) error = NULL;

  if (!bj_gate_check_owner_finish (BJ_GATE (gate), result, &error))
    bj_gate_return_error (call->invocation, error);
  else if (bj_session_manager_lookup (call->manager->sessions, path) == NULL)
    bj_call_return_error (call->invocation, BJ_ERROR_NOT_FOUND, "There is no session %s", path); /* it was deleted meanwhile */
  else
    return TRUE;
  return FALSE;
}

static void
on_waited (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(BjSessionCall) call = user_data;
  g_autoptr(GError) error = NULL;
  g_autofree char *outcome = NULL;
  g_autofree char *report = NULL;

  if (bj_session_manager_wait_finish (BJ_SESSION_MANAGER (source), result, &outcome, &report, &error))
    bj_dbus_manager_complete_wait_report (call->manager->skeleton, call->invocation, outcome, report);
  else
    bj_gate_return_error (call->invocation, error);
}

static void
on_wait_checked (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(BjSessionCall) call = user_data;

  if (session_call_is_allowed (call, source, result))
    {
      bj_session_manager_wait_async (call->manager->sessions, call->session, call->timeout_ms, on_waited, call);
      g_steal_pointer (&call);
    }
}

static gboolean
on_wait_report (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, const char *session, guint timeout_ms,
                gpointer user_data)
{
  g_autoptr(BjSessionCall) call = session_call_new (user_data, invocation, session);

  if (call == NULL)
    return TRUE;
  if (count_waits (call->manager, call->uid, 0) >= WAITS_PER_USER)
    return bj_call_return_error (invocation, BJ_ERROR_LIMIT, "%d calls of WaitReport of yours are waiting already",
                                 WAITS_PER_USER);
  count_waits (call->manager, call->uid, 1);
  call->counted = TRUE;
  call->timeout_ms = timeout_ms;
  session_call_check (g_steal_pointer (&call), "org.belljar1.view", on_wait_checked);
  return TRUE;
}

static gboolean
answer_session (gpointer data, GVariant **reply, GError **error)
{
  BjSessionCall *call = data;

  return bj_session_answer (call->session, call->text, call->uid, error);
}

static void
on_answer_checked (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(BjSessionCall) call = user_data;

  if (session_call_is_allowed (call, source, result))
    {
      bj_call_in_worker (call->invocation, answer_session, call, session_call_free);
      g_steal_pointer (&call);
    }
}

static gboolean
on_answer (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, const char *session, const char *text,
           gpointer user_data)
{
  g_autoptr(BjSessionCall) call = session_call_new (user_data, invocation, session);

  if (call == NULL)
    return TRUE;
  call->text = g_strdup (text);
  session_call_check (g_steal_pointer (&call), "org.belljar1.session.control", on_answer_checked);
  return TRUE;
}

/* Work that makes a project or an image. */
typedef struct
{
  BjContext *context;
  char *name;
  char *mirror; /* (nullable) */
  gboolean freeze;
  uid_t uid;
  gid_t gid;
} BjMaking;

static BjMaking *
making_new (BjManagerObject *self, GDBusMethodInvocation *invocation, const char *name)
{
  BjMaking *making = g_new0 (BjMaking, 1);
  const BjCaller *caller = bj_gate_get_caller (invocation);

  making->context = self->context;
  making->name = g_strdup (name);
  making->uid = caller->uid;
  making->gid = caller->gid;
  return making;
}

static void
making_free (gpointer data)
{
  BjMaking *making = data;

  g_free (making->name);
  g_free (making->mirror);
  g_free (making);
}

static gboolean
check_name (GDBusMethodInvocation *invocation, const char *what, const char *name)
{
  if (bj_name_is_valid (name))
    return TRUE;
  bj_call_return_error (invocation, BJ_ERROR_INVALID,
                        "“%s” is no name for %s: 1 to 63 of the characters a-z, 0-9, “.”, “_” and “-”, a letter or a "
                        "digit first",
                        name, what);
  return FALSE;
}

static gboolean
create_project (gpointer data, GVariant **reply, GError **error)
{
  BjMaking *making = data;
  g_autofree char *element = bj_name_to_path_element (making->name);
  g_autofree char *path = g_strdup_printf (BJ_BUS_ROOT "/projects/%s", element);

  if (!bj_project_store_create (making->context->projects, making->name, making->uid, making->gid, error))
    return FALSE;
  *reply = g_variant_new ("(o)", path);
  return TRUE;
}

static gboolean
on_create_project (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, const char *name, GVariant *options,
                   gpointer user_data)
{
  g_autoptr(GError) error = NULL;

  if (!check_name (invocation, "a project", name))
    return TRUE;
  if (bj_options_check (options, NULL, 0, &error))
    bj_call_in_worker (invocation, create_project, making_new (user_data, invocation, name), making_free);
  else
    bj_gate_return_error (invocation, error);
  return TRUE;
}

static BjImage *
build_in_slot (BjMaking *making, BjProgress *progress, GCancellable *cancellable, GError **error)
{
  int slot = bj_slots_take (making->context->slots);
  BjImage *image;

  if (slot < 0)
    {
      bj_error_set (error, BJ_ERROR_LIMIT, "There is no free slot for the machine that tests the image");
      return NULL;
    }
  image = bj_image_store_build (making->context->images, making->name, making->mirror, (guint) slot, progress, cancellable,
                                error);
  bj_slots_release (making->context->slots, (guint) slot);
  return image;
}

static gboolean
build_image (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  BjMaking *making = data;
  gint64 began = g_get_monotonic_time ();
  g_autoptr(BjImage) image = NULL;
  g_autoptr(BjProgress) building = bj_progress_new_child (progress);
  g_autoptr(BjProgress) freezing = bj_progress_new_child (progress);

  bj_progress_add_step (progress, "build", 95);
  if (making->freeze)
    bj_progress_add_step (progress, "freeze", 5);
  image = build_in_slot (making, building, cancellable, error);
  if (image == NULL)
    return FALSE;
  bj_progress_step_done (progress);
  if (making->freeze && !bj_image_store_freeze (making->context->images, image->name, freezing, cancellable, error))
    return FALSE;
  *message = g_strdup_printf ("Image %s:%u is built%s: %" G_GUINT64_FORMAT " MiB, %" G_GINT64_FORMAT " s", image->name,
                              image->version, making->freeze ? " and frozen" : "", image->size >> 20,
                              (g_get_monotonic_time () - began) / G_USEC_PER_SEC);
  return TRUE;
}

static gboolean
check_mirror (GVariant *value, GError **error)
{
  const char *url = g_variant_get_string (value, NULL);
  g_autoptr(GUri) uri = g_uri_parse (url, G_URI_FLAGS_NONE, NULL);
  const char *scheme = uri != NULL ? g_uri_get_scheme (uri) : "";

  if ((g_str_equal (scheme, "http") || g_str_equal (scheme, "https")) && strlen (url) <= MIRROR_BYTES_MAX
      && strpbrk (url, " \t\r\n[]'\"\\|") == NULL)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "must be an http or https URL of at most %d bytes", MIRROR_BYTES_MAX);
}

static const BjOption build_options[] = { { "mirror", "s", check_mirror }, { "freeze", "b", NULL } };

static gboolean
on_build_image (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, const char *recipe, GVariant *options,
                gpointer user_data)
{
  BjManagerObject *self = user_data;
  g_autoptr(GError) error = NULL;
  BjMaking *making;

  if (!check_name (invocation, "a recipe", recipe))
    return TRUE;
  if (!bj_options_check (options, build_options, G_N_ELEMENTS (build_options), &error))
    {
      bj_gate_return_error (invocation, error);
      return TRUE;
    }
  making = making_new (self, invocation, recipe);
  making->freeze = TRUE;
  g_variant_lookup (options, "freeze", "b", &making->freeze);
  if (!g_variant_lookup (options, "mirror", "s", &making->mirror))
    making->mirror = g_strdup (self->context->config->mirror);
  bj_call_as_job (invocation, self->context->jobs, "image-build", build_image, making, making_free);
  return TRUE;
}

static gboolean
on_doctor (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjManagerObject *self = user_data;

  bj_shared_call_add (self->doctor, invocation);
  return TRUE;
}

static gboolean
on_disk_usage (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjManagerObject *self = user_data;

  bj_shared_call_add (self->disk_use, invocation);
  return TRUE;
}

static gboolean
on_prune (BjDBusManager *skeleton, GDBusMethodInvocation *invocation, GVariant *options, gpointer user_data)
{
  BjManagerObject *self = user_data;

  return bj_pruner_call (self->pruner, invocation, options);
}

static gpointer
make_doctor (gpointer user_data)
{
  BjManagerObject *self = user_data;

  return bj_doctor_new (self->context, self->sessions);
}

static gpointer
dup_state_dir (gpointer user_data)
{
  BjManagerObject *self = user_data;

  return g_strdup (self->context->state_dir);
}

static void
add_layer (GVariantBuilder *layers, const char *name, gboolean active, gboolean proven, const char *reason)
{
  GVariantBuilder layer = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);

  g_variant_builder_add (&layer, "{sv}", "active", g_variant_new_boolean (active));
  g_variant_builder_add (&layer, "{sv}", "proven", g_variant_new_boolean (proven));
  g_variant_builder_add (&layer, "{sv}", "reason", g_variant_new_string (reason));
  g_variant_builder_add (layers, "{sv}", name, g_variant_builder_end (&layer));
}

static GVariant *
describe_isolation (BjContext *context)
{
  GVariantBuilder layers = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  gboolean is_root = geteuid () == 0;
  gboolean active = FALSE, proven = FALSE;
  g_autofree char *reason = NULL;

  if (context->firewall != NULL)
    bj_firewall_get_status (context->firewall, &active, &proven, &reason);
  add_layer (&layers, "nftables", active, proven, reason != NULL ? reason : "belljard does not run as root");
  add_layer (&layers, "systemd", FALSE, FALSE, "not part of this version");
  add_layer (&layers, "uid", is_root, is_root,
             is_root ? "each machine has a uid of its own" : "belljard does not run as root");
  return g_variant_builder_end (&layers);
}

static void
update (BjManagerObject *self)
{
  bj_dbus_manager_set_isolation (self->skeleton, describe_isolation (self->context));
  bj_dbus_manager_set_budget (self->skeleton, bj_session_manager_get_budget (self->sessions));
}

BjManagerObject *
bj_manager_object_new (BjContext *context, BjSessionManager *sessions, const char *report_key)
{
  BjManagerObject *self = g_new0 (BjManagerObject, 1);

  self->context = context;
  self->sessions = g_object_ref (sessions);
  self->waits = g_hash_table_new (NULL, NULL);
  self->doctor = bj_shared_call_new (bj_doctor_run, make_doctor, self, (GDestroyNotify) bj_doctor_free);
  self->disk_use = bj_shared_call_new (bj_disk_use_list, dup_state_dir, self, g_free);
  self->pruner = bj_pruner_new (context, sessions);
  self->skeleton = bj_dbus_manager_skeleton_new ();
  bj_dbus_manager_set_version (self->skeleton, BJ_VERSION);
  bj_dbus_manager_set_engine (self->skeleton, bj_engine_get_uri (context->engine));
  bj_dbus_manager_set_accelerator (self->skeleton,
                                   bj_accelerator_to_string (bj_engine_get_accelerator (context->engine)));
  bj_dbus_manager_set_report_key (self->skeleton, report_key);
  update (self);
  g_signal_connect_swapped (sessions, "changed", G_CALLBACK (update), self);
  g_signal_connect (self->skeleton, "handle-run-task", G_CALLBACK (on_run_task), self);
  g_signal_connect (self->skeleton, "handle-open-session", G_CALLBACK (on_open_session), self);
  g_signal_connect (self->skeleton, "handle-answer", G_CALLBACK (on_answer), self);
  g_signal_connect (self->skeleton, "handle-wait-report", G_CALLBACK (on_wait_report), self);
  g_signal_connect (self->skeleton, "handle-create-project", G_CALLBACK (on_create_project), self);
  g_signal_connect (self->skeleton, "handle-build-image", G_CALLBACK (on_build_image), self);
  g_signal_connect (self->skeleton, "handle-doctor", G_CALLBACK (on_doctor), self);
  g_signal_connect (self->skeleton, "handle-disk-usage", G_CALLBACK (on_disk_usage), self);
  g_signal_connect (self->skeleton, "handle-prune", G_CALLBACK (on_prune), self);
  bj_gate_guard (context->gate, G_DBUS_INTERFACE_SKELETON (self->skeleton), BJ_GATE_NOBODY, "");
  return self;
}

gboolean
bj_manager_object_export (BjManagerObject *self, GDBusConnection *connection, GError **error)
{
  return g_dbus_interface_skeleton_export (G_DBUS_INTERFACE_SKELETON (self->skeleton), connection, BJ_BUS_ROOT, error);
}

void
bj_manager_object_free (BjManagerObject *self)
{
  if (self == NULL)
    return;
  g_signal_handlers_disconnect_by_data (self->sessions, self);
  g_signal_handlers_disconnect_by_data (self->skeleton, self);
  g_dbus_interface_skeleton_unexport (G_DBUS_INTERFACE_SKELETON (self->skeleton));
  g_object_unref (self->skeleton);
  g_object_unref (self->sessions);
  g_hash_table_unref (self->waits);
  bj_shared_call_free (self->doctor);
  bj_shared_call_free (self->disk_use);
  bj_pruner_free (self->pruner);
  g_free (self);
}
