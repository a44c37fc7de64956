/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-session-manager.h"

#include "bj-error.h"
#include "bj-record.h"
#include "bj-session-bus.h"
#include "bj-session-recover.h"
#include "bj-session.h"
#include "bj-work.h"
#include "bj-worker.h"

#include <string.h>
#include <sys/statvfs.h>

#define FREE_MIN_BYTES (1024ull * 1024 * 1024)
#define SHUTDOWN_MAX_S 90

struct _BjSessionManager
{
  GObject parent_instance;

  BjContext *context; /* (not owned) */
  BjReportKey *key;   /* (not owned) */
  BjGateway *gateway; /* (owned) */
  GHashTable *sessions; /* (owned): object path to BjSession */
  GPtrArray *waiters; /* (owned): BjWait, of WaitReport and of the shutdown */
};

/* Somebody who waits for one session's end, or for all (no session). */
typedef struct
{
  BjSessionManager *manager; /* (not owned) */
  GTask *task;               /* (owned) */
  BjSession *session;        /* (owned) (nullable) */
  guint timeout_id;
} BjWait;

G_DEFINE_FINAL_TYPE (BjSessionManager, bj_session_manager, G_TYPE_OBJECT)

static guint changed_signal, over_signal;

static void
bj_session_manager_finalize (GObject *object)
{
  BjSessionManager *self = BJ_SESSION_MANAGER (object);

  g_ptr_array_unref (self->waiters);
  g_hash_table_unref (self->sessions);
  bj_gateway_free (self->gateway);
  G_OBJECT_CLASS (bj_session_manager_parent_class)->finalize (object);
}

static void
bj_session_manager_class_init (BjSessionManagerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_session_manager_finalize;
  changed_signal = g_signal_new ("changed", BJ_TYPE_SESSION_MANAGER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                 G_TYPE_NONE, 0);
  over_signal = g_signal_new ("over", BJ_TYPE_SESSION_MANAGER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
bj_session_manager_init (BjSessionManager *self)
{
  self->sessions = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_object_unref);
  self->waiters = g_ptr_array_new ();
}

static BjSession *
lookup_id (BjSessionManager *self, const char *id)
{
  g_autofree char *path = g_strconcat ("/org/belljar1/sessions/", id, NULL);

  return g_hash_table_lookup (self->sessions, path);
}

static guint
get_uint (GVariant *info, const char *key)
{
  guint32 value = 0;

  g_variant_lookup (info, key, "u", &value);
  return value;
}

static const char *
get_string (GVariant *info, const char *key)
{
  const char *value = "";

  g_variant_lookup (info, key, "&s", &value);
  return value;
}

/* The gateway's own account of a model turn: the transcript does not rest on the agent's word alone. */
static void
on_turn (const char *id, GVariant *info, gpointer data)
{
  BjSession *session = lookup_id (data, id);
  guint64 sent = 0;
  guint64 received = 0;
  double duration = 0;

  if (session == NULL || bj_session_is_over (session))
    return;
  g_variant_lookup (info, "request-bytes", "t", &sent);
  g_variant_lookup (info, "response-bytes", "t", &received);
  g_variant_lookup (info, "duration", "d", &duration);
  bj_session_record (session, TRUE, "model",
                     bj_record_model (get_uint (info, "turn"), get_string (info, "path"), get_uint (info, "status"), sent,
                                      get_string (info, "request-sha256"), received, get_string (info, "response-sha256"),
                                      duration, get_string (info, "error")));
}

BjSessionManager *
bj_session_manager_new (BjContext *context, BjReportKey *key)
{
  BjSessionManager *self = g_object_new (BJ_TYPE_SESSION_MANAGER, NULL);

  self->context = context;
  self->key = key;
  self->gateway = bj_gateway_new (context, on_turn, self);
  return self;
}

BjGateway *
bj_session_manager_get_gateway (BjSessionManager *self)
{
  return self->gateway;
}

typedef gboolean (*BjSessionTest) (BjSession *session, gconstpointer data);

static guint
count (BjSessionManager *self, BjSessionTest test, gconstpointer data)
{
  GHashTableIter iter;
  gpointer session;
  guint n = 0;

  g_hash_table_iter_init (&iter, self->sessions);
  while (g_hash_table_iter_next (&iter, NULL, &session))
    n += test (session, data) ? 1 : 0;
  return n;
}

/* What is on disk takes no room among those that run. @owner: (nullable): uid_t; only that one's */
static gboolean
takes_room (BjSession *session, gconstpointer owner)
{
  return !bj_session_is_over (session) && !bj_session_is_parked (session)
         && (owner == NULL || bj_session_get_plan (session)->owner_uid == *(const uid_t *) owner);
}

static gboolean
uses_image (BjSession *session, gconstpointer name)
{
  const BjImage *image = bj_session_get_plan (session)->image;

  return !bj_session_is_over (session) && image != NULL && g_str_equal (image->name, name);
}

static gboolean
works_on_project (BjSession *session, gconstpointer name)
{
  return !bj_session_is_over (session) && g_strcmp0 (bj_session_get_plan (session)->project, name) == 0;
}

/* Whether it lives on without this daemon: on disk, or because its machine is the host's to keep. */
static gboolean
outlives_daemon (BjSession *session)
{
  return bj_session_is_suspended (session)
         || (bj_session_get_context (session)->config->keep_sessions && bj_session_get_plan (session)->task == NULL);
}

/* Whether it has to end before the daemon can. */
static gboolean
holds_up_end (BjSession *session, gconstpointer unused)
{
  return bj_session_has_kept (session) || (!bj_session_is_over (session) && !outlives_daemon (session));
}

guint
bj_session_manager_count_using_image (BjSessionManager *self, const char *image)
{
  return count (self, uses_image, image);
}

guint
bj_session_manager_count_on_project (BjSessionManager *self, const char *project)
{
  return count (self, works_on_project, project);
}

GStrv
bj_session_manager_dup_live_digests (BjSessionManager *self)
{
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  GHashTableIter iter;
  gpointer session;

  g_hash_table_iter_init (&iter, self->sessions);
  while (g_hash_table_iter_next (&iter, NULL, &session))
    if (!bj_session_is_over (session) && bj_session_get_plan (session)->image != NULL)
      g_strv_builder_add (builder, bj_session_get_plan (session)->image->digest);
  return g_strv_builder_end (builder);
}

BjSessionPresence
bj_session_manager_look (BjSessionManager *self, const char *id, gboolean forget)
{
  BjSession *session = lookup_id (self, id);

  if (session == NULL)
    return BJ_SESSION_UNKNOWN;
  if (!bj_session_is_over (session))
    return BJ_SESSION_LIVE;
  if (forget)
    {
      bj_session_bus_unexport (session);
      g_hash_table_remove (self->sessions, bj_session_get_path (session));
      g_signal_emit (self, changed_signal, 0);
    }
  return BJ_SESSION_OVER;
}

static void
forget_wait (BjWait *wait)
{
  g_ptr_array_remove_fast (wait->manager->waiters, wait);
  g_clear_handle_id (&wait->timeout_id, g_source_remove);
  g_clear_object (&wait->session);
  g_object_unref (wait->task);
  g_free (wait);
}

static void
report_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  g_autoptr(GError) error = NULL;
  char *report = bj_session_dup_report (data, &error);

  if (report == NULL && g_error_matches (error, BJ_ERROR, BJ_ERROR_NOT_FOUND))
    report = g_strdup ("{\"outcome\":\"IN PROGRESS\"}");
  if (report != NULL)
    g_task_return_pointer (task, report, g_free);
  else
    g_task_return_error (task, g_steal_pointer (&error));
}

static void
answer_wait (BjWait *wait)
{
  if (wait->session != NULL)
    {
      g_task_set_task_data (wait->task, g_object_ref (wait->session), g_object_unref);
      bj_worker_run (wait->task, report_thread);
    }
  else
    g_task_return_boolean (wait->task, TRUE);
  forget_wait (wait);
}

static gboolean
on_wait_timeout (gpointer data)
{
  BjWait *wait = data;

  wait->timeout_id = 0;
  answer_wait (wait);
  return G_SOURCE_REMOVE;
}

/* It may be that somebody who waits for it, or for all, has what he waits for. */
static void
answer_waiters (BjSessionManager *self, BjSession *session)
{
  guint left = count (self, holds_up_end, NULL);
  gboolean answers = bj_session_is_over (session) || bj_session_wants_person (session);

  for (guint i = self->waiters->len; i > 0; i--)
    {
      BjWait *wait = g_ptr_array_index (self->waiters, i - 1);

      if ((wait->session == session && answers) || (wait->session == NULL && left == 0))
        answer_wait (wait);
    }
}

static void
on_waits (BjSession *session, gpointer data)
{
  BjSessionManager *self = data;

  answer_waiters (self, session);
  g_signal_emit (self, changed_signal, 0);
}

static void
on_over (BjSession *session, gpointer data)
{
  BjSessionManager *self = data;

  on_waits (session, self);
  g_signal_emit (self, over_signal, 0);
}

static void
wait_for (BjSessionManager *self, GTask *task, BjSession *session, guint timeout_ms)
{
  BjWait *wait = g_new0 (BjWait, 1);

  wait->manager = self;
  wait->task = task;
  wait->session = session != NULL ? g_object_ref (session) : NULL;
  wait->timeout_id = g_timeout_add (timeout_ms, on_wait_timeout, wait);
  g_ptr_array_add (self->waiters, wait);
}

void
bj_session_manager_wait_async (BjSessionManager *self, BjSession *session, guint timeout_ms, GAsyncReadyCallback callback,
                               gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);

  g_task_set_source_tag (task, bj_session_manager_wait_async);
  wait_for (self, task, session, bj_session_is_over (session) || bj_session_wants_person (session) ? 0 : timeout_ms);
}

static char *
read_outcome (const char *report)
{
  g_autoptr(JsonNode) root = json_from_string (report, NULL);

  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    return g_strdup ("FAILED");
  return g_strdup (json_object_get_string_member_with_default (json_node_get_object (root), "outcome", "FAILED"));
}

gboolean
bj_session_manager_wait_finish (BjSessionManager *self, GAsyncResult *result, char **outcome, char **report,
                                GError **error)
{
  g_autofree char *text = g_task_propagate_pointer (G_TASK (result), error);

  if (text == NULL)
    return FALSE;
  *outcome = read_outcome (text);
  *report = g_steal_pointer (&text);
  return TRUE;
}

/* Delete: end it first if need be, then remove what it left. */
static void
delete_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  g_autoptr(GError) error = NULL;

  if (bj_session_erase (bj_session_get_context (source), bj_session_get_id (source), &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, g_steal_pointer (&error));
}

static void
on_deleted (GObject *source, GAsyncResult *result, gpointer data)
{
  GDBusMethodInvocation *invocation = data;
  g_autoptr(GError) error = NULL;

  if (g_task_propagate_boolean (G_TASK (result), &error))
    bj_dbus_session_complete_delete (bj_session_get_skeleton (BJ_SESSION (source)), invocation);
  else
    bj_gate_return_error (invocation, error);
}

/* A session to be deleted when it is over. */
typedef struct
{
  BjSessionManager *manager;         /* (owned) */
  GDBusMethodInvocation *invocation; /* (owned) until answered */
} BjDeletion;

static void
delete_now (BjSession *session, BjDeletion *deletion)
{
  g_autoptr(GTask) task = g_task_new (session, NULL, on_deleted, g_steal_pointer (&deletion->invocation));

  g_signal_handlers_disconnect_by_data (session, deletion);
  bj_session_bus_unexport (session);
  bj_worker_run (task, delete_thread);
  g_hash_table_remove (deletion->manager->sessions, bj_session_get_path (session));
  g_signal_emit (deletion->manager, changed_signal, 0);
  g_object_unref (deletion->manager);
  g_free (deletion);
}

/* Its machine first, if one was kept. */
static void
on_over_for_delete (BjSession *session, BjDeletion *deletion)
{
  if (bj_session_has_kept (session))
    bj_session_release_kept (session);
  else
    delete_now (session, deletion);
}

static void
on_delete (BjSession *session, GDBusMethodInvocation *invocation, gpointer data)
{
  BjDeletion *deletion = g_new0 (BjDeletion, 1);

  deletion->manager = g_object_ref (data);
  deletion->invocation = invocation;
  if (bj_session_is_over (session) && !bj_session_has_kept (session))
    {
      delete_now (session, deletion);
      return;
    }
  g_signal_connect_after (session, "over", G_CALLBACK (on_over_for_delete), deletion);
  bj_session_stop (session, "The session was deleted");
  g_cancellable_cancel (bj_session_get_hurry (session));
}

static void
add (BjSessionManager *self, BjSession *session)
{
  g_hash_table_insert (self->sessions, (gpointer) bj_session_get_path (session), g_object_ref (session));
  g_signal_connect_object (session, "over", G_CALLBACK (on_over), self, 0);
  g_signal_connect_object (session, "waits", G_CALLBACK (on_waits), self, 0);
  bj_session_bus_export (session, on_delete, self);
}

static gboolean
check_room (BjSessionManager *self, const BjSessionPlan *plan, GError **error)
{
  const BjConfig *config = self->context->config;
  guint live = count (self, takes_room, NULL);
  guint own = count (self, takes_room, &plan->owner_uid);
  struct statvfs fs;

  if (live >= config->sessions)
    return bj_error_set (error, BJ_ERROR_LIMIT, "%u sessions are running and [limits] sessions is %u: stop one or wait", live,
                         config->sessions);
  if (own >= config->sessions_per_user)
    return bj_error_set (error, BJ_ERROR_LIMIT,
                         "%u sessions of yours are running and [limits] sessions-per-user is %u: stop one or wait", own,
                         config->sessions_per_user);
  if (plan->project != NULL && bj_session_manager_count_on_project (self, plan->project) > 0)
    return bj_error_set (error, BJ_ERROR_BUSY, "Another session works on the project “%s”: wait for it or stop it",
                         plan->project);
  if (statvfs (self->context->state_dir, &fs) == 0 && (guint64) fs.f_bavail * fs.f_frsize < FREE_MIN_BYTES)
    return bj_error_set (error, BJ_ERROR_NO_SPACE, "Only %" G_GUINT64_FORMAT " MiB are free in %s, a session needs %llu",
                         (guint64) fs.f_bavail * fs.f_frsize >> 20, self->context->state_dir, FREE_MIN_BYTES >> 20);
  return TRUE;
}

char *
bj_session_manager_start (BjSessionManager *self, const BjCaller *caller, const char *task, GVariant *options,
                          GError **error)
{
  g_autoptr(BjSessionPlan) plan = bj_session_plan_new (self->context, caller, task, options, error);
  g_autoptr(BjSession) session = NULL;
  int slot;

  if (plan == NULL || !check_room (self, plan, error))
    return NULL;
  slot = bj_slots_take (self->context->slots);
  if (slot < 0)
    {
      bj_error_set (error, BJ_ERROR_LIMIT, "There is no free slot for another machine");
      return NULL;
    }
  plan->slot = (guint) slot;
  if (plan->item != 0 && !bj_store_begin_task (self->context->store, plan->project, plan->item, plan->id, error))
    {
      bj_slots_release (self->context->slots, plan->slot);
      return NULL;
    }
  session = bj_session_new (self->context, g_steal_pointer (&plan), self->key);
  bj_session_save (session);
  add (self, session);
  bj_session_run_async (session, self->gateway);
  g_message ("Session %s started for uid %u", bj_session_get_id (session), caller->uid);
  g_signal_emit (self, changed_signal, 0);
  return g_strdup (bj_session_get_path (session));
}

gboolean
bj_session_manager_load (BjSessionManager *self, GError **error)
{
  g_autoptr(GPtrArray) rows = bj_store_list_sessions (self->context->store, error);
  g_autoptr(GPtrArray) settled = NULL;

  if (rows == NULL)
    return FALSE;
  for (guint i = 0; i < rows->len; i++)
    {
      const BjSessionRow *row = g_ptr_array_index (rows, i);
      g_autoptr(BjSession) session = bj_session_new_from_row (self->context, row, self->key);

      add (self, session);
      if (!bj_session_is_over (session))
        bj_session_recover (session, self->gateway);
    }
  settled = bj_store_list_sessions (self->context->store, error);
  return settled != NULL && bj_session_recover_world (self->context, settled, error)
         && bj_store_recover_tasks (self->context->store, error);
}

BjSession *
bj_session_manager_lookup (BjSessionManager *self, const char *path)
{
  return g_hash_table_lookup (self->sessions, path);
}

GVariant *
bj_session_manager_get_budget (BjSessionManager *self)
{
  const BjConfig *config = self->context->config;
  g_auto(GVariantBuilder) budget = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  guint live = count (self, takes_room, NULL);

  g_variant_builder_add (&budget, "{sv}", "sessions", g_variant_new_uint32 (config->sessions));
  g_variant_builder_add (&budget, "{sv}", "sessions-per-user", g_variant_new_uint32 (config->sessions_per_user));
  g_variant_builder_add (&budget, "{sv}", "sessions-used", g_variant_new_uint32 (live));
  g_variant_builder_add (&budget, "{sv}", "memory-mib", g_variant_new_uint32 (config->sessions * config->memory_mib));
  g_variant_builder_add (&budget, "{sv}", "memory-used-mib", g_variant_new_uint32 (live * config->memory_mib));
  g_variant_builder_add (&budget, "{sv}", "cpus", g_variant_new_uint32 (config->cpus));
  return g_variant_builder_end (&budget);
}

void
bj_session_manager_shutdown_async (BjSessionManager *self, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);
  GHashTableIter iter;
  gpointer session;

  g_task_set_source_tag (task, bj_session_manager_shutdown_async);
  g_hash_table_iter_init (&iter, self->sessions);
  while (g_hash_table_iter_next (&iter, NULL, &session))
    if (bj_session_has_kept (session))
      bj_session_release_kept (session);
    else if (!bj_session_is_over (session) && !outlives_daemon (session) && !bj_session_suspend (session))
      {
        bj_session_stop (session, "belljard was stopped");
        g_cancellable_cancel (bj_session_get_hurry (session));
      }
  wait_for (self, task, NULL, count (self, holds_up_end, NULL) > 0 ? SHUTDOWN_MAX_S * 1000 : 0);
}

gboolean
bj_session_manager_shutdown_finish (BjSessionManager *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}
