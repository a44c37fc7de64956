/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-json.h"

#include "bj-error.h"

#include <math.h>
#include <string.h>

static gboolean
read_unit (const char *text, gsize left, guint *unit)
{
  *unit = 0;
  if (left < 6 || text[0] != '\\' || text[1] != 'u')
    return FALSE;
  for (guint i = 2; i < 6; i++)
    {
      int digit = g_ascii_xdigit_value (text[i]);

      if (digit < 0)
        return FALSE;
      *unit = *unit * 16 + (guint) digit;
    }
  return TRUE;
}

/* How long the escape at @text is, or 0 when JSON has no such one; json-glib would take C's, and halves of surrogate pairs. */
static gsize
escape_length (const char *text, gsize left)
{
  guint unit, second;

  if (left >= 2 && text[1] != '\0' && strchr ("\"\\/bfnrt", text[1]) != NULL)
    return 2;
  if (!read_unit (text, left, &unit) || unit == 0 || (unit >= 0xdc00 && unit <= 0xdfff))
    return 0;
  if (unit < 0xd800 || unit > 0xdbff)
    return 6;
  return read_unit (text + 6, left - 6, &second) && second >= 0xdc00 && second <= 0xdfff ? 12 : 0;
}

/* The end of the string whose opening quote stands before @at, or 0. */
static gsize
string_end (const char *text, gsize length, gsize at)
{
  while (at < length && text[at] != '"')
    {
      gsize step = text[at] == '\\' ? escape_length (text + at, length - at) : 1;

      if (step == 0 || (guchar) text[at] < ' ')
        return 0;
      at += step;
    }
  return at < length ? at : 0;
}

/* @members: (out): how many keys are written */
static gboolean
scan (const char *text, gsize length, guint max_depth, guint max_values, guint *values, guint *members, GError **error)
{
  guint depth = 0, found = 1;

  *members = 0;

  for (gsize i = 0; i < length; i++)
    {
      char c = text[i];

      if (c == '"')
        {
          i = string_end (text, length, i + 1);
          if (i == 0)
            return bj_error_set (error, BJ_ERROR_INVALID, "A JSON string does not end, or has something in it that is not allowed there");
        }
      else if (c == '\0' || strchr ("{}[]:, \t\r\n0123456789+-.eEtrufalsn", c) == NULL)
        {
          return bj_error_set (error, BJ_ERROR_INVALID, "Byte 0x%02x at %" G_GSIZE_FORMAT " does not belong into JSON",
                               (guint) (guchar) c, i);
        }
      if (c == '{' || c == '[')
        depth++;
      if ((c == '}' || c == ']') && depth > 0)
        depth--;
      if (c == ',' || c == '{' || c == '[')
        found++;
      if (c == ':')
        ++*members;
      if (depth > max_depth || found > max_values)
        return bj_error_set (error, BJ_ERROR_LIMIT, "JSON with more than %u levels or %u values", max_depth, max_values);
    }
  if (values != NULL)
    *values = found;
  return TRUE;
}

gboolean
bj_json_scan (const char *text, gsize length, guint max_depth, guint max_values, guint *values, GError **error)
{
  guint members;

  return scan (text, length, max_depth, max_values, values, &members, error);
}

/* How many keys there are at all depths; no deeper than a parser within bounds went. */
static guint
count_members (JsonNode *node)
{
  guint count = 0;

  if (JSON_NODE_HOLDS_OBJECT (node))
    {
      g_autoptr(GList) values = json_object_get_values (json_node_get_object (node));

      for (GList *l = values; l != NULL; l = l->next)
        count += 1 + count_members (l->data);
    }
  else if (JSON_NODE_HOLDS_ARRAY (node))
    {
      JsonArray *array = json_node_get_array (node);

      for (guint i = 0; i < json_array_get_length (array); i++)
        count += count_members (json_array_get_element (array, i));
    }
  return count;
}

JsonObject *
bj_json_parse (const char *text, gsize length, guint max_depth, guint max_values, GError **error)
{
  g_autoptr(JsonParser) parser = json_parser_new_immutable ();
  g_autoptr(GError) local_error = NULL;
  JsonNode *root;
  guint members;

  if (!scan (text, length, max_depth, max_values, NULL, &members, error))
    return NULL;
  if (!json_parser_load_from_data (parser, text, (gssize) length, &local_error))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "Not JSON");
      return NULL;
    }
  root = json_parser_get_root (parser);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "Not a JSON object");
      return NULL;
    }
  /* Readers differ on which of two counts, so that what one of them verifies is not what another one shows. */
  if (count_members (root) != members)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "JSON with a key that stands twice");
      return NULL;
    }
  return json_node_dup_object (root);
}

static void write_node (GString *out, JsonNode *node);

static void
write_string (GString *out, const char *text)
{
  g_string_append_c (out, '"');
  for (const char *p = text; *p != '\0'; p++)
    {
      if (*p == '"' || *p == '\\')
        g_string_append_printf (out, "\\%c", *p);
      else if (*p == '\n')
        g_string_append (out, "\\n");
      else if (*p == '\t')
        g_string_append (out, "\\t");
      else if ((guchar) *p < ' ')
        g_string_append_printf (out, "\\u%04x", (guint) (guchar) *p);
      else
        g_string_append_c (out, *p);
    }
  g_string_append_c (out, '"');
}

static void
write_double (GString *out, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];

  if (!isfinite (value) || fabs (value) < 1e-300)
    value = 0;
  if (fabs (value) < 1e15 && floor (value) == value)
    {
      g_string_append_printf (out, "%" G_GINT64_FORMAT, (gint64) value);
      return;
    }
  for (int digits = 1; digits <= 17; digits++)
    {
      char format[8];

      g_snprintf (format, sizeof format, "%%.%dg", digits);
      g_ascii_formatd (buffer, sizeof buffer, format, value);
      if (g_ascii_strtod (buffer, NULL) >= value && g_ascii_strtod (buffer, NULL) <= value)
        break;
    }
  g_string_append (out, buffer);
}

static int
compare_keys (gconstpointer a, gconstpointer b)
{
  return strcmp (a, b);
}

static void
write_object (GString *out, JsonObject *object)
{
  g_autoptr(GList) keys = g_list_sort (json_object_get_members (object), compare_keys);

  g_string_append_c (out, '{');
  for (GList *l = keys; l != NULL; l = l->next)
    {
      if (l != keys)
        g_string_append_c (out, ',');
      write_string (out, l->data);
      g_string_append_c (out, ':');
      write_node (out, json_object_get_member (object, l->data));
    }
  g_string_append_c (out, '}');
}

static void
write_array (GString *out, JsonArray *array)
{
  g_string_append_c (out, '[');
  for (guint i = 0; i < json_array_get_length (array); i++)
    {
      if (i > 0)
        g_string_append_c (out, ',');
      write_node (out, json_array_get_element (array, i));
    }
  g_string_append_c (out, ']');
}

static void
write_value (GString *out, JsonNode *node)
{
  if (json_node_get_value_type (node) == G_TYPE_STRING)
    write_string (out, json_node_get_string (node));
  else if (json_node_get_value_type (node) == G_TYPE_BOOLEAN)
    g_string_append (out, json_node_get_boolean (node) ? "true" : "false");
  else if (json_node_get_value_type (node) == G_TYPE_INT64)
    g_string_append_printf (out, "%" G_GINT64_FORMAT, json_node_get_int (node));
  else
    write_double (out, json_node_get_double (node));
}

static void
write_node (GString *out, JsonNode *node)
{
  switch (json_node_get_node_type (node))
    {
    case JSON_NODE_OBJECT:
      write_object (out, json_node_get_object (node));
      break;
    case JSON_NODE_ARRAY:
      write_array (out, json_node_get_array (node));
      break;
    case JSON_NODE_VALUE:
      write_value (out, node);
      break;
    case JSON_NODE_NULL:
    default:
      g_string_append (out, "null");
      break;
    }
}

char *
bj_json_to_canonical (JsonObject *object)
{
  g_autoptr(GString) out = g_string_new (NULL);

  write_object (out, object);
  return g_string_free (g_steal_pointer (&out), FALSE);
}

static JsonNode *
get_value (JsonObject *object, const char *key)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, key) : NULL;

  return node != NULL && JSON_NODE_HOLDS_VALUE (node) ? node : NULL;
}

const char *
bj_json_get_string (JsonObject *object, const char *key, const char *fallback)
{
  JsonNode *node = get_value (object, key);

  return node != NULL && json_node_get_value_type (node) == G_TYPE_STRING ? json_node_get_string (node) : fallback;
}

gint64
bj_json_get_int (JsonObject *object, const char *key, gint64 fallback)
{
  JsonNode *node = get_value (object, key);
  double value;

  if (node == NULL)
    return fallback;
  if (json_node_get_value_type (node) == G_TYPE_INT64)
    return json_node_get_int (node);
  if (json_node_get_value_type (node) != G_TYPE_DOUBLE)
    return fallback;
  /* 3.0 is written as 3 in the form that is signed: it must not read as something else. */
  value = json_node_get_double (node);
  return fabs (value) < 1e15 && !(floor (value) < value) ? (gint64) value : fallback;
}

double
bj_json_get_double (JsonObject *object, const char *key, double fallback)
{
  JsonNode *node = get_value (object, key);

  if (node == NULL)
    return fallback;
  if (json_node_get_value_type (node) != G_TYPE_INT64 && json_node_get_value_type (node) != G_TYPE_DOUBLE)
    return fallback;
  return json_node_get_double (node);
}

gboolean
bj_json_get_boolean (JsonObject *object, const char *key)
{
  JsonNode *node = get_value (object, key);

  return node != NULL && json_node_get_value_type (node) == G_TYPE_BOOLEAN && json_node_get_boolean (node);
}

JsonObject *
bj_json_get_object (JsonObject *object, const char *key)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, key) : NULL;

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

JsonArray *
bj_json_get_array (JsonObject *object, const char *key)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, key) : NULL;

  return node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

gboolean
bj_json_has (JsonObject *object, const char *key)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, key) : NULL;

  return node != NULL && !JSON_NODE_HOLDS_NULL (node);
}

JsonObject *
bj_json_array_get_object (JsonArray *array, guint index)
{
  JsonNode *node = json_array_get_element (array, index);

  return JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

const char *
bj_json_array_get_string (JsonArray *array, guint index)
{
  JsonNode *node = json_array_get_element (array, index);

  if (!JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) != G_TYPE_STRING)
    return NULL;
  return json_node_get_string (node);
}

void
bj_json_copy_member (JsonObject *to, JsonObject *from, const char *key)
{
  JsonNode *node = from != NULL ? json_object_get_member (from, key) : NULL;

  if (node != NULL)
    json_object_set_member (to, key, json_node_copy (node));
  else
    json_object_set_null_member (to, key);
}

void
bj_json_set_string (JsonObject *object, const char *key, const char *value)
{
  if (value != NULL)
    json_object_set_string_member (object, key, value);
  else
    json_object_set_null_member (object, key);
}

void
bj_json_set_seconds (JsonObject *object, const char *key, double seconds)
{
  json_object_set_double_member (object, key, isfinite (seconds) ? round (seconds * 1000) / 1000 : 0);
}
