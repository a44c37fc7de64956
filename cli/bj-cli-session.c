/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-timing.h"
#include "bj-cli-verbs.h"
#include "bj-client-wait.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-report.h"
#include "bj-units.h"
#include "bj-untrusted.h"

#include <glib/gi18n.h>
#include <unistd.h>

#define TEXT_MAX 8192
#define PNG_MAX (64u * 1024 * 1024)
#define EXTEND_DEFAULT_S 1200u
#define EXTEND_MAX_S 86400u

/* A daemon that is older than this command does not have every property. */
static const char *
or_empty (const char *text)
{
  return text != NULL ? text : "";
}

int
bj_verb_sessions (BjCli *cli, char **args, GError **error)
{
  static const char *const titles[] = { "SESSION", "STATE", "KIND", "PROJECT", "IMAGE", "STEPS", "STARTED", "VERDICT", NULL };
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GPtrArray) sessions = NULL;
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return -1;
  sessions = bj_client_list_sessions (client);
  if (as_json)
    bj_output_json (bj_output_list_to_json (sessions, "session"));
  for (guint i = 0; i < sessions->len && !as_json; i++)
    {
      BjDBusSession *at = g_ptr_array_index (sessions, i);
      g_autofree char *started = bj_output_format_time ((gint64) bj_dbus_session_get_started_at (at));
      g_autofree char *steps = g_strdup_printf ("%u", bj_dbus_session_get_steps (at));
      const char *row[] = { bj_client_get_id (at),
                            bj_dbus_session_get_state (at),
                            bj_dbus_session_get_kind (at),
                            bj_dbus_session_get_project (at),
                            bj_dbus_session_get_image (at),
                            steps,
                            started,
                            or_empty (bj_dbus_session_get_verdict (at)),
                            NULL };

      g_ptr_array_add (rows, bj_output_dup_row (row, G_N_ELEMENTS (row) - 1));
    }
  if (!as_json)
    bj_output_table (titles, rows);
  return BJ_EXIT_OK;
}

static void
print_text (const char *key, const char *text)
{
  g_autofree char *escaped = NULL;
  g_autofree char *folded = NULL;

  if (text == NULL || *text == '\0')
    return;
  escaped = bj_untrusted_escape_block (text, -1, TEXT_MAX);
  if (strchr (escaped, '\n') == NULL)
    {
      bj_output_line ("%-12s %s", key, escaped);
      return;
    }
  folded = bj_untrusted_fold (escaped, "  | ", bj_output_get_width (STDOUT_FILENO));
  bj_output_line ("%s", key);
  bj_output_text (folded);
  if (!g_str_has_suffix (folded, "\n"))
    bj_output_text ("\n");
}

static void
print_properties (BjDBusSession *session)
{
  g_autofree char *started = bj_output_format_time ((gint64) bj_dbus_session_get_started_at (session));
  g_autofree char *deadline = bj_output_format_time ((gint64) bj_dbus_session_get_deadline (session));

  print_text ("session", bj_client_get_id (session));
  print_text ("state", bj_dbus_session_get_state (session));
  print_text ("outcome", bj_dbus_session_get_outcome (session));
  print_text ("verdict", bj_dbus_session_get_verdict (session));
  print_text ("kind", bj_dbus_session_get_kind (session));
  print_text ("project", bj_dbus_session_get_project (session));
  print_text ("image", bj_dbus_session_get_image (session));
  print_text ("accelerator", bj_dbus_session_get_accelerator (session));
  print_text ("started", started);
  print_text ("deadline", deadline);
  bj_output_line ("%-12s %u", "steps", bj_dbus_session_get_steps (session));
}

static const char *
get_detail (GVariant *details, const char *key)
{
  const char *text = "";

  g_variant_lookup (details, key, "&s", &text);
  return text;
}

static void
print_timing (GVariant *details)
{
  g_autoptr(JsonNode) node = json_from_string (get_detail (details, "timing"), NULL);
  g_autofree char *text = NULL;

  if (node != NULL && JSON_NODE_HOLDS_OBJECT (node))
    text = bj_report_format_timing (json_node_get_object (node));
  print_text ("timing", text);
}

static void
print_fenced (const char *begin, const char *end, const char *text)
{
  g_autofree char *escaped = bj_untrusted_escape_block (text, -1, TEXT_MAX);
  g_autofree char *fenced = bj_report_fence (begin, end, escaped, FALSE, NULL, bj_output_get_width (STDOUT_FILENO));

  bj_output_text ("\n");
  bj_output_text (fenced);
}

/* Returns: (transfer full): the model's plan, one entry a line */
static char *
format_plan (GVariant *plan)
{
  GString *lines = g_string_new (NULL);
  GVariantIter iter;
  GVariant *value;

  g_variant_iter_init (&iter, plan);
  while ((value = g_variant_iter_next_value (&iter)) != NULL)
    {
      const char *text = "";
      const char *status = "";
      g_autofree char *escaped = NULL;

      g_variant_lookup (value, "text", "&s", &text);
      g_variant_lookup (value, "status", "&s", &status);
      escaped = bj_untrusted_escape (text, -1, TEXT_MAX);
      g_string_append_printf (lines, "%s[%s] %s", lines->len > 0 ? "\n" : "", status, escaped);
      g_variant_unref (value);
    }
  return g_string_free (lines, FALSE);
}

/* Facts first; what the model says stands behind them, in the same fence as in a report. */
static void
print_details (GVariant *details, GVariant *plan)
{
  static const struct { const char *key, *label; } facts[] = {
    { "task", "task" }, { "activity", "activity" }, { "check", "check" }, { "check-source", "chosen by" }, { "error", "error" },
  };
  g_autofree char *steps = format_plan (plan);
  const char *summary = get_detail (details, "summary");
  const char *question = get_detail (details, "question");

  for (guint i = 0; i < G_N_ELEMENTS (facts); i++)
    print_text (facts[i].label, get_detail (details, facts[i].key));
  print_timing (details);
  if (*steps != '\0')
    print_fenced (_("untrusted plan"), _("end of the untrusted plan"), steps);
  if (*summary != '\0')
    print_fenced (_("untrusted summary"), _("end of the untrusted summary"), summary);
  if (*question != '\0')
    print_fenced (_("untrusted question"), _("end of the untrusted question"), question);
}

static void
print_show_json (BjDBusSession *session, GVariant *details, GVariant *plan)
{
  JsonNode *node = bj_output_object_to_json (G_DBUS_PROXY (session), "session");

  json_object_set_member (json_node_get_object (node), "details", json_gvariant_serialize (details));
  json_object_set_member (json_node_get_object (node), "plan", json_gvariant_serialize (plan));
  bj_output_json (node);
}

int
bj_verb_show (BjCli *cli, char **args, GError **error)
{
  gboolean as_json = FALSE;
  gboolean timing = FALSE;
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL },
    { "timing", 0, 0, G_OPTION_ARG_NONE, &timing, N_("print what each phase took"), NULL },
    { 0 },
  };
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GVariant) plan_answer = NULL;
  g_autoptr(GVariant) details = NULL;
  g_autoptr(GVariant) plan = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  if (session == NULL)
    return -1;
  if (timing)
    return bj_cli_show_timing (cli, session, error);
  answer = bj_cli_call_simple (cli, session, "Details", NULL, error);
  if (answer == NULL)
    return -1;
  plan_answer = bj_cli_call_simple (cli, session, "ListPlan", NULL, error);
  if (plan_answer == NULL)
    return -1;
  details = g_variant_get_child_value (answer, 0);
  plan = g_variant_get_child_value (plan_answer, 0);
  if (as_json)
    print_show_json (session, details, plan);
  else
    {
      print_properties (session);
      print_details (details, plan);
    }
  return BJ_EXIT_OK;
}

/* One call without arguments on the session that @args names. */
static int
call_plain (BjCli *cli, char **args, const char *method, GError **error)
{
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (!bj_cli_parse (cli, NULL, &args, 1, 1, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  if (session != NULL)
    answer = bj_cli_call_simple (cli, session, method, NULL, error);
  return answer != NULL ? BJ_EXIT_OK : -1;
}

int
bj_verb_pause (BjCli *cli, char **args, GError **error)
{
  return call_plain (cli, args, "Pause", error);
}

int
bj_verb_resume (BjCli *cli, char **args, GError **error)
{
  return call_plain (cli, args, "Resume", error);
}

static gboolean
wait_for_end (BjCli *cli, BjDBusSession *session, GError **error)
{
  BjClient *client = bj_cli_connect (cli, NULL);
  g_autoptr(GAsyncResult) result = NULL;
  g_autofree char *report = NULL;
  g_autofree char *outcome = NULL;

  bj_client_wait_report_async (client, session, NULL, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  report = bj_client_wait_report_finish (client, result, &outcome, error);
  if (report != NULL)
    bj_output_note (_("Session %s has ended: %s"), bj_client_get_id (session), outcome);
  return report != NULL;
}

int
bj_verb_stop (BjCli *cli, char **args, GError **error)
{
  gboolean no_wait = FALSE;
  const GOptionEntry entries[] = {
    { "no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, N_("do not wait for the end"), NULL }, { 0 }
  };
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  if (session != NULL)
    answer = bj_cli_call_simple (cli, session, "Stop", NULL, error);
  if (answer == NULL || (!no_wait && !wait_for_end (cli, session, error)))
    return -1;
  return BJ_EXIT_OK;
}

int
bj_verb_extend (BjCli *cli, char **args, GError **error)
{
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GError) problem = NULL;
  guint seconds = EXTEND_DEFAULT_S;

  if (!bj_cli_parse (cli, NULL, &args, 1, 2, error))
    return -1;
  if (args[2] != NULL && !bj_units_parse_duration (args[2], 1, &seconds, &problem))
    return bj_usage_error_set (error, "%s", problem->message);
  if (seconds > EXTEND_MAX_S)
    return bj_usage_error_set (error, _("At most 1d at once"));
  session = bj_cli_find_session (cli, args[1], error);
  if (session != NULL)
    answer = bj_cli_call_simple (cli, session, "Extend", g_variant_new ("(u)", seconds), error);
  return answer != NULL ? BJ_EXIT_OK : -1;
}

static GBytes *
get_screenshot (BjCli *cli, BjDBusSession *session, GError **error)
{
  g_autoptr(GUnixFDList) fds = NULL;
  g_autoptr(GVariant) answer = bj_cli_call (cli, session, "Screenshot", NULL, NULL, &fds, -1, error);
  g_auto(BjFd) fd = -1;
  int handle = -1;

  if (answer == NULL)
    return NULL;
  g_variant_get (answer, "(h)", &handle);
  fd = bj_fd_take (fds, handle, error);
  if (fd < 0)
    return NULL;
  lseek (fd, 0, SEEK_SET);
  return bj_fd_read_to_end (fd, PNG_MAX, error);
}

static gboolean
save_picture (GBytes *png, const char *path, GError **error)
{
  gsize size = 0;
  const char *data = g_bytes_get_data (png, &size);

  if (g_str_equal (path, "-"))
    return bj_fd_write_all (STDOUT_FILENO, data, size, error);
  return g_file_set_contents (path, data, (gssize) size, error);
}

int
bj_verb_screenshot (BjCli *cli, char **args, GError **error)
{
  g_autofree char *path = NULL;
  const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &path, N_("where to; “-” is standard output"), N_("FILE") }, { 0 }
  };
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GBytes) png = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  png = session != NULL ? get_screenshot (cli, session, error) : NULL;
  if (png == NULL)
    return -1;
  if (path == NULL)
    path = bj_output_is_terminal (STDOUT_FILENO) ? g_strconcat (bj_client_get_id (session), ".png", NULL)
                                                 : g_strdup ("-");
  if (!save_picture (png, path, error))
    return -1;
  if (!g_str_equal (path, "-"))
    bj_output_note (_("Saved as %s"), path);
  return BJ_EXIT_OK;
}
