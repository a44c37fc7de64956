/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-answer.h"

#include "bj-error.h"

#include <string.h>

#define WARNINGS_MAX 101
#define WARNING_MAX 2048
#define ENTRIES_MAX 2000
#define PATH_BYTES_MAX (3 * 128 * 256) /* percent-escaped, at the greatest depth */
#define COUNT_MAX (G_GUINT64_CONSTANT (1) << 48)

void
bj_project_answer_clear (BjProjectAnswer *answer)
{
  g_clear_pointer (&answer->tree, g_free);
  g_clear_pointer (&answer->warnings, g_ptr_array_unref);
  g_clear_pointer (&answer->entries, json_array_unref);
}

gboolean
bj_project_id_is_valid (const char *id)
{
  return id != NULL && strlen (id) == 40 && strspn (id, "0123456789abcdef") == 40;
}

static gboolean
invalid (GError **error, const char *what)
{
  return bj_error_set (error, BJ_ERROR_FAILED, "The helper belljar-tree gave an answer that is not valid: %s", what);
}

static gboolean
take_tree (BjProjectAnswer *answer, const char *value, GError **error)
{
  if (answer->tree != NULL || !bj_project_id_is_valid (value))
    return invalid (error, "tree");
  answer->tree = g_strdup (value);
  return TRUE;
}

static gboolean
take_files (BjProjectAnswer *answer, const char *value, GError **error)
{
  return g_ascii_string_to_unsigned (value, 10, 0, COUNT_MAX, &answer->files, NULL) || invalid (error, "files");
}

static gboolean
take_bytes (BjProjectAnswer *answer, const char *value, GError **error)
{
  return g_ascii_string_to_unsigned (value, 10, 0, COUNT_MAX, &answer->bytes, NULL) || invalid (error, "bytes");
}

static gboolean
take_count (BjProjectAnswer *answer, const char *value, GError **error)
{
  guint64 count;

  return g_ascii_string_to_unsigned (value, 10, 0, COUNT_MAX, &count, NULL) || invalid (error, "a count");
}

static gboolean
is_printable (const char *text)
{
  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p))
    {
      gunichar c = g_utf8_get_char (p);

      if (g_unichar_iscntrl (c) || c == 0x2028 || c == 0x2029)
        return FALSE;
    }
  return TRUE;
}

static gboolean
take_warning (BjProjectAnswer *answer, const char *value, GError **error)
{
  if (answer->warnings->len >= WARNINGS_MAX || strlen (value) > WARNING_MAX || !is_printable (value))
    return invalid (error, "warning");
  g_ptr_array_add (answer->warnings, g_strdup (value));
  return TRUE;
}

static gboolean
parse_lines (const char *text, gint64 *lines)
{
  if (strcmp (text, "-1") == 0)
    {
      *lines = -1;
      return TRUE;
    }
  return g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT32, (guint64 *) lines, NULL);
}

/* STATUS ADDED REMOVED ENCODED PATH */
static gboolean
take_entry (BjProjectAnswer *answer, const char *value, GError **error)
{
  static const char *const statuses[] = { "added", "modified", "deleted", "typechange", NULL };
  g_auto(GStrv) parts = g_strsplit (value, " ", 5);
  gint64 added, removed;
  JsonObject *entry;

  if (g_strv_length (parts) != 5 || json_array_get_length (answer->entries) >= ENTRIES_MAX)
    return invalid (error, "entry");
  if (!g_strv_contains (statuses, parts[0]) || !parse_lines (parts[1], &added) || !parse_lines (parts[2], &removed)
      || (strcmp (parts[3], "0") != 0 && strcmp (parts[3], "1") != 0))
    return invalid (error, "entry");
  if (*parts[4] == '\0' || *parts[4] == '/' || strlen (parts[4]) > PATH_BYTES_MAX || !is_printable (parts[4]))
    return invalid (error, "path");
  entry = json_object_new ();
  json_object_set_string_member (entry, "path", parts[4]);
  json_object_set_boolean_member (entry, "path_encoded", *parts[3] == '1');
  json_object_set_string_member (entry, "status", parts[0]);
  json_object_set_int_member (entry, "added", added);
  json_object_set_int_member (entry, "removed", removed);
  json_array_add_object_element (answer->entries, entry);
  return TRUE;
}

static const struct
{
  const char *key;
  gboolean (*take) (BjProjectAnswer *answer, const char *value, GError **error);
} keys[] = {
  { "tree ", take_tree },       { "files ", take_files },     { "bytes ", take_bytes }, { "changed ", take_count },
  { "moved ", take_count },     { "warning ", take_warning }, { "entry ", take_entry },
};

static gboolean
take_line (BjProjectAnswer *answer, const char *line, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_str_has_prefix (line, keys[i].key))
      return keys[i].take (answer, line + strlen (keys[i].key), error);
  return invalid (error, "unknown key");
}

gboolean
bj_project_answer_parse (GBytes *output, BjProjectAnswer *answer, GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (output, &size);
  g_autofree char *text = g_strndup (size > 0 ? data : "", size);
  char *line = text;

  *answer = (BjProjectAnswer) { .warnings = g_ptr_array_new_with_free_func (g_free), .entries = json_array_new () };
  if (strlen (text) != size || !g_utf8_validate (text, (gssize) size, NULL))
    return invalid (error, "not UTF-8");
  for (;;)
    {
      char *newline = strchr (line, '\n');

      if (newline == NULL)
        return invalid (error, "cut off");
      *newline = '\0';
      if (strcmp (line, "end") == 0)
        return newline[1] == '\0' || invalid (error, "text after the end");
      if (!take_line (answer, line, error))
        return FALSE;
      line = newline + 1;
    }
}

gboolean
bj_project_answer_parse_blob (GBytes *output, gsize max, GBytes **blob, GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (output, &size);
  const char *newline = size > 0 ? memchr (data, '\n', MIN (size, 64)) : NULL;
  g_autofree char *head = newline != NULL ? g_strndup (data, (gsize) (newline - data)) : NULL;
  guint64 length = 0;
  gsize start;

  *blob = NULL;
  if (head == NULL)
    return invalid (error, "no head");
  start = (gsize) (newline - data) + 1;
  if (strcmp (head, "none") == 0)
    return size == start || invalid (error, "text after none");
  if (!g_str_has_prefix (head, "blob ") || !g_ascii_string_to_unsigned (head + 5, 10, 0, max, &length, NULL)
      || size - start != length)
    return invalid (error, "blob");
  *blob = g_bytes_new_from_bytes (output, start, length);
  return TRUE;
}
