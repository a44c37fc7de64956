/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-json.h"

#include <string.h>

char *
bj_path_resolve (BjAgent *self, const char *path)
{
  if (g_path_is_absolute (path))
    return g_strdup (path);
  if (*path == '\0' || g_str_equal (path, "."))
    return g_strdup (self->task.folder);
  return g_build_filename (self->task.folder, path, NULL);
}

JsonObject *
bj_result_ok (void)
{
  JsonObject *result = json_object_new ();

  json_object_set_boolean_member (result, "ok", TRUE);
  return result;
}

gboolean
bj_result_set_bytes (BjAgent *self, JsonObject *result, const char *name, const char *bytes, gsize length)
{
  g_autofree char *text = g_utf8_make_valid (bytes ? bytes : "", (gssize) length);
  g_autofree char *shorter = bj_text_shorten (text, self->result_bytes / 2, self->result_bytes / 2);

  json_object_set_string_member (result, name, shorter);
  return strlen (shorter) < strlen (text);
}

static gboolean
set_stream (BjAgent *self, JsonObject *result, const char *name, GVariantDict *dict)
{
  g_autoptr(GVariant) value = g_variant_dict_lookup_value (dict, name, G_VARIANT_TYPE_BYTESTRING);
  gsize length = 0;
  const char *bytes = value ? g_variant_get_fixed_array (value, &length, 1) : NULL;

  return bj_result_set_bytes (self, result, name, bytes, length);
}

JsonObject *
bj_result_from_exec (BjAgent *self, GVariant *exec, guint timeout_s)
{
  JsonObject *result = json_object_new ();
  GVariantDict dict;
  gint32 exit = -1;
  guint32 signal = 0;
  gboolean timed_out = FALSE;
  gboolean truncated = FALSE;
  double duration = 0;

  g_variant_dict_init (&dict, exec);
  g_variant_dict_lookup (&dict, "exit", "i", &exit);
  g_variant_dict_lookup (&dict, "signal", "u", &signal);
  g_variant_dict_lookup (&dict, "timed-out", "b", &timed_out);
  g_variant_dict_lookup (&dict, "truncated", "b", &truncated);
  g_variant_dict_lookup (&dict, "duration", "d", &duration);
  json_object_set_int_member (result, "exit", exit);
  if (signal != 0)
    json_object_set_int_member (result, "signal", signal);
  truncated |= set_stream (self, result, "stdout", &dict);
  truncated |= set_stream (self, result, "stderr", &dict);
  json_object_set_double_member (result, "duration_s", ((double) (gint64) (duration * 1000)) / 1000);
  json_object_set_boolean_member (result, "truncated", truncated);
  if (timed_out)
    {
      g_autofree char *text = g_strdup_printf ("The command was still running after %u s; it and all it started were "
                                               "killed. Use start for programs that do not end.", timeout_s);

      json_object_set_boolean_member (result, "timed_out", TRUE);
      json_object_set_string_member (result, "message", text);
    }
  g_variant_dict_clear (&dict);
  return result;
}
