/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-task.h"

#include "bj-cli-live.h"
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"
#include "bj-client-wait.h"
#include "bj-name.h"
#include "bj-units.h"

#include <glib/gi18n.h>


void
bj_task_words_clear (BjTaskWords *words)
{
  g_free (words->project);
  g_free (words->image);
  g_free (words->check);
  g_free (words->time);
  g_free (words->model);
  g_free (words->network);
  g_free (words->memory);
  g_free (words->cpus);
  g_free (words->item);
}

static gboolean
add_text (GVariantDict *dict, const char *key, const char *text, GError **error)
{
  if (text == NULL)
    return TRUE;
  if (*text == '\0' || !g_utf8_validate (text, -1, NULL))
    {
      bj_usage_error_set (error, _("--%s needs UTF-8 text"), key);
      return FALSE;
    }
  g_variant_dict_insert (dict, key, "s", text);
  return TRUE;
}

static gboolean
add_name (GVariantDict *dict, const char *key, const char *name, GError **error)
{
  if (name == NULL)
    return TRUE;
  if (!bj_name_is_valid (name))
    {
      bj_usage_error_set (error, _("--%s: a name has lower-case letters, digits, “.”, “_” and “-”, at most 63"), key);
      return FALSE;
    }
  g_variant_dict_insert (dict, key, "s", name);
  return TRUE;
}

static gboolean
add_time (GVariantDict *dict, const char *time, GError **error)
{
  g_autoptr(GError) problem = NULL;
  guint seconds;

  if (time == NULL)
    return TRUE;
  if (!bj_units_parse_duration (time, 1, &seconds, &problem))
    {
      bj_usage_error_set (error, "--time: %s", problem->message);
      return FALSE;
    }
  g_variant_dict_insert (dict, "wall-clock", "u", seconds);
  return TRUE;
}

static gboolean
add_memory (GVariantDict *dict, const char *memory, GError **error)
{
  g_autoptr(GError) problem = NULL;
  guint mib;

  if (memory == NULL)
    return TRUE;
  if (!bj_units_parse_memory (memory, &mib, &problem))
    {
      bj_usage_error_set (error, "--memory: %s", problem->message);
      return FALSE;
    }
  g_variant_dict_insert (dict, "memory-mib", "u", mib);
  return TRUE;
}

static gboolean
add_cpus (GVariantDict *dict, const char *cpus, GError **error)
{
  guint64 value;

  if (cpus == NULL)
    return TRUE;
  if (!g_ascii_string_to_unsigned (cpus, 10, 1, 1024, &value, NULL))
    {
      bj_usage_error_set (error, _("--cpus needs a number from 1"));
      return FALSE;
    }
  g_variant_dict_insert (dict, "cpus", "u", (guint) value);
  return TRUE;
}

static gboolean
add_item (GVariantDict *dict, const char *item, const char *project, GError **error)
{
  guint64 value;

  if (item == NULL)
    return TRUE;
  if (project == NULL || !g_ascii_string_to_unsigned (item, 10, 1, G_MAXUINT32, &value, NULL))
    {
      bj_usage_error_set (error, _("--item needs a number from the list of “belljar project tasks”, and --project"));
      return FALSE;
    }
  g_variant_dict_insert (dict, "item", "u", (guint) value);
  return TRUE;
}

static gboolean
add_network (GVariantDict *dict, const char *network, GError **error)
{
  if (network == NULL)
    return TRUE;
  if (!g_str_equal (network, "internet") && !g_str_equal (network, "none"))
    {
      bj_usage_error_set (error, _("--network is internet or none"));
      return FALSE;
    }
  g_variant_dict_insert (dict, "network", "s", network);
  return TRUE;
}

GVariant *
bj_task_words_to_options (const BjTaskWords *words, GError **error)
{
  g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);

  if (!add_name (&dict, "project", words->project, error) || !add_name (&dict, "image", words->image, error)
      || !add_text (&dict, "check", words->check, error) || !add_text (&dict, "model", words->model, error)
      || !add_time (&dict, words->time, error) || !add_memory (&dict, words->memory, error)
      || !add_cpus (&dict, words->cpus, error) || !add_network (&dict, words->network, error)
      || !add_item (&dict, words->item, words->project, error))
    return NULL;
  if (words->keep_failed)
    g_variant_dict_insert (&dict, "keep-failed", "b", TRUE);
  return g_variant_dict_end (&dict);
}

/* A task that was started, while the command waits for its report. */
typedef struct
{
  BjCli *cli;
  BjClient *client;
  BjStatus *status;
  BjDBusSession *session; /* NULL until it is known */
  GCancellable *wait;
  gboolean stop_wanted;
} Following;

static void
on_stopped (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) answer = bj_client_call_finish (BJ_CLIENT (source), result, NULL, &error);

  if (answer == NULL)
    bj_output_note (_("The session could not be stopped: %s"), error->message);
}

static void
stop_session (Following *following)
{
  bj_client_call_async (following->client, following->session, "Stop", NULL, NULL, -1, NULL, on_stopped, NULL);
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
  bj_status_note (following->status,
                  _("Stopping the session and waiting for its report; Ctrl-C again leaves it alone."));
  following->stop_wanted = TRUE;
  if (following->session != NULL)
    stop_session (following);
}

static BjDBusSession *
open_session (BjClient *client, const char *path, GError **error)
{
  g_autoptr(GAsyncResult) result = NULL;

  bj_client_open_session_async (client, path, NULL, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  return bj_client_open_session_finish (client, result, error);
}

/* Returns: (transfer full): the report's JSON */
static char *
wait_for_report (Following *following, GError **error)
{
  BjLive *live = bj_live_new (following->client, following->session, following->status);
  g_autoptr(GAsyncResult) result = NULL;

  bj_client_wait_report_async (following->client, following->session, following->wait, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  bj_live_free (live);
  return bj_client_wait_report_finish (following->client, result, NULL, error);
}

static char *
follow (Following *following, const char *path, GError **error)
{
  g_autoptr(BjDBusSession) session = open_session (following->client, path, error);
  g_autofree char *note = NULL;
  char *report;

  if (session == NULL)
    return NULL;
  note = g_strdup_printf (_("Session %s"), bj_client_get_id (session));
  bj_status_note (following->status, note);
  following->session = session;
  if (following->stop_wanted)
    stop_session (following);
  report = wait_for_report (following, error);
  following->session = NULL;
  if (report == NULL && g_cancellable_is_cancelled (following->wait))
    bj_output_note (_("Left alone; later: belljar report %s"), bj_client_get_id (session));
  return report;
}

/* How a session begins to work, or goes on. Returns: (transfer full) (nullable): its path */
typedef char *(*Begin) (BjCli *cli, GVariant *parameters, GError **error);

static char *
begin_task (BjCli *cli, GVariant *parameters, GError **error)
{
  BjClient *client = bj_cli_connect (cli, error);
  g_autoptr(GVariant) answer = NULL;
  char *path = NULL;

  if (client != NULL)
    answer = bj_cli_call_simple (cli, bj_client_get_manager (client), "RunTask", parameters, error);
  if (answer != NULL)
    g_variant_get (answer, "(o)", &path);
  return path;
}

/* @parameters: (ss): which session, and what to say to it */
static char *
begin_with_answer (BjCli *cli, GVariant *parameters, GError **error)
{
  const char *id, *text;
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;

  g_variant_get (parameters, "(&s&s)", &id, &text);
  session = bj_cli_find_session (cli, id, error);
  if (session != NULL)
    answer = bj_cli_call_simple (cli, session, "Answer", g_variant_new ("(s)", text), error);
  return answer != NULL ? g_strdup (g_dbus_proxy_get_object_path (G_DBUS_PROXY (session))) : NULL;
}

static int
print_detached (const char *path, gboolean as_json)
{
  const char *id = strrchr (path, '/') + 1;
  JsonObject *object;
  JsonNode *node;

  if (!as_json)
    {
      bj_output_line ("%s", id);
      return BJ_EXIT_OK;
    }
  object = json_object_new ();
  json_object_set_string_member (object, "outcome", "IN PROGRESS");
  json_object_set_string_member (object, "session", id);
  node = json_node_new (JSON_NODE_OBJECT);
  json_node_take_object (node, object);
  bj_output_json (node);
  return BJ_EXIT_OK;
}

static int
run_task (BjCli *cli, Begin begin, GVariant *parameters, gboolean as_json, gboolean detach, GError **error)
{
  g_autoptr(GVariant) owned = g_variant_ref_sink (parameters);
  g_autoptr(BjStatus) status = bj_status_new ();
  g_autoptr(GCancellable) wait = g_cancellable_new ();
  g_autofree char *path = NULL;
  g_autofree char *report = NULL;
  Following following = { .cli = cli, .client = bj_cli_connect (cli, error), .status = status, .wait = wait };

  if (following.client == NULL)
    return -1;
  bj_cli_on_interrupt (cli, on_interrupt, &following);
  path = begin (cli, owned, error);
  if (path != NULL && !detach)
    report = follow (&following, path, error);
  bj_cli_on_interrupt (cli, NULL, NULL);
  if (path == NULL)
    return -1;
  if (detach)
    return print_detached (path, as_json);
  bj_status_clear (status);
  return report != NULL ? bj_report_print (report, as_json, error) : -1;
}

int
bj_verb_answer (BjCli *cli, char **args, GError **error)
{
  gboolean as_json = FALSE;
  gboolean detach = FALSE;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print the report as JSON"), NULL },
    { "detach", 'd', 0, G_OPTION_ARG_NONE, &detach, N_("answer only; do not wait for the report"), NULL },
    { 0 },
  };

  if (!bj_cli_parse (cli, entries, &args, 2, 2, error))
    return -1;
  if (!g_utf8_validate (args[1], -1, NULL) || !g_utf8_validate (args[2], -1, NULL))
    return bj_usage_error_set (error, _("The answer must be UTF-8 text"));
  return run_task (cli, begin_with_answer, g_variant_new ("(ss)", args[1], args[2]), as_json, detach, error);
}

int
bj_verb_task (BjCli *cli, char **args, GError **error)
{
  g_auto(BjTaskWords) words = { 0 };
  gboolean as_json = FALSE;
  gboolean detach = FALSE;
  const GOptionEntry entries[] = {
    { "project", 'p', 0, G_OPTION_ARG_FILENAME, &words.project, N_("work on this project"), N_("NAME") },
    { "image", 'i', 0, G_OPTION_ARG_FILENAME, &words.image, N_("start from this image"), N_("NAME") },
    { "check", 'c', 0, G_OPTION_ARG_FILENAME, &words.check, N_("command that shows whether it is done"), N_("COMMAND") },
    { "time", 't', 0, G_OPTION_ARG_FILENAME, &words.time, N_("wall clock, for example 20m"), N_("DURATION") },
    { "model", 'm', 0, G_OPTION_ARG_FILENAME, &words.model, N_("one of the allowed models"), N_("NAME") },
    { "network", 0, 0, G_OPTION_ARG_FILENAME, &words.network, N_("internet or none"), N_("KIND") },
    { "memory", 0, 0, G_OPTION_ARG_FILENAME, &words.memory, N_("the machine's memory in MiB, or 2G"), N_("MIB") },
    { "cpus", 0, 0, G_OPTION_ARG_FILENAME, &words.cpus, N_("the machine's processors"), N_("NUMBER") },
    { "keep-failed", 0, 0, G_OPTION_ARG_NONE, &words.keep_failed, N_("keep the machine if the work fails, for “belljar shell”"), NULL },
    { "item", 0, 0, G_OPTION_ARG_FILENAME, &words.item, N_("work on this item of the project's task list"), N_("NUMBER") },
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print the report as JSON"), NULL },
    { "detach", 'd', 0, G_OPTION_ARG_NONE, &detach, N_("start only; print the session's id"), NULL },
    { 0 },
  };
  const char *text;
  GVariant *options;

  if (!bj_cli_parse (cli, entries, &args, 0, 1, error))
    return -1;
  text = args[1] != NULL ? args[1] : "";
  if (*text == '\0' && words.item == NULL)
    return bj_usage_error_set (error, _("The task is empty: say what to do"));
  if (!g_utf8_validate (text, -1, NULL))
    return bj_usage_error_set (error, _("The task must be UTF-8 text"));
  options = bj_task_words_to_options (&words, error);
  if (options == NULL)
    return -1;
  return run_task (cli, begin_task, g_variant_new ("(s@a{sv})", text, options), as_json, detach, error);
}
