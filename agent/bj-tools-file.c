/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define MAX_EDIT (1024 * 1024)

/* Files through the daemon's own verbs: content never passes through a shell. */

static gboolean
get_mode (JsonObject *arguments, int *mode, GError **error)
{
  const char *text = bj_json_get_string (arguments, "mode");
  guint64 value;

  *mode = -1;
  if (text == NULL || *text == '\0')
    return TRUE;
  if (!g_ascii_string_to_unsigned (text, 8, 0, 07777, &value, NULL))
    return bj_error_set (error, BJ_ERROR_INVALID, "The mode must be octal permission bits, for example 0755");
  *mode = (int) value;
  return TRUE;
}

static gboolean
make_parent (BjAgent *self, const char *tool, const char *path, GError **error)
{
  g_autofree char *full = bj_path_resolve (self, path);
  g_autofree char *parent = g_path_get_dirname (full);
  g_autofree char *label = g_strdup_printf ("mkdir -p %s", parent);
  const char *argv[] = { "mkdir", "-p", "--", parent, NULL };
  const BjVerbExec exec = { tool, label, argv, "/", NULL, self->config.helper_timeout_s };
  g_autoptr(GVariant) result = bj_verbs_exec (self, &exec, error);

  return result != NULL;
}

static JsonObject *
write_result (gsize bytes)
{
  JsonObject *result = json_object_new ();

  json_object_set_boolean_member (result, "ok", TRUE);
  json_object_set_int_member (result, "bytes", (gint64) bytes);
  return result;
}

static JsonObject *
write_content (BjAgent *self, const char *tool, JsonObject *arguments, gboolean append, GError **error)
{
  const char *path = bj_json_get_string (arguments, "path");
  const char *content = bj_json_get_string (arguments, "content");
  gsize length = strlen (content);
  g_autoptr(GError) why = NULL;
  int mode;

  if (!get_mode (arguments, &mode, error))
    return NULL;
  if (bj_verbs_write_file (self, tool, path, content, length, mode, append, &why))
    return write_result (length);
  if (!g_error_matches (why, BJ_ERROR, BJ_ERROR_NOT_FOUND))
    {
      g_propagate_error (error, g_steal_pointer (&why));
      return NULL;
    }
  if (!make_parent (self, tool, path, error)
      || !bj_verbs_write_file (self, tool, path, content, length, mode, append, error))
    return NULL;
  return write_result (length);
}

JsonObject *
bj_tool_write_file (BjAgent *self, JsonObject *arguments, GError **error)
{
  return write_content (self, "write_file", arguments, FALSE, error);
}

JsonObject *
bj_tool_append_file (BjAgent *self, JsonObject *arguments, GError **error)
{
  return write_content (self, "append_file", arguments, TRUE, error);
}

/* Cuts half characters off both ends of a piece, so that pieces of a text are text. */
static void
trim_to_characters (const char **bytes, gsize *length, gboolean at_start, gboolean at_end)
{
  gsize cut = 0;

  while (!at_start && *length > 0 && cut < 3 && (**bytes & 0xc0) == 0x80)
    {
      (*bytes)++;
      (*length)--;
      cut++;
    }
  for (cut = 1; !at_end && cut <= 3 && cut <= *length; cut++)
    {
      guchar byte = (guchar) (*bytes)[*length - cut];

      if (byte >= 0xc0 && (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : 2u) > cut)
        *length -= cut;
      if (byte >= 0xc0 || byte < 0x80)
        return;
    }
}

JsonObject *
bj_tool_read_file (BjAgent *self, JsonObject *arguments, GError **error)
{
  gint64 offset = 0;
  gint64 limit = (gint64) self->result_bytes;
  guint64 size = 0;
  g_autoptr(GBytes) data = NULL;
  g_autofree char *text = NULL;
  JsonObject *result;
  const char *start, *bytes;
  gsize length;
  guint64 end;

  bj_json_get_int (arguments, "offset", &offset);
  bj_json_get_int (arguments, "limit", &limit);
  offset = MAX (offset, 0);
  limit = CLAMP (limit, 1, (gint64) self->result_bytes);
  data = bj_verbs_read_file (self, bj_json_get_string (arguments, "path"), (guint64) offset, (guint64) limit, &size,
                             error);
  if (data == NULL)
    return NULL;
  bytes = start = g_bytes_get_data (data, &length);
  trim_to_characters (&bytes, &length, offset == 0, (guint64) offset + length >= size);
  end = (guint64) offset + (guint64) (bytes - start) + length;
  text = g_utf8_make_valid (bytes ? bytes : "", (gssize) length);
  result = json_object_new ();
  json_object_set_string_member (result, "content", text);
  json_object_set_int_member (result, "size", (gint64) size);
  if (length > 0 && !g_utf8_validate (bytes, (gssize) length, NULL))
    json_object_set_string_member (result, "note", "The file is not UTF-8 text; other bytes are shown as \xef\xbf\xbd.");
  if (end < size)
    json_object_set_int_member (result, "next_offset", (gint64) end);
  return result;
}

/* Editing */

static const char *
find_bytes (const char *bytes, gsize length, const char *what, gsize size)
{
  return length < size ? NULL : memmem (bytes, length, what, size);
}

static guint
count_bytes (const char *bytes, gsize length, const char *what, gsize size)
{
  guint count = 0;
  const char *end = bytes + length;
  const char *at = find_bytes (bytes, length, what, size);

  while (at != NULL)
    {
      count++;
      at = find_bytes (at + size, (gsize) (end - at) - size, what, size);
    }
  return count;
}

static GString *
replace_bytes (const char *bytes, gsize length, const char *old, const char *new)
{
  GString *out = g_string_sized_new (length);
  const char *end = bytes + length;
  const char *at;

  while ((at = find_bytes (bytes, (gsize) (end - bytes), old, strlen (old))) != NULL)
    {
      g_string_append_len (out, bytes, at - bytes);
      g_string_append (out, new);
      bytes = at + strlen (old);
    }
  g_string_append_len (out, bytes, end - bytes);
  return out;
}

static gboolean
check_edit (guint count, const char *path, gboolean all, GError **error)
{
  if (count == 0)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "“old” does not stand in %s. It must match exactly, spaces and line "
                         "ends included; read the file again.", path);
  if (count > 1 && !all)
    return bj_error_set (error, BJ_ERROR_INVALID, "“old” stands %u times in %s. Give more of the text around it, or set "
                         "all to true.", count, path);
  return TRUE;
}

JsonObject *
bj_tool_edit_file (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *path = bj_json_get_string (arguments, "path");
  const char *old = bj_json_get_string (arguments, "old");
  const char *new = bj_json_get_string (arguments, "new");
  g_autoptr(GBytes) data = NULL;
  g_autoptr(GString) changed = NULL;
  JsonObject *result;
  const char *bytes;
  gsize length;
  guint64 size = 0;
  guint count;

  if (*old == '\0' || g_str_equal (old, new))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "“old” must not be empty, and “new” must differ from it");
      return NULL;
    }
  data = bj_verbs_read_file (self, path, 0, MAX_EDIT, &size, error);
  if (data == NULL)
    return NULL;
  bytes = g_bytes_get_data (data, &length);
  if (size > length)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s is larger than %d bytes; change it with run", path, MAX_EDIT);
      return NULL;
    }
  count = count_bytes (bytes, length, old, strlen (old));
  if (!check_edit (count, path, bj_json_get_bool (arguments, "all", FALSE), error))
    return NULL;
  changed = replace_bytes (bytes, length, old, new);
  if (!bj_verbs_write_file (self, "edit_file", path, changed->str, changed->len, -1, FALSE, error))
    return NULL;
  result = write_result (changed->len);
  json_object_set_int_member (result, "replaced", count);
  return result;
}
