/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define COMMITS_DEFAULT 20

/* The project's history is the daemon's: there need not be a repository in the machine, and if there is one it is another. */

static void
copy_text (GVariantDict *dict, JsonObject *out, const char *key)
{
  const char *text = "";

  g_variant_dict_lookup (dict, key, "&s", &text);
  if (*text != '\0')
    json_object_set_string_member (out, key, text);
}

static JsonObject *
change_entry (GVariant *entry)
{
  JsonObject *object = json_object_new ();
  GVariantDict dict;
  gint32 added = -1;
  gint32 removed = -1;

  g_variant_dict_init (&dict, entry);
  copy_text (&dict, object, "path");
  copy_text (&dict, object, "status");
  if (g_variant_dict_lookup (&dict, "added", "i", &added) && added >= 0)
    json_object_set_int_member (object, "added", added);
  if (g_variant_dict_lookup (&dict, "removed", "i", &removed) && removed >= 0)
    json_object_set_int_member (object, "removed", removed);
  g_variant_dict_clear (&dict);
  return object;
}

static JsonArray *
convert_all (GVariant *list, JsonObject *(*convert) (GVariant *entry))
{
  JsonArray *array = json_array_new ();

  for (gsize i = 0; i < g_variant_n_children (list); i++)
    {
      g_autoptr(GVariant) entry = g_variant_get_child_value (list, i);

      json_array_add_object_element (array, convert (entry));
    }
  return array;
}

JsonObject *
bj_tool_git_status (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(GVariant) changes = NULL;
  g_auto(GStrv) warnings = NULL;
  JsonObject *result;
  JsonArray *left_out;
  guint64 total = 0;

  if (!bj_verbs_git_status (self, &changes, &total, &warnings, error))
    return NULL;
  result = json_object_new ();
  json_object_set_array_member (result, "changes", convert_all (changes, change_entry));
  json_object_set_int_member (result, "total", (gint64) total);
  if (total == 0)
    json_object_set_string_member (result, "message", "Nothing differs from the project's newest commit");
  if (warnings[0] == NULL)
    return result;
  left_out = json_array_new ();
  for (guint i = 0; warnings[i] != NULL; i++)
    json_array_add_string_element (left_out, warnings[i]);
  json_object_set_array_member (result, "warnings", left_out);
  return result;
}

/* Returns: (transfer full): the path below the project's folder, "" for the folder itself */
static char *
dup_inner_path (BjAgent *self, const char *path, GError **error)
{
  g_autofree char *folder = g_canonicalize_filename (self->task.folder, "/");
  g_autofree char *full = g_canonicalize_filename (path, folder);
  gsize length = strlen (folder);

  if (g_str_equal (full, folder))
    return g_strdup ("");
  if (g_str_has_prefix (full, folder) && full[length] == '/')
    return g_strdup (full + length + 1);
  bj_error_set (error, BJ_ERROR_INVALID, "Only the project folder has a history, and this path is outside of it");
  return NULL;
}

JsonObject *
bj_tool_git_diff (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *given = bj_json_get_string (arguments, "path");
  g_autofree char *path = dup_inner_path (self, given != NULL ? given : "", error);
  g_autoptr(GBytes) patch = NULL;
  JsonObject *result;
  gboolean cut = FALSE;

  if (path == NULL)
    return NULL;
  patch = bj_verbs_git_diff (self, path, &cut, error);
  if (patch == NULL)
    return NULL;
  result = json_object_new ();
  cut |= bj_result_set_bytes (self, result, "diff", g_bytes_get_data (patch, NULL), g_bytes_get_size (patch));
  json_object_set_boolean_member (result, "truncated", cut);
  if (g_bytes_get_size (patch) == 0)
    json_object_set_string_member (result, "message", "Nothing differs from the project's newest commit");
  return result;
}

static JsonObject *
commit_entry (GVariant *entry)
{
  JsonObject *object = json_object_new ();
  GVariantDict dict;
  guint64 time = 0;
  g_autoptr(GDateTime) when = NULL;
  g_autofree char *shown = NULL;

  g_variant_dict_init (&dict, entry);
  copy_text (&dict, object, "commit");
  copy_text (&dict, object, "subject");
  copy_text (&dict, object, "verdict");
  g_variant_dict_lookup (&dict, "time", "t", &time);
  g_variant_dict_clear (&dict);
  when = g_date_time_new_from_unix_utc ((gint64) MIN (time, G_MAXINT32));
  shown = g_date_time_format (when, "%Y-%m-%dT%H:%M:%SZ");
  json_object_set_string_member (object, "time", shown);
  return object;
}

JsonObject *
bj_tool_git_log (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(GVariant) commits = NULL;
  JsonObject *result;
  gint64 count = COMMITS_DEFAULT;

  bj_json_get_int (arguments, "count", &count);
  commits = bj_verbs_git_log (self, (guint) CLAMP (count, 1, 100), error);
  if (commits == NULL)
    return NULL;
  result = json_object_new ();
  json_object_set_array_member (result, "commits", convert_all (commits, commit_entry));
  return result;
}
