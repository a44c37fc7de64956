/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"

#include "bj-client.h"
#include "bj-fd.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define CELL_MAX 400

gboolean
bj_output_is_terminal (int fd)
{
  return isatty (fd) == 1;
}

gboolean
bj_output_use_colour (int fd)
{
  const char *no_colour = g_getenv ("NO_COLOR");
  const char *term = g_getenv ("TERM");

  return bj_output_is_terminal (fd) && (no_colour == NULL || *no_colour == '\0') && g_strcmp0 (term, "dumb") != 0;
}

guint
bj_output_get_width (int fd)
{
  struct winsize size = { 0 };

  return ioctl (fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

void
bj_output_line (const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  fputs (text, stdout);
  fputc ('\n', stdout);
}

void
bj_output_note (const char *format, ...)
{
  g_autofree char *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  fputs (text, stderr);
  fputc ('\n', stderr);
}

void
bj_output_text (const char *text)
{
  fputs (text, stdout);
}

gboolean
bj_output_finish (GError **error)
{
  errno = 0;
  if (fflush (stdout) == 0 && ferror (stdout) == 0)
    return TRUE;
  return bj_fd_set_io_error (error, errno != 0 ? errno : EIO, "Writing to standard output");
}

static guint
char_columns (gunichar c)
{
  if (g_unichar_iszerowidth (c))
    return 0;
  return g_unichar_iswide (c) ? 2 : 1;
}

static guint
text_columns (const char *text)
{
  guint columns = 0;

  for (const char *at = text; *at != '\0'; at = g_utf8_next_char (at))
    columns += char_columns (g_utf8_get_char (at));
  return columns;
}

char *
bj_output_cut (const char *text, guint columns)
{
  const char *at = text;
  guint used = 0;

  if (text_columns (text) <= columns)
    return g_strdup (text);
  while (*at != '\0' && used + char_columns (g_utf8_get_char (at)) < columns)
    {
      used += char_columns (g_utf8_get_char (at));
      at = g_utf8_next_char (at);
    }
  return g_strdup_printf ("%.*s…", (int) (at - text), text);
}

char *
bj_output_format_time (gint64 seconds)
{
  g_autoptr(GDateTime) time = seconds > 0 ? g_date_time_new_from_unix_local (seconds) : NULL;

  return time != NULL ? g_date_time_format (time, "%Y-%m-%d %H:%M:%S") : g_strdup ("–");
}

char *
bj_output_format_size (guint64 bytes)
{
  g_autofree char *text = g_format_size_full (bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_auto(GStrv) parts = g_strsplit (text, "\xc2\xa0", -1); /* GLib writes a no-break space */

  return g_strjoinv (" ", parts);
}

static void
append_padded (GString *line, const char *cell, guint columns)
{
  guint used = text_columns (cell);

  g_string_append (line, cell);
  for (; used < columns; used++)
    g_string_append_c (line, ' ');
}

/* One line; the last cell is not padded, and nothing is wider than the terminal. */
static void
append_row (GString *out, const char *const *cells, const guint *widths, guint n, gboolean bold, guint width)
{
  g_autoptr(GString) line = g_string_new (NULL);
  g_autofree char *cut = NULL;

  for (guint i = 0; i < n; i++)
    append_padded (line, cells[i], i + 1 < n ? widths[i] + 2 : 0);
  cut = bj_output_cut (line->str, width);
  g_string_append_printf (out, "%s%s%s\n", bold ? "\033[1m" : "", cut, bold ? "\033[0m" : "");
}

char **
bj_output_dup_row (const char *const *cells, guint n)
{
  char **row = g_new0 (char *, n + 1);

  for (guint i = 0; i < n; i++)
    row[i] = g_strdup (cells[i] != NULL ? cells[i] : "");
  return row;
}

static GPtrArray *
escape_rows (GPtrArray *rows, guint n)
{
  GPtrArray *escaped = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);

  for (guint i = 0; i < rows->len; i++)
    {
      const char *const *cells = g_ptr_array_index (rows, i);
      char **copy = g_new0 (char *, n + 1);

      for (guint j = 0; j < n; j++)
        copy[j] = bj_untrusted_escape (cells[j], -1, CELL_MAX);
      g_ptr_array_add (escaped, copy);
    }
  return escaped;
}

char *
bj_output_format_table (const char *const *titles, GPtrArray *rows, gboolean terminal, gboolean colour, guint width)
{
  guint n = g_strv_length ((char **) titles);
  g_autoptr(GPtrArray) escaped = escape_rows (rows, n);
  g_autofree guint *widths = g_new0 (guint, n);
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < escaped->len && !terminal; i++)
    {
      g_autofree char *line = g_strjoinv ("\t", g_ptr_array_index (escaped, i));

      g_string_append_printf (out, "%s\n", line);
    }
  if (!terminal)
    return g_string_free (out, FALSE);
  for (guint j = 0; j < n; j++)
    {
      widths[j] = text_columns (titles[j]);
      for (guint i = 0; i < escaped->len; i++)
        widths[j] = MAX (widths[j], text_columns (((char **) g_ptr_array_index (escaped, i))[j]));
    }
  append_row (out, titles, widths, n, colour, width);
  for (guint i = 0; i < escaped->len; i++)
    append_row (out, g_ptr_array_index (escaped, i), widths, n, FALSE, width);
  return g_string_free (out, FALSE);
}

void
bj_output_table (const char *const *titles, GPtrArray *rows)
{
  g_autofree char *text
      = bj_output_format_table (titles, rows, bj_output_is_terminal (STDOUT_FILENO),
                                bj_output_use_colour (STDOUT_FILENO), bj_output_get_width (STDOUT_FILENO));

  bj_output_text (text);
}

void
bj_output_json (JsonNode *node)
{
  g_autoptr(JsonNode) owned = node;
  g_autofree char *text = json_to_string (owned, TRUE);

  bj_output_line ("%s", text);
}

char *
bj_output_to_snake (const char *name)
{
  GString *snake = g_string_new (NULL);

  for (const char *at = name; *at != '\0'; at++)
    {
      if (g_ascii_isupper (*at) && at != name)
        g_string_append_c (snake, '_');
      g_string_append_c (snake, g_ascii_tolower (*at));
    }
  return g_string_free (snake, FALSE);
}

JsonNode *
bj_output_object_to_json (GDBusProxy *proxy, const char *id_key)
{
  JsonObject *object = json_object_new ();
  JsonNode *node = json_node_new (JSON_NODE_OBJECT);
  g_auto(GStrv) names = g_dbus_proxy_get_cached_property_names (proxy);

  if (id_key != NULL)
    json_object_set_string_member (object, id_key, bj_client_get_id (proxy));
  for (guint i = 0; names != NULL && names[i] != NULL; i++)
    {
      g_autofree char *key = bj_output_to_snake (names[i]);
      g_autoptr(GVariant) value = g_dbus_proxy_get_cached_property (proxy, names[i]);

      if (value != NULL)
        json_object_set_member (object, key, json_gvariant_serialize (value));
    }
  json_node_take_object (node, object);
  return node;
}

JsonNode *
bj_output_list_to_json (GPtrArray *proxies, const char *id_key)
{
  JsonArray *array = json_array_new ();
  JsonNode *node = json_node_new (JSON_NODE_ARRAY);

  for (guint i = 0; i < proxies->len; i++)
    json_array_add_element (array, bj_output_object_to_json (g_ptr_array_index (proxies, i), id_key));
  json_node_take_array (node, array);
  return node;
}

static JsonNode *
get_value (JsonObject *object, const char *key)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, key) : NULL;

  return node != NULL && JSON_NODE_HOLDS_VALUE (node) ? node : NULL;
}

const char *
bj_json_get_text (JsonObject *object, const char *key)
{
  JsonNode *node = get_value (object, key);

  return node != NULL && json_node_get_value_type (node) == G_TYPE_STRING ? json_node_get_string (node) : NULL;
}

double
bj_json_get_number (JsonObject *object, const char *key, double fallback)
{
  JsonNode *node = get_value (object, key);
  GType type = node != NULL ? json_node_get_value_type (node) : G_TYPE_INVALID;

  return type == G_TYPE_INT64 || type == G_TYPE_DOUBLE ? json_node_get_double (node) : fallback;
}
