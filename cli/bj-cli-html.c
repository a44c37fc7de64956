/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-html.h"

#include "bj-cli-output.h"
#include "bj-cli-transcript.h"

#include "bj-fd.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH_BYTES (256 * 1024)
#define SHORT_TEXT 400
#define PNG_MAX (32u * 1024 * 1024)
#define PICTURES_MAX (256u * 1024 * 1024)
#define NO_HEAD "0000000000000000000000000000000000000000000000000000000000000000"

static const char style[]
    = ":root{color-scheme:light dark}body{font:14px/1.45 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
      "h1{font-size:1.4em}ol{list-style:none;padding:0}li{border-left:4px solid #888;margin:0 0 1em;padding:.1em 0 .1em .8em}"
      "li.seen{border-color:#2a7}li.claimed{border-color:#c80}header b{margin:0 .5em}time,.hash{color:#777;font-size:.85em}"
      ".hash{font-family:monospace;overflow-wrap:anywhere}table{border-collapse:collapse}th{text-align:left;font-weight:normal;"
      "color:#777;padding:0 1em 0 0;vertical-align:top;white-space:nowrap}td{overflow-wrap:anywhere}"
      "pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}img{max-width:100%;border:1px solid #888}.bad{color:#c22;font-weight:bold}";

struct _BjHtml
{
  BjCli *cli;             /* (not owned) */
  BjDBusSession *session; /* (owned) */
  char *path;             /* (nullable): of a regular file that is not finished */
  int fd;
  GString *out;
  char head[65];
  guint count;
  guint shown;
  guint broken;
  gsize picture_bytes;
  GHashTable *pictures; /* name to the number of the record that shows it */
};

char *
bj_html_escape (const char *text)
{
  g_autofree char *clean = bj_untrusted_clean (text, TRUE, 0);

  return g_markup_escape_text (clean, -1);
}

static void
add_text (BjHtml *self, const char *text)
{
  g_autofree char *escaped = bj_html_escape (text);

  g_string_append (self->out, escaped);
}

static gboolean
flush (BjHtml *self, gsize least, GError **error)
{
  if (self->out->len <= least)
    return TRUE;
  if (!bj_fd_write_all (self->fd, self->out->str, self->out->len, error))
    return FALSE;
  g_string_truncate (self->out, 0);
  return TRUE;
}

/* Only this very style sheet and pictures that are in the page. */
static void
add_policy (BjHtml *self)
{
  guint8 digest[32];
  gsize length = sizeof digest;
  g_autoptr(GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree char *base64 = NULL;

  g_checksum_update (checksum, (const guchar *) style, -1);
  g_checksum_get_digest (checksum, digest, &length);
  base64 = g_base64_encode (digest, length);
  g_string_append_printf (self->out,
                          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s'; "
                          "img-src data:; base-uri 'none'; form-action 'none'\">\n",
                          base64);
}

static void
begin_page (BjHtml *self, const char *search)
{
  const char *id = bj_client_get_id (self->session);

  g_string_append (self->out, "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n");
  add_policy (self);
  g_string_append (self->out, "<meta name=\"referrer\" content=\"no-referrer\">\n"
                              "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Belljar ");
  add_text (self, id);
  g_string_append_printf (self->out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
  add_text (self, _("Transcript of the session"));
  g_string_append_c (self->out, ' ');
  add_text (self, id);
  g_string_append (self->out, "</h1>\n<p>");
  add_text (self, _("Green: seen by the daemon. Orange: claimed by the agent. Texts of guest and model are untrusted. This page proves "
                    "nothing: “belljar report --verify” does."));
  g_string_append (self->out, "</p>\n");
  if (search != NULL)
    {
      g_string_append (self->out, "<p>");
      add_text (self, _("Only records that have this text in them:"));
      g_string_append (self->out, " <b>");
      add_text (self, search);
      g_string_append (self->out, "</b></p>\n");
    }
  g_string_append (self->out, "<ol>\n");
}

BjHtml *
bj_html_new (BjCli *cli, BjDBusSession *session, const char *path, const char *search, GError **error)
{
  g_autoptr(BjHtml) self = g_new0 (BjHtml, 1);
  struct stat info;

  self->cli = cli;
  self->session = g_object_ref (session);
  self->out = g_string_new (NULL);
  self->pictures = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_strlcpy (self->head, NO_HEAD, sizeof self->head);
  if (g_str_equal (path, "-"))
    self->fd = dup (STDOUT_FILENO);
  else
    self->fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
  if (self->fd < 0)
    {
      bj_fd_set_io_error (error, errno, _("Making the file “%s”"), path);
      return NULL;
    }
  if (!g_str_equal (path, "-") && fstat (self->fd, &info) == 0 && S_ISREG (info.st_mode))
    self->path = g_strdup (path);
  begin_page (self, search);
  return g_steal_pointer (&self);
}

void
bj_html_free (BjHtml *self)
{
  if (self->path != NULL)
    g_unlink (self->path);
  bj_fd_clear (&self->fd);
  g_free (self->path);
  g_object_unref (self->session);
  g_string_free (self->out, TRUE);
  g_hash_table_unref (self->pictures);
  g_free (self);
}

static void
add_value (BjHtml *self, JsonNode *node)
{
  g_autofree char *text = NULL;
  gboolean is_text = JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_STRING;
  gboolean is_long;

  text = is_text ? g_strdup (json_node_get_string (node)) : json_to_string (node, TRUE);
  is_long = strlen (text) > SHORT_TEXT;
  if (is_long)
    {
      g_autofree char *begin = bj_untrusted_cut (text, SHORT_TEXT / 4, NULL);

      g_strdelimit (begin, "\n", ' ');
      g_string_append (self->out, "<details><summary>");
      add_text (self, begin);
      g_string_append (self->out, "</summary>");
    }
  g_string_append (self->out, "<pre>");
  add_text (self, text);
  g_string_append (self->out, is_long ? "</pre></details>" : "</pre>");
}

static void
add_members (BjHtml *self, JsonObject *data)
{
  g_autoptr(GList) names = json_object_get_members (data);

  g_string_append (self->out, "<table>");
  for (GList *at = names; at != NULL; at = at->next)
    {
      g_string_append (self->out, "<tr><th>");
      add_text (self, at->data);
      g_string_append (self->out, "</th><td>");
      add_value (self, json_object_get_member (data, at->data));
      g_string_append (self->out, "</td></tr>\n");
    }
  g_string_append (self->out, "</table>");
}

/* The picture that a record speaks of, and no other. */
static GBytes *
get_picture (BjHtml *self, const char *name, const char *sha256, GError **error)
{
  g_auto(BjFd) fd = bj_cli_open_evidence (self->cli, self->session, name, error);
  g_autoptr(GBytes) png = NULL;
  g_autofree char *found = NULL;

  if (fd < 0)
    return NULL;
  png = bj_fd_read_to_end (fd, PNG_MAX, error);
  if (png == NULL)
    return NULL;
  found = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, png);
  if (g_strcmp0 (found, sha256) == 0 && self->picture_bytes + g_bytes_get_size (png) <= PICTURES_MAX)
    return g_steal_pointer (&png);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                       g_strcmp0 (found, sha256) == 0 ? _("there are too many pictures") : _("it is not the one that was recorded"));
  return NULL;
}

static void
add_picture (BjHtml *self, JsonObject *data)
{
  const char *name = bj_json_get_text (data, "file");
  const guint *before = name != NULL ? g_hash_table_lookup (self->pictures, name) : NULL;
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) png = NULL;
  g_autofree char *base64 = NULL;

  if (name == NULL)
    return;
  if (before != NULL)
    {
      g_string_append_printf (self->out, "<p><a href=\"#r%u\">", *before);
      add_text (self, _("the same picture as before"));
      g_string_append (self->out, "</a></p>");
      return;
    }
  png = get_picture (self, name, bj_json_get_text (data, "sha256"), &error);
  if (png == NULL)
    {
      g_string_append (self->out, "<p class=\"bad\">");
      add_text (self, _("The picture is missing:"));
      g_string_append_c (self->out, ' ');
      add_text (self, error->message);
      g_string_append (self->out, "</p>");
      return;
    }
  self->picture_bytes += g_bytes_get_size (png);
  base64 = g_base64_encode (g_bytes_get_data (png, NULL), g_bytes_get_size (png));
  g_string_append_printf (self->out, "<p><img alt=\"\" src=\"data:image/png;base64,%s\"></p>", base64);
  g_hash_table_insert (self->pictures, g_strdup (name), g_memdup2 (&self->count, sizeof self->count));
}

static void
add_record (BjHtml *self, JsonObject *record, const char *hash, gboolean in_place)
{
  const char *by = bj_json_get_text (record, "by");
  const char *type = bj_json_get_text (record, "type");
  JsonNode *data = json_object_get_member (record, "data");
  gboolean seen = g_strcmp0 (by, "seen") == 0;
  g_autofree char *time = bj_record_format_time (bj_json_get_number (record, "at", 0));

  g_string_append_printf (self->out, "<li id=\"r%u\" class=\"%s\"><header><a href=\"#r%u\">%u</a> <b>", self->count,
                          seen ? "seen" : "claimed", self->count, self->count);
  add_text (self, type != NULL ? type : "?");
  g_string_append_printf (self->out, "</b> %s <time>%s</time></header>\n", seen ? "seen" : "claimed", time);
  if (data != NULL && JSON_NODE_HOLDS_OBJECT (data))
    {
      add_members (self, json_node_get_object (data));
      if (seen && g_strcmp0 (type, "screenshot") == 0)
        add_picture (self, json_node_get_object (data));
    }
  g_string_append_printf (self->out, "\n<div class=\"hash\">%s</div>", hash);
  if (!in_place)
    {
      g_string_append (self->out, "<div class=\"bad\">");
      add_text (self, _("does not follow from the record before it"));
      g_string_append (self->out, "</div>");
    }
  g_string_append (self->out, "</li>\n");
}

gboolean
bj_html_add_record (BjHtml *self, const char *line, gsize length, gboolean shown, GError **error)
{
  g_autofree char *hash = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) line, length);
  g_autoptr(JsonParser) parser = json_parser_new ();
  JsonNode *root = NULL;
  JsonObject *record;
  gboolean in_place;

  if (json_parser_load_from_data (parser, line, (gssize) length, NULL))
    root = json_parser_get_root (parser);
  record = root != NULL && JSON_NODE_HOLDS_OBJECT (root) ? json_node_get_object (root) : NULL;
  in_place = g_strcmp0 (bj_json_get_text (record, "prev"), self->head) == 0;
  if (!in_place)
    self->broken++;
  if (record == NULL)
    {
      g_string_append (self->out, "<li class=\"bad\">");
      add_text (self, _("(a line that is no record)"));
      g_string_append (self->out, "</li>\n");
    }
  else if (shown)
    add_record (self, record, hash, in_place);
  self->shown += shown ? 1 : 0;
  self->count++;
  g_strlcpy (self->head, hash, sizeof self->head);
  return flush (self, FLUSH_BYTES, error);
}

static void G_GNUC_PRINTF (2, 3)
add_line (BjHtml *self, const char *format, ...)
{
  va_list args;
  g_autofree char *text = NULL;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  add_text (self, text);
}

gboolean
bj_html_finish (BjHtml *self, GError **error)
{
  g_string_append (self->out, "</ol>\n<p>");
  add_line (self, _("%u records, %u of them here."), self->count, self->shown);
  g_string_append_c (self->out, ' ');
  if (self->broken > 0)
    {
      g_string_append (self->out, "<span class=\"bad\">");
      add_line (self, _("%u of them do not follow from the one before: the transcript was changed."), self->broken);
      g_string_append (self->out, "</span>");
    }
  g_string_append (self->out, "</p>\n</body>\n</html>\n");
  if (!flush (self, 0, error))
    return FALSE;
  if (self->path != NULL)
    bj_output_note (_("Saved as %s"), self->path);
  g_clear_pointer (&self->path, g_free);
  return TRUE;
}
