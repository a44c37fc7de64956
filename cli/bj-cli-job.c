/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-job.h"

#include "bj-cli-output.h"
#include "bj-cli-status.h"
#include "bj-cli-verbs.h"
#include "bj-client-wait.h"

#include "bj-error.h"
#include "bj-units.h"
#include "bj-untrusted.h"

#include <glib-unix.h>
#include <glib/gi18n.h>
#include <signal.h>

#define MESSAGE_MAX 4096

typedef struct
{
  BjClient *client;
  BjDBusJob *job;
  BjStatus *status;
  GCancellable *wait;
} Following;

static void
draw (Following *following)
{
  const char *operation = bj_dbus_job_get_operation (following->job);
  const char *phase = bj_dbus_job_get_phase (following->job);
  double progress = bj_dbus_job_get_progress (following->job);
  gint64 left = (gint64) bj_dbus_job_get_expected_end (following->job) - g_get_real_time () / G_USEC_PER_SEC;
  g_autofree char *step = NULL;
  g_autoptr(GString) detail = g_string_new (NULL);
  g_autofree char *time = NULL;

  step = phase == NULL || *phase == '\0' ? g_strdup (operation) : g_strdup_printf ("%s: %s", operation, phase);
  if (progress >= 0 && progress <= 1)
    g_string_append_printf (detail, "%3.0f %%", progress * 100);
  if (bj_dbus_job_get_expected_end (following->job) > 0 && left > 0)
    {
      time = bj_units_format_duration ((guint64) left);
      g_string_append_printf (detail, _("  about %s left"), time);
    }
  bj_status_set (following->status, step, detail->str);
}

static void
on_cancel_asked (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) answer = bj_client_call_finish (BJ_CLIENT (source), result, NULL, &error);

  if (answer == NULL)
    bj_output_note (_("The job could not be cancelled: %s"), error->message);
}

static void
on_interrupt (guint count, gpointer user_data)
{
  Following *following = user_data;

  if (count > 1)
    {
      g_cancellable_cancel (following->wait);
      return;
    }
  bj_status_note (following->status, _("Cancelling; Ctrl-C again leaves it alone."));
  bj_client_call_async (following->client, following->job, "Cancel", NULL, NULL, -1, NULL, on_cancel_asked, NULL);
}

/* Whoever ends the command or closes its terminal ends the job, too: nobody else waits for it. */
static gboolean
on_end_signal (gpointer user_data)
{
  on_interrupt (1, user_data);
  return G_SOURCE_CONTINUE;
}

static BjDBusJob *
open_job (BjClient *client, GVariant *answer, GError **error)
{
  g_autoptr(GAsyncResult) result = NULL;
  const char *path = NULL;

  g_variant_get (answer, "(&o)", &path);
  bj_client_open_job_async (client, path, NULL, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  return bj_client_open_job_finish (client, result, error);
}

gboolean
bj_job_follow (BjCli *cli, GVariant *answer, char **message, GError **error)
{
  g_autoptr(GVariant) owned = answer;
  g_autoptr(BjStatus) status = NULL;
  g_autoptr(BjDBusJob) job = NULL;
  g_autoptr(GCancellable) wait = g_cancellable_new ();
  g_autoptr(GAsyncResult) result = NULL;
  Following following;
  guint term_id, hangup_id;

  if (owned == NULL)
    return FALSE;
  job = open_job (bj_cli_connect (cli, NULL), owned, error);
  if (job == NULL)
    return FALSE;
  status = bj_status_new ();
  following = (Following){ .client = bj_cli_connect (cli, NULL), .job = job, .status = status, .wait = wait };
  bj_cli_on_interrupt (cli, on_interrupt, &following);
  term_id = g_unix_signal_add (SIGTERM, on_end_signal, &following);
  hangup_id = g_unix_signal_add (SIGHUP, on_end_signal, &following);
  g_signal_connect_swapped (job, "notify::progress", G_CALLBACK (draw), &following);
  g_signal_connect_swapped (job, "notify::phase", G_CALLBACK (draw), &following);
  bj_client_wait_job_async (following.client, job, wait, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  g_signal_handlers_disconnect_by_data (job, &following);
  bj_cli_on_interrupt (cli, NULL, NULL);
  g_source_remove (term_id);
  g_source_remove (hangup_id);
  return bj_client_wait_job_finish (following.client, result, message, error);
}

int
bj_job_finish (BjCli *cli, GVariant *answer, gboolean as_json, GError **error)
{
  g_autofree char *message = NULL;
  g_autofree char *shown = NULL;
  JsonNode *node;

  if (!bj_job_follow (cli, answer, &message, error))
    return -1;
  shown = bj_untrusted_escape_block (message, -1, MESSAGE_MAX);
  if (as_json)
    {
      node = json_node_init_object (json_node_alloc (), NULL);
      json_node_take_object (node, json_object_new ());
      json_object_set_string_member (json_node_get_object (node), "message", shown);
      bj_output_json (node);
    }
  else if (*shown != '\0')
    bj_output_line ("%s", shown);
  return BJ_EXIT_OK;
}

static BjDBusJob *
find_job (BjClient *client, const char *id, GError **error)
{
  g_autoptr(GPtrArray) jobs = bj_client_list_jobs (client);
  g_autofree char *shown = bj_untrusted_escape (id, -1, 40);

  for (guint i = 0; i < jobs->len; i++)
    if (g_strcmp0 (bj_client_get_id (g_ptr_array_index (jobs, i)), id) == 0)
      return g_object_ref (g_ptr_array_index (jobs, i));
  bj_error_set (error, BJ_ERROR_NOT_FOUND, _("There is no job “%s”; “belljar jobs” lists those that go on"), shown);
  return NULL;
}

int
bj_verb_job_cancel (BjCli *cli, char **args, GError **error)
{
  BjClient *client;
  g_autoptr(BjDBusJob) job = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (!bj_cli_parse (cli, NULL, &args, 1, 1, error))
    return -1;
  client = bj_cli_connect (cli, error);
  job = client != NULL ? find_job (client, args[1], error) : NULL;
  if (job != NULL)
    answer = bj_cli_call_simple (cli, job, "Cancel", NULL, error);
  if (answer == NULL)
    return -1;
  bj_output_note (_("The job %s is asked to end"), bj_client_get_id (job));
  return BJ_EXIT_OK;
}

int
bj_verb_jobs (BjCli *cli, char **args, GError **error)
{
  static const char *const titles[] = { "JOB", "OPERATION", "PHASE", "PROGRESS", "STATE", NULL };
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GPtrArray) jobs = NULL;
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return -1;
  jobs = bj_client_list_jobs (client);
  if (as_json)
    bj_output_json (bj_output_list_to_json (jobs, "job"));
  for (guint i = 0; i < jobs->len && !as_json; i++)
    {
      BjDBusJob *job = g_ptr_array_index (jobs, i);
      double progress = bj_dbus_job_get_progress (job);
      const char *failure = bj_dbus_job_get_error (job);
      g_autofree char *shown = progress < 0 ? g_strdup ("–") : g_strdup_printf ("%.0f%%", progress * 100);
      const char *state = !bj_dbus_job_get_done (job) ? "running" : failure == NULL || *failure == '\0' ? "done" : failure;
      const char *row[] = { bj_client_get_id (job), bj_dbus_job_get_operation (job), bj_dbus_job_get_phase (job), shown,
                            state };

      g_ptr_array_add (rows, bj_output_dup_row (row, G_N_ELEMENTS (row)));
    }
  if (!as_json)
    bj_output_table (titles, rows);
  return BJ_EXIT_OK;
}
