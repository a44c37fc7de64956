/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-transcript.h"

#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <glib/gi18n.h>
#include <string.h>

#define CHUNK 65536
#define LINE_MAX_BYTES (8u * 1024 * 1024)
#define VALUE_MAX 160
#define WORD_BYTES_MAX 32

typedef enum
{
  FORM_TEXT, /* a line a record */
  FORM_RAW,  /* the very bytes */
  FORM_JSON, /* one array */
} Form;

typedef struct
{
  int fd;
  Form form;
  GString *rest;    /* a line that is not whole yet */
  JsonArray *array; /* FORM_JSON */
} Reader;

static char *
value_to_text (JsonNode *node)
{
  g_autofree char *json = NULL;

  if (JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_STRING)
    return bj_untrusted_escape (json_node_get_string (node), -1, VALUE_MAX);
  json = json_to_string (node, FALSE);
  return bj_untrusted_escape (json, -1, VALUE_MAX);
}

static void
append_members (GString *text, JsonObject *data)
{
  g_autoptr(GList) names = json_object_get_members (data);

  for (GList *at = names; at != NULL; at = at->next)
    {
      g_autofree char *name = bj_untrusted_escape (at->data, -1, VALUE_MAX);
      g_autofree char *value = value_to_text (json_object_get_member (data, at->data));

      g_string_append_printf (text, "  %s=%s", name, value);
    }
}

static void
append_time (GString *text, JsonObject *record)
{
  double at = bj_json_get_number (record, "at", 0);
  g_autoptr(GDateTime) time = at > 0 && at < 1e11 ? g_date_time_new_from_unix_local ((gint64) at) : NULL;
  g_autofree char *shown = time != NULL ? g_date_time_format (time, "%H:%M:%S") : g_strdup ("--:--:--");

  g_string_append (text, shown);
}

static char *
escape_member (JsonObject *record, const char *key)
{
  const char *text = bj_json_get_text (record, key);

  return bj_untrusted_escape (text != NULL ? text : "?", -1, WORD_BYTES_MAX);
}

char *
bj_record_to_line (const char *line, gsize length)
{
  g_autoptr(JsonParser) parser = json_parser_new ();
  GString *text = g_string_new (NULL);
  JsonNode *root;
  JsonNode *data;
  JsonObject *record;
  g_autofree char *by = NULL;
  g_autofree char *type = NULL;

  if (!json_parser_load_from_data (parser, line, (gssize) length, NULL))
    {
      g_string_append (text, _("(a line that is not JSON)"));
      return g_string_free (text, FALSE);
    }
  root = json_parser_get_root (parser);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    {
      g_string_append (text, _("(a line that is no record)"));
      return g_string_free (text, FALSE);
    }
  record = json_node_get_object (root);
  by = escape_member (record, "by");
  type = escape_member (record, "type");
  g_string_append_printf (text, "%5.0f  ", bj_json_get_number (record, "n", -1));
  append_time (text, record);
  g_string_append_printf (text, "  %-7s  %-11s", by, type);
  data = json_object_get_member (record, "data");
  if (data != NULL && JSON_NODE_HOLDS_OBJECT (data))
    append_members (text, json_node_get_object (data));
  return g_string_free (text, FALSE);
}

static gboolean
take_line (Reader *reader, const char *line, gsize length, GError **error)
{
  g_autoptr(JsonParser) parser = NULL;
  g_autofree char *text = NULL;

  if (reader->form == FORM_TEXT)
    {
      text = bj_record_to_line (line, length);
      bj_output_line ("%s", text);
      return TRUE;
    }
  parser = json_parser_new ();
  if (!json_parser_load_from_data (parser, line, (gssize) length, error))
    {
      g_prefix_error (error, _("The transcript has a line that is not JSON: "));
      return FALSE;
    }
  json_array_add_element (reader->array, json_parser_steal_root (parser));
  return TRUE;
}

static gboolean
take_bytes (Reader *reader, const char *data, gsize length, GError **error)
{
  const char *newline;

  if (reader->form == FORM_RAW)
    return bj_fd_write_all (STDOUT_FILENO, data, length, error);
  g_string_append_len (reader->rest, data, (gssize) length);
  while ((newline = memchr (reader->rest->str, '\n', reader->rest->len)) != NULL)
    {
      gsize line = (gsize) (newline - reader->rest->str);

      if (!take_line (reader, reader->rest->str, line, error))
        return FALSE;
      g_string_erase (reader->rest, 0, (gssize) line + 1);
    }
  if (reader->rest->len > LINE_MAX_BYTES)
    return bj_error_set (error, BJ_ERROR_LIMIT, _("The transcript has a line over %u bytes"), LINE_MAX_BYTES);
  return TRUE;
}

/* Takes what there is up to the file's present end. */
static gboolean
drain (Reader *reader, GError **error)
{
  char chunk[CHUNK];

  for (;;)
    {
      ssize_t got = read (reader->fd, chunk, sizeof chunk);

      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        return bj_fd_set_io_error (error, errno, _("Reading the transcript"));
      if (got == 0)
        return bj_output_finish (error);
      if (!take_bytes (reader, chunk, (gsize) got, error))
        return FALSE;
    }
}

static void
on_appended (gboolean *changed)
{
  *changed = TRUE;
}

static gboolean
has_ended (BjDBusSession *session)
{
  const char *state = bj_dbus_session_get_state (session);

  return g_strcmp0 (state, "finished") == 0 || g_strcmp0 (state, "failed") == 0
         || g_strcmp0 (state, "cancelled") == 0;
}

static gboolean
follow (BjClient *client, BjDBusSession *session, Reader *reader, GError **error)
{
  gboolean changed = TRUE;
  gboolean good = TRUE;

  g_signal_connect_swapped (session, "transcript-appended", G_CALLBACK (on_appended), &changed);
  g_signal_connect_swapped (session, "notify::state", G_CALLBACK (on_appended), &changed);
  g_signal_connect_swapped (session, "notify::g-name-owner", G_CALLBACK (on_appended), &changed);
  while (good)
    {
      gboolean last = has_ended (session) || !bj_client_get_running (client);

      changed = FALSE;
      good = drain (reader, error);
      if (last)
        break;
      while (!changed)
        g_main_context_iteration (NULL, TRUE);
    }
  g_signal_handlers_disconnect_by_data (session, &changed);
  if (good && !has_ended (session))
    return bj_error_set (error, BJ_ERROR_FAILED, _("belljard went away; the transcript may go on when it is back"));
  return good;
}

static int
print_transcript (BjCli *cli, BjDBusSession *session, Form form, gboolean want_follow, GError **error)
{
  g_autoptr(GUnixFDList) fds = NULL;
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GString) rest = g_string_new (NULL);
  g_auto(BjFd) fd = -1;
  Reader reader = { .form = form, .rest = rest };
  JsonNode *node;
  int handle = -1;
  gboolean good;

  answer = bj_cli_call (cli, session, "OpenTranscript", g_variant_new ("(t)", (guint64) 0), NULL, &fds, -1, error);
  if (answer == NULL)
    return -1;
  g_variant_get (answer, "(h)", &handle);
  fd = fds != NULL ? g_unix_fd_list_get (fds, handle, error) : -1;
  if (fds == NULL)
    bj_error_set (error, BJ_ERROR_FAILED, _("belljard sent no transcript"));
  if (fd < 0)
    return -1;
  reader.fd = fd;
  node = json_node_init_array (json_node_alloc (), NULL);
  reader.array = json_array_new ();
  json_node_take_array (node, reader.array);
  good = want_follow ? follow (bj_cli_connect (cli, NULL), session, &reader, error) : drain (&reader, error);
  if (good && form == FORM_JSON)
    bj_output_json (node);
  else
    json_node_unref (node);
  return good ? BJ_EXIT_OK : -1;
}

int
bj_verb_transcript (BjCli *cli, char **args, GError **error)
{
  gboolean want_follow = FALSE;
  gboolean as_json = FALSE;
  gboolean raw = FALSE;
  gboolean text = FALSE;
  const GOptionEntry entries[] = {
    { "follow", 'f', 0, G_OPTION_ARG_NONE, &want_follow, N_("go on until the session ends"), NULL },
    { "text", 0, 0, G_OPTION_ARG_NONE, &text, N_("a line a record, for people"), NULL },
    { "raw", 0, 0, G_OPTION_ARG_NONE, &raw, N_("the transcript's own bytes"), NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("one JSON array"), NULL },
    { 0 },
  };
  g_autoptr(BjDBusSession) session = NULL;
  Form form = bj_output_is_terminal (STDOUT_FILENO) ? FORM_TEXT : FORM_RAW;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  if (as_json + raw + text > 1)
    return bj_usage_error_set (error, _("--json, --raw and --text exclude each other"));
  if (as_json)
    form = FORM_JSON;
  else if (raw || text)
    form = raw ? FORM_RAW : FORM_TEXT;
  session = bj_cli_find_session (cli, args[1], error);
  return session != NULL ? print_transcript (cli, session, form, want_follow, error) : -1;
}
