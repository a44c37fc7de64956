/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-transcript.h"

#include "bj-cli-html.h"
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
#define LONG_VALUE_MAX 4096
#define WORD_BYTES_MAX 32

typedef enum
{
  FORM_TEXT, /* a line a record */
  FORM_RAW,  /* the very bytes */
  FORM_JSON, /* one array */
  FORM_HTML, /* a page */
} Form;

typedef struct
{
  int fd;
  Form form;
  gboolean long_form; /* FORM_TEXT: with date and hash */
  char *search;       /* (nullable): only records with this text; folded */
  GString *rest;      /* a line that is not whole yet */
  JsonArray *array;   /* FORM_JSON */
  BjHtml *html;       /* FORM_HTML */
} Reader;

static char *
value_to_text (JsonNode *node, gsize cap)
{
  g_autofree char *json = NULL;

  if (JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_STRING)
    return bj_untrusted_escape (json_node_get_string (node), -1, cap);
  json = json_to_string (node, FALSE);
  return bj_untrusted_escape (json, -1, cap);
}

static void
append_members (GString *text, JsonObject *data, gsize cap)
{
  g_autoptr(GList) names = json_object_get_members (data);

  for (GList *at = names; at != NULL; at = at->next)
    {
      g_autofree char *name = bj_untrusted_escape (at->data, -1, VALUE_MAX);
      g_autofree char *value = value_to_text (json_object_get_member (data, at->data), cap);

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

/* Date, part of a second and all: the transcript's own number is in seconds. */
static void
append_long_time (GString *text, JsonObject *record)
{
  double at = bj_json_get_number (record, "at", 0);
  g_autofree char *shown = bj_record_format_time (at);

  g_string_append (text, shown);
}

char *
bj_record_format_time (double at)
{
  g_autoptr(GDateTime) time = at > 0 && at < 1e11 ? g_date_time_new_from_unix_utc ((gint64) at) : NULL;
  g_autofree char *shown = time != NULL ? g_date_time_format (time, "%Y-%m-%dT%H:%M:%S") : NULL;
  guint ms = shown != NULL ? (guint) ((at - (double) (gint64) at) * 1000) : 0;

  return shown != NULL ? g_strdup_printf ("%s.%03uZ", shown, ms) : g_strdup ("----------T--:--:--.---Z");
}

static char *
escape_member (JsonObject *record, const char *key)
{
  const char *text = bj_json_get_text (record, key);

  return bj_untrusted_escape (text != NULL ? text : "?", -1, WORD_BYTES_MAX);
}

/* What the next record calls "prev". */
static void
append_hash (GString *text, const char *line, gsize length)
{
  g_autofree char *hash = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) line, length);

  g_string_append_printf (text, "  %s", hash);
}

char *
bj_record_to_line (const char *line, gsize length, gboolean long_form)
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
  if (long_form)
    append_long_time (text, record);
  else
    append_time (text, record);
  if (long_form)
    append_hash (text, line, length);
  g_string_append_printf (text, "  %-7s  %-11s", by, type);
  data = json_object_get_member (record, "data");
  if (data != NULL && JSON_NODE_HOLDS_OBJECT (data))
    append_members (text, json_node_get_object (data), long_form ? LONG_VALUE_MAX : VALUE_MAX);
  return g_string_free (text, FALSE);
}

static gboolean
text_matches (const char *text, const char *folded)
{
  g_autofree char *own = g_utf8_casefold (text, -1);

  return strstr (own, folded) != NULL;
}

/* json-glib has no walk of its own; depth is that of the parser, which has one. */
static gboolean
node_matches (JsonNode *node, const char *folded)
{
  g_autoptr(GList) values = NULL;

  if (JSON_NODE_HOLDS_VALUE (node))
    return json_node_get_value_type (node) == G_TYPE_STRING && text_matches (json_node_get_string (node), folded);
  if (JSON_NODE_HOLDS_OBJECT (node))
    values = json_object_get_values (json_node_get_object (node));
  else if (JSON_NODE_HOLDS_ARRAY (node))
    values = json_array_get_elements (json_node_get_array (node));
  for (GList *at = values; at != NULL; at = at->next)
    if (node_matches (at->data, folded))
      return TRUE;
  return FALSE;
}

gboolean
bj_record_matches (const char *line, gsize length, const char *folded)
{
  g_autoptr(JsonParser) parser = json_parser_new ();

  return json_parser_load_from_data (parser, line, (gssize) length, NULL) && json_parser_get_root (parser) != NULL
         && node_matches (json_parser_get_root (parser), folded);
}

static gboolean
take_line (Reader *reader, const char *line, gsize length, GError **error)
{
  g_autoptr(JsonParser) parser = NULL;
  g_autofree char *text = NULL;

  gboolean wanted = reader->search == NULL || bj_record_matches (line, length, reader->search);

  if (reader->form == FORM_HTML)
    return bj_html_add_record (reader->html, line, length, wanted, error);
  if (!wanted)
    return TRUE;
  if (reader->form == FORM_RAW)
    return bj_fd_write_all (STDOUT_FILENO, line, length, error) && bj_fd_write_all (STDOUT_FILENO, "\n", 1, error);
  if (reader->form == FORM_TEXT)
    {
      text = bj_record_to_line (line, length, reader->long_form);
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

  if (reader->form == FORM_RAW && reader->search == NULL)
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

/* Calls a method that answers with a descriptor. Returns: it, owned by the caller, or -1 */
static int
call_for_fd (BjCli *cli, BjDBusSession *session, const char *method, GVariant *parameters, GError **error)
{
  g_autoptr(GUnixFDList) fds = NULL;
  g_autoptr(GVariant) answer = bj_cli_call (cli, session, method, parameters, NULL, &fds, -1, error);
  int handle = -1;

  if (answer == NULL)
    return -1;
  g_variant_get (answer, "(h)", &handle);
  return bj_fd_take (fds, handle, error);
}

int
bj_cli_open_transcript (BjCli *cli, BjDBusSession *session, GError **error)
{
  return call_for_fd (cli, session, "OpenTranscript", g_variant_new ("(t)", (guint64) 0), error);
}

int
bj_cli_open_evidence (BjCli *cli, BjDBusSession *session, const char *name, GError **error)
{
  return call_for_fd (cli, session, "OpenEvidence", g_variant_new ("(s)", name), error);
}

/* What a person wrote behind "belljar transcript". */
typedef struct
{
  gboolean follow;
  gboolean as_json;
  gboolean raw;
  gboolean text;
  gboolean long_form;
  char *search;
  char *html;
} TranscriptWords;

static void
transcript_words_clear (TranscriptWords *words)
{
  g_free (words->search);
  g_free (words->html);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TranscriptWords, transcript_words_clear)

static int
print_transcript (BjCli *cli, BjDBusSession *session, const TranscriptWords *words, Form form, GError **error)
{
  g_autoptr(GString) rest = g_string_new (NULL);
  g_autoptr(BjHtml) html = NULL;
  g_auto(BjFd) fd = bj_cli_open_transcript (cli, session, error);
  g_autofree char *search = words->search != NULL ? g_utf8_casefold (words->search, -1) : NULL;
  g_autoptr(JsonNode) node = json_node_init_array (json_node_alloc (), NULL);
  Reader reader = { .fd = fd, .form = form, .long_form = words->long_form, .search = search, .rest = rest };
  gboolean good;

  if (fd < 0)
    return -1;
  reader.array = json_array_new ();
  json_node_take_array (node, reader.array);
  if (form == FORM_HTML)
    {
      reader.html = html = bj_html_new (cli, session, words->html, words->search, error);
      if (html == NULL)
        return -1;
    }
  good = words->follow ? follow (bj_cli_connect (cli, NULL), session, &reader, error) : drain (&reader, error);
  if (good && form == FORM_JSON)
    bj_output_json (g_steal_pointer (&node));
  if (good && form == FORM_HTML)
    good = bj_html_finish (html, error);
  return good ? BJ_EXIT_OK : -1;
}

/* Returns: whether these go together; @form: (out) */
static gboolean
choose_form (const TranscriptWords *words, Form *form, GError **error)
{
  guint chosen = (guint) (words->as_json + words->raw + (words->text || words->long_form) + (words->html != NULL));

  *form = bj_output_is_terminal (STDOUT_FILENO) ? FORM_TEXT : FORM_RAW;
  if (chosen > 1)
    bj_usage_error_set (error, _("--json, --raw, --text (or --long) and --html exclude each other"));
  else if (words->html != NULL && words->follow)
    bj_usage_error_set (error, _("--html and --follow exclude each other"));
  else if (words->search != NULL && (*words->search == '\0' || !g_utf8_validate (words->search, -1, NULL)))
    bj_usage_error_set (error, _("--search needs UTF-8 text"));
  else if (words->html != NULL && *words->html == '\0')
    bj_usage_error_set (error, _("--html needs a file's name, or “-”"));
  else
    {
      if (chosen == 1)
        *form = words->as_json ? FORM_JSON : words->raw ? FORM_RAW : words->html != NULL ? FORM_HTML : FORM_TEXT;
      return TRUE;
    }
  return FALSE;
}

int
bj_verb_transcript (BjCli *cli, char **args, GError **error)
{
  g_auto(TranscriptWords) words = { 0 };
  const GOptionEntry entries[] = {
    { "follow", 'f', 0, G_OPTION_ARG_NONE, &words.follow, N_("go on until the session ends"), NULL },
    { "search", 's', 0, G_OPTION_ARG_FILENAME, &words.search, N_("only records that have this text in them"), N_("TEXT") },
    { "text", 0, 0, G_OPTION_ARG_NONE, &words.text, N_("a line a record, for people"), NULL },
    { "long", 'l', 0, G_OPTION_ARG_NONE, &words.long_form, N_("the same with date, hash and longer values"), NULL },
    { "raw", 0, 0, G_OPTION_ARG_NONE, &words.raw, N_("the transcript's own bytes"), NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &words.as_json, N_("one JSON array"), NULL },
    { "html", 0, 0, G_OPTION_ARG_FILENAME, &words.html, N_("write one page with all pictures; “-” is standard output"), N_("FILE") },
    { 0 },
  };
  g_autoptr(BjDBusSession) session = NULL;
  Form form;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error) || !choose_form (&words, &form, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  return session != NULL ? print_transcript (cli, session, &words, form, error) : -1;
}
