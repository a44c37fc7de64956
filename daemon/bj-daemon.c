/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljard"

#include "bj-daemon.h"

#include "bj-bus.h"
#include "bj-config-build.h"
#include "bj-context.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-image-objects.h"
#include "bj-manager-object.h"
#include "bj-pool.h"
#include "bj-project-objects.h"
#include "bj-report.h"
#include "bj-session-manager.h"
#include "bj-state-dir.h"
#include "bj-worker.h"

#include <glib-unix.h>
#include <signal.h>

#define FREE_WARN_BYTES (G_GUINT64_CONSTANT (1) << 30)
#define STOP_MAX_S 150 /* sessions may take 90 of them */
#define JOBS_MAX_S 30

typedef enum
{
  BJ_PHASE_STARTING,
  BJ_PHASE_RUNNING,
  BJ_PHASE_STOPPING,
} BjPhase;

typedef struct
{
  BjContext context;
  const BjDaemonOptions *options;
  BjPhase phase;
  GMainLoop *loop;
  int exit_code;
  GCancellable *cancellable; /* of the start */
  int lock;
  BjReportKey *key;
  GDBusConnection *connection;
  guint name_id;
  gboolean firewall_is_ours; /* installed by this process */
  BjSessionManager *sessions;
  BjImageObjects *images;
  BjProjectObjects *projects;
  BjManagerObject *manager;
} BjDaemon;

static void
fail (BjDaemon *self, const GError *error)
{
  g_critical ("%s", error->message);
  self->exit_code = 1;
}

/* Everything is at rest: the machines, then what kept them from the network. */
static void
close_world (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  BjDaemon *self = task_data;
  g_auto(GStrv) machines = NULL;
  gboolean kept;

  g_clear_pointer (&self->context.pool, bj_pool_free);
  bj_teardown_wait (self->context.teardown);
  machines = bj_engine_list_machines (self->context.engine, NULL);
  kept = machines != NULL && machines[0] != NULL;
  if (kept)
    g_message ("%u machines live on, and with them the firewall", g_strv_length (machines));
  else if (self->firewall_is_ours)
    bj_firewall_remove (self->context.firewall);
  bj_engine_close (self->context.engine);
  g_task_return_boolean (task, TRUE);
}

static void
on_closed_world (GObject *source, GAsyncResult *result, gpointer user_data)
{
  BjDaemon *self = user_data;

  g_main_loop_quit (self->loop);
}

static void
close_in_worker (BjDaemon *self)
{
  g_autoptr(GTask) task = g_task_new (NULL, NULL, on_closed_world, self);

  g_task_set_source_tag (task, close_in_worker);
  g_task_set_task_data (task, self, NULL);
  bj_worker_run (task, close_world);
}

static void
on_sessions_ended (GObject *source, GAsyncResult *result, gpointer user_data)
{
  BjDaemon *self = user_data;
  g_autoptr(GError) error = NULL;

  if (!bj_session_manager_shutdown_finish (self->sessions, result, &error))
    fail (self, error);
  g_clear_pointer (&self->manager, bj_manager_object_free);
  g_clear_pointer (&self->images, bj_image_objects_free);
  g_clear_pointer (&self->projects, bj_project_objects_free);
  bj_jobs_free (g_steal_pointer (&self->context.jobs), JOBS_MAX_S);
  close_in_worker (self);
}

static gboolean
on_late (gpointer user_data)
{
  g_critical ("belljard did not end within %d seconds, it is ended now; the next start puts things in order", STOP_MAX_S);
  _exit (1);
}

static void
stop (BjDaemon *self, const char *why)
{
  BjPhase phase = self->phase;

  if (phase == BJ_PHASE_STOPPING)
    return;
  g_message ("belljard ends: %s", why);
  self->phase = BJ_PHASE_STOPPING;
  g_timeout_add_seconds (STOP_MAX_S, on_late, self);
  g_clear_handle_id (&self->name_id, g_bus_unown_name);
  if (phase == BJ_PHASE_STARTING)
    {
      g_cancellable_cancel (self->cancellable); /* on_opened goes on from there */
      return;
    }
  bj_jobs_cancel_all (self->context.jobs);
  bj_session_manager_shutdown_async (self->sessions, on_sessions_ended, self);
}

static gboolean
on_signal (gpointer user_data)
{
  BjDaemon *self = user_data;

  if (self->phase == BJ_PHASE_STOPPING)
    {
      g_warning ("A second signal: belljard ends at once; the next start puts things in order");
      _exit (1);
    }
  stop (self, "it got a signal");
  return G_SOURCE_CONTINUE;
}

static void
on_name_acquired (GDBusConnection *connection, const char *name, gpointer user_data)
{
  BjDaemon *self = user_data;

  g_log_structured (G_LOG_DOMAIN, G_LOG_LEVEL_MESSAGE, "MESSAGE",
                    "belljard " BJ_VERSION " is ready: %s, %s, state in %s", bj_engine_get_uri (self->context.engine),
                    bj_accelerator_to_string (bj_engine_get_accelerator (self->context.engine)),
                    self->context.state_dir);
}

static void
on_name_lost (GDBusConnection *connection, const char *name, gpointer user_data)
{
  BjDaemon *self = user_data;

  self->exit_code = 1;
  if (connection == NULL || g_dbus_connection_is_closed (connection))
    stop (self, "the bus is gone");
  else
    stop (self, "the bus does not give it the name " BJ_BUS_NAME
                ": another belljard has it, or the bus policy (org.belljar1.conf) is not installed");
}

static gboolean
publish (BjDaemon *self, GError **error)
{
  BjContext *context = &self->context;
  g_autofree char *key = bj_report_key_dup_public (self->key);

  context->jobs = bj_jobs_new (context->objects, context->gate);
  self->sessions = bj_session_manager_new (context, self->key);
  if (!bj_session_manager_load (self->sessions, error))
    {
      g_prefix_error (error, "Loading the sessions: ");
      return FALSE;
    }
  bj_pool_clean (context);
  context->pool = bj_pool_new (context);
  self->images = bj_image_objects_new (context, self->sessions);
  self->projects = bj_project_objects_new (context, self->sessions);
  self->manager = bj_manager_object_new (context, self->sessions, key);
  if (!bj_manager_object_export (self->manager, self->connection, error))
    return FALSE;
  g_dbus_object_manager_server_set_connection (context->objects, self->connection);
  self->phase = BJ_PHASE_RUNNING;
  self->name_id = g_bus_own_name_on_connection (self->connection, BJ_BUS_NAME, G_BUS_NAME_OWNER_FLAGS_DO_NOT_QUEUE,
                                                on_name_acquired, on_name_lost, self, NULL);
  return TRUE;
}

static void
on_opened (GObject *source, GAsyncResult *result, gpointer user_data)
{
  BjDaemon *self = user_data;
  g_autoptr(GError) error = NULL;
  gboolean opened = g_task_propagate_boolean (G_TASK (result), &error);

  if (opened && self->phase == BJ_PHASE_STARTING && publish (self, &error))
    return;
  if (error != NULL && self->phase == BJ_PHASE_STARTING)
    fail (self, error);
  close_in_worker (self);
}

static void
install_firewall (BjDaemon *self)
{
  g_autoptr(GError) error = NULL;

  if (self->context.firewall == NULL)
    {
      g_message ("belljard does not run as root: no layer of isolation, so sessions have no network");
      return;
    }
  self->firewall_is_ours = bj_firewall_install (self->context.firewall, &error);
  if (!self->firewall_is_ours || !bj_firewall_prove (self->context.firewall, &error))
    g_warning ("The nftables layer is not effective, so sessions have no network: %s", error->message);
}

static void
clean_images (BjDaemon *self)
{
  g_auto(GStrv) removed = bj_image_store_clean (self->context.images);

  for (guint i = 0; removed != NULL && removed[i] != NULL; i++)
    g_message ("An image build was interrupted, removed: %s", removed[i]);
}

static void
clean_templates (BjDaemon *self)
{
  g_autoptr(GPtrArray) images = bj_image_store_list (self->context.images);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  g_auto(GStrv) digests = NULL;

  for (guint i = 0; i < images->len; i++)
    g_strv_builder_add (builder, ((const BjImage *) g_ptr_array_index (images, i))->digest);
  digests = g_strv_builder_end (builder);
  bj_templates_clean (self->context.templates, (const char *const *) digests);
}

static void
open_world (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  BjDaemon *self = task_data;
  GError *error = NULL;

  if (!bj_engine_open (self->context.engine, cancellable, &error))
    {
      g_prefix_error (&error, "Opening the engine %s: ", bj_engine_get_uri (self->context.engine));
      g_task_return_error (task, error);
      return;
    }
  g_message ("Accelerator %s: %s", bj_accelerator_to_string (bj_engine_get_accelerator (self->context.engine)),
             bj_engine_get_accelerator_reason (self->context.engine));
  install_firewall (self);
  clean_images (self);
  clean_templates (self);
  g_task_return_boolean (task, TRUE);
}

/* Asked early, before anything is touched; the name itself is taken last. */
static gboolean
check_name_free (BjDaemon *self, GError **error)
{
  g_autoptr(GVariant) reply = g_dbus_connection_call_sync (
      self->connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner",
      g_variant_new ("(s)", BJ_BUS_NAME), G_VARIANT_TYPE ("(b)"), G_DBUS_CALL_FLAGS_NONE, 10000, NULL, error);
  gboolean taken = FALSE;

  if (reply == NULL)
    return FALSE;
  g_variant_get (reply, "(b)", &taken);
  return !taken
         || bj_error_set (error, BJ_ERROR_BUSY, "The name " BJ_BUS_NAME " is taken on the bus %s: another belljard runs there",
                          self->options->bus);
}

static BjConfig *
load_config (const BjDaemonOptions *options, GError **error)
{
  if (options->config != NULL)
    return bj_config_load (options->config, TRUE, error);
  return bj_config_load (BJ_CONFIG_FILE, FALSE, error);
}

static BjReportKey *
load_key (BjContext *context, GError **error)
{
  g_autofree char *path = g_build_filename (context->state_dir, "keys", "report.key", NULL);
  g_autofree char *public_path = g_strconcat (path, ".pub", NULL);
  BjReportKey *key;

  if (!g_file_test (path, G_FILE_TEST_EXISTS) && !g_file_test (public_path, G_FILE_TEST_EXISTS)
      && bj_state_dir_has_sessions (context->state_dir))
    g_warning ("The key that signs reports, %s, is missing: a new one is made. Reports signed before verify only with the old "
               "public key", path);
  key = bj_report_key_load (path, error);
  if (key == NULL)
    g_prefix_error (error, "The key that signs reports, %s: ", path);
  return key;
}

static void
make_stores (BjDaemon *self)
{
  BjContext *context = &self->context;
  g_autofree char *engine_dir = g_build_filename (context->state_dir, "engine", NULL);
  g_autofree char *image_dir = g_build_filename (context->state_dir, "images", NULL);
  g_autofree char *template_dir = g_build_filename (context->state_dir, "templates", NULL);
  g_autofree char *project_dir = g_build_filename (context->state_dir, "projects", NULL);
  g_autofree char *recipes = bj_context_dup_data (context, "images");
  g_autofree char *guest = bj_context_dup_data (context, "guest");
  g_autofree char *helper = bj_context_dup_program (context, "belljar-tree");
  const char *recipe_dirs[] = { recipes, NULL };
  const char *uri = self->options->engine != NULL ? self->options->engine : context->config->engine_uri;

  context->engine = bj_engine_new (uri, engine_dir, context->config->accelerator);
  context->slots = bj_slots_new ();
  context->firewall = geteuid () == 0 ? bj_firewall_new () : NULL;
  context->images = bj_image_store_new (context->store, context->engine, image_dir, recipe_dirs, guest);
  context->budget = bj_budget_new (context->config->memory_total_mib);
  context->teardown = bj_teardown_new ();
  context->templates = bj_templates_new (context->engine, context->slots, template_dir);
  context->projects = bj_project_store_new (context->store, project_dir, helper);
}

static gboolean
prepare (BjDaemon *self, GError **error)
{
  BjContext *context = &self->context;
  g_autofree char *database = g_build_filename (context->state_dir, "belljar.db", NULL);

  context->config = load_config (self->options, error);
  if (context->config == NULL)
    return FALSE;
  self->connection = bj_bus_connect (self->options->bus, NULL, error);
  if (self->connection == NULL || !check_name_free (self, error))
    return FALSE;
  self->lock = bj_state_dir_open (context->state_dir, error);
  if (self->lock < 0 || !bj_state_dir_check_database (context->state_dir, error))
    return FALSE;
  if (bj_state_dir_get_free (context->state_dir) < FREE_WARN_BYTES)
    g_warning ("Less than 1 GiB is free in %s: sessions will be refused until there is more", context->state_dir);
  context->store = bj_store_open (database, error);
  if (context->store == NULL)
    return FALSE;
  self->key = load_key (context, error);
  if (self->key == NULL)
    return FALSE;
  make_stores (self);
  context->gate = bj_gate_new (self->connection, context->auth);
  context->objects = g_dbus_object_manager_server_new (BJ_BUS_ROOT);
  return TRUE;
}

static void
release (BjDaemon *self)
{
  g_clear_object (&self->sessions);
  g_clear_object (&self->context.objects);
  g_clear_object (&self->context.gate);
  g_clear_object (&self->context.projects);
  g_clear_pointer (&self->context.teardown, bj_teardown_free);
  g_clear_pointer (&self->context.templates, bj_templates_free);
  g_clear_pointer (&self->context.budget, bj_budget_free);
  g_clear_object (&self->context.images);
  g_clear_object (&self->context.firewall);
  g_clear_pointer (&self->context.slots, bj_slots_free);
  g_clear_object (&self->context.engine);
  g_clear_pointer (&self->key, bj_report_key_free);
  g_clear_object (&self->context.store);
  g_clear_pointer (&self->context.config, bj_config_free);
  if (self->connection != NULL)
    g_dbus_connection_flush_sync (self->connection, NULL, NULL);
  g_clear_object (&self->connection);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->loop, g_main_loop_unref);
  g_free (self->context.state_dir);
  g_free (self->context.build_dir);
  bj_fd_clear (&self->lock);
}

static void
run (BjDaemon *self)
{
  g_autoptr(GTask) task = g_task_new (NULL, self->cancellable, on_opened, self);
  const int signals[] = { SIGTERM, SIGINT, SIGHUP };

  signal (SIGPIPE, SIG_IGN);
  for (guint i = 0; i < G_N_ELEMENTS (signals); i++)
    g_unix_signal_add (signals[i], on_signal, self);
  g_task_set_source_tag (task, run);
  g_task_set_task_data (task, self, NULL);
  bj_worker_run (task, open_world);
  g_main_loop_run (self->loop);
}

int
bj_daemon_run (const BjDaemonOptions *options)
{
  BjDaemon self = { .options = options, .lock = -1 };
  g_autoptr(GError) error = NULL;

  self.context.state_dir = g_strdup (options->state_dir);
  self.context.build_dir = bj_context_find_build_dir ();
  self.context.auth = options->auth;
  self.loop = g_main_loop_new (NULL, FALSE);
  self.cancellable = g_cancellable_new ();
  if (prepare (&self, &error))
    run (&self);
  else
    fail (&self, error);
  release (&self);
  return self.exit_code;
}
