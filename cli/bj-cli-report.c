/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-task.h"
#include "bj-cli-transcript.h"
#include "bj-cli-verbs.h"

#include "bj-client-wait.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"
#include "bj-report.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <string.h>
#include <unistd.h>

#define KEY_FILE_MAX 4096
#define ID_MAX 40
#define REPORT_DEPTH_MAX 24
#define REPORT_VALUES_MAX (4 * 1024 * 1024)

static JsonObject *
get_object (JsonObject *object, const char *key)
{
  JsonNode *node = json_object_get_member (object, key);

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

BjExit
bj_report_to_exit (JsonObject *report)
{
  static const struct
  {
    const char *outcome;
    const char *verdict; /* NULL: any */
    BjExit code;
  } table[] = {
    { "DONE", "proved", BJ_EXIT_OK },
    { "DONE", "passes", BJ_EXIT_OK },
    { "DONE", "passes-here", BJ_EXIT_UNPROVED },
    { "DONE", "none", BJ_EXIT_UNPROVED },
    { "DONE", "failed", BJ_EXIT_REFUTED },
    { "NEEDS INPUT", NULL, BJ_EXIT_NEEDS_INPUT },
    { "IN PROGRESS", NULL, BJ_EXIT_IN_PROGRESS },
  };
  const char *outcome = bj_json_get_text (report, "outcome");
  const char *verdict = bj_json_get_text (get_object (report, "check"), "verdict");

  for (guint i = 0; i < G_N_ELEMENTS (table); i++)
    if (g_strcmp0 (table[i].outcome, outcome) == 0
        && (table[i].verdict == NULL || g_strcmp0 (table[i].verdict, verdict != NULL ? verdict : "none") == 0))
      return table[i].code;
  return BJ_EXIT_ERROR;
}

JsonObject *
bj_report_parse (const char *json, GError **error)
{
  g_autoptr(GError) problem = NULL;
  JsonObject *report = bj_json_parse (json, strlen (json), REPORT_DEPTH_MAX, REPORT_VALUES_MAX, &problem);

  if (report == NULL)
    bj_error_set (error, BJ_ERROR_FAILED, _("The report is not JSON that Belljar wrote: %s"), problem->message);
  return report;
}

int
bj_report_print (const char *json, gboolean as_json, GError **error)
{
  g_autoptr(JsonObject) report = bj_report_parse (json, error);
  g_autofree char *text = NULL;

  if (report == NULL)
    return -1;
  if (as_json)
    bj_output_line ("%s", json);
  else
    {
      text = bj_report_to_text (report, NULL, bj_output_get_width (STDOUT_FILENO));
      bj_output_text (text);
    }
  return (int) bj_report_to_exit (report);
}

static char *
get_report (BjCli *cli, BjDBusSession *session, GError **error)
{
  g_autoptr(GVariant) answer = bj_cli_call_simple (cli, session, "Report", NULL, error);
  char *json = NULL;

  if (answer != NULL)
    g_variant_get (answer, "(s)", &json);
  return json;
}

static char *
wait_for_report (BjCli *cli, BjDBusSession *session, GError **error)
{
  BjClient *client = bj_cli_connect (cli, NULL);
  g_autoptr(GAsyncResult) result = NULL;

  bj_client_wait_report_async (client, session, NULL, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  return bj_client_wait_report_finish (client, result, NULL, error);
}

static char *
read_key (const char *path, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  g_autoptr(GBytes) bytes = NULL;

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, _("Opening the key “%s”"), path);
      return NULL;
    }
  bytes = bj_fd_read_to_end (fd, KEY_FILE_MAX, error);
  return bytes != NULL ? g_strstrip (g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes))) : NULL;
}

/* Whoever changes files could lay another session's beside it, and each of those is well signed. */
static gboolean
check_session (BjDBusSession *session, const char *json, GError **error)
{
  g_autoptr(JsonObject) report = bj_report_parse (json, error);
  g_autofree char *id = g_path_get_basename (g_dbus_proxy_get_object_path (G_DBUS_PROXY (session)));
  const char *said = bj_json_get_text (report, "session");
  g_autofree char *shown = NULL;

  if (report == NULL)
    return FALSE;
  if (said == NULL || g_str_equal (said, id)) /* one that ended before its first record names none */
    return TRUE;
  shown = bj_untrusted_escape (said, -1, ID_MAX);
  return bj_error_set (error, BJ_ERROR_FAILED, _("The report of session %s is that of another one, “%s”"), id, shown);
}

static void
print_verified (JsonObject *report, const char *key, gboolean own_key, gboolean as_json)
{
  JsonObject *transcript = get_object (report, "transcript");
  const char *head = bj_json_get_text (transcript, "head");
  double count = bj_json_get_number (transcript, "count", 0);
  JsonObject *object;
  JsonNode *node;

  if (as_json)
    {
      object = json_object_new ();
      json_object_set_boolean_member (object, "verified", TRUE);
      json_object_set_string_member (object, "session", bj_json_get_text (report, "session"));
      json_object_set_string_member (object, "key", key);
      json_object_set_boolean_member (object, "key_from_file", own_key);
      json_object_set_int_member (object, "records", (gint64) count);
      json_object_set_string_member (object, "head", head);
      node = json_node_new (JSON_NODE_OBJECT);
      json_node_take_object (node, object);
      bj_output_json (node);
      return;
    }
  bj_output_line (_("signature   good, Ed25519 key %s"), key);
  bj_output_line (_("transcript  whole, %.0f records, each holds the hash of the one before; head %s"),
                  count, head != NULL ? head : "–");
  bj_output_line (_("report      follows from the transcript's records"));
  if (!own_key)
    bj_output_note (_("The key came from the daemon itself; --key with a copy you kept also shows that it is the same "
                      "daemon."));
}

static int
verify (BjCli *cli, BjDBusSession *session, const char *json, const char *key_file, gboolean as_json, GError **error)
{
  g_autoptr(JsonObject) report = bj_report_parse (json, error);
  g_auto(BjFd) fd = -1;
  g_autofree char *key = NULL;

  if (report == NULL)
    return -1;
  if (bj_report_to_exit (report) == BJ_EXIT_IN_PROGRESS)
    {
      bj_error_set (error, BJ_ERROR_BUSY, _("The session is in progress; its report is signed when it has ended"));
      return -1;
    }
  key = key_file != NULL ? read_key (key_file, error)
                         : bj_dbus_manager_dup_report_key (bj_client_get_manager (bj_cli_connect (cli, NULL)));
  if (key_file != NULL && key == NULL)
    return -1;
  fd = bj_cli_open_transcript (cli, session, error);
  if (fd < 0 || !bj_report_verify (report, fd, key != NULL ? key : "", error))
    return -1;
  print_verified (report, key, key_file != NULL, as_json);
  return BJ_EXIT_OK;
}

int
bj_verb_report (BjCli *cli, char **args, GError **error)
{
  gboolean as_json = FALSE;
  gboolean want_verify = FALSE;
  gboolean wait = FALSE;
  g_autofree char *key_file = NULL;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL },
    { "verify", 0, 0, G_OPTION_ARG_NONE, &want_verify, N_("check the report instead of printing it"), NULL },
    { "wait", 'w', 0, G_OPTION_ARG_NONE, &wait, N_("wait for the session's end, or until it needs somebody"), NULL },
    { "key", 0, 0, G_OPTION_ARG_FILENAME, &key_file, N_("with --verify: the public key you trust"), N_("FILE") },
    { 0 },
  };
  g_autoptr(BjDBusSession) session = NULL;
  g_autofree char *json = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  if (key_file != NULL && !want_verify)
    return bj_usage_error_set (error, _("--key goes with --verify"));
  session = bj_cli_find_session (cli, args[1], error);
  json = session == NULL ? NULL : wait ? wait_for_report (cli, session, error) : get_report (cli, session, error);
  if (json == NULL || !check_session (session, json, error))
    return -1;
  return want_verify ? verify (cli, session, json, key_file, as_json, error) : bj_report_print (json, as_json, error);
}
