/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-json.h"

#include "bj-error.h"

#include <string.h>

gboolean
bj_json_depth_is_sane (const char *text, gsize length)
{
  guint depth = 0;
  gboolean quoted = FALSE;

  for (gsize i = 0; i < length; i++)
    {
      if (quoted && text[i] == '\\')
        i++;
      else if (text[i] == '"')
        quoted = !quoted;
      else if (!quoted && (text[i] == '[' || text[i] == '{'))
        depth++;
      else if (!quoted && (text[i] == ']' || text[i] == '}') && depth > 0)
        depth--;
      if (depth > BJ_JSON_MAX_DEPTH)
        return FALSE;
    }
  return TRUE;
}

/*
 * json-glib takes comments, bare words and single quotes as well; inside those the scan above could be led astray. An
 * object of ours begins with a brace, and the only characters outside strings are those of JSON's own tokens.
 */
static gboolean
tokens_are_json (const char *text, gsize length)
{
  gboolean quoted = FALSE;

  for (gsize i = 0; i < length; i++)
    {
      if (quoted && text[i] == '\\')
        i++;
      else if (text[i] == '"')
        quoted = !quoted;
      else if (!quoted && (text[i] == '\0' || strchr ("{}[]:, \t\r\n+-.0123456789eEtrufalsn", text[i]) == NULL))
        return FALSE;
    }
  return !quoted;
}

static gboolean
is_escape_between (const char *text, gsize i, gsize length, guint first, guint last)
{
  guint value = 0;

  if (i + 6 > length || text[i] != '\\' || text[i + 1] != 'u')
    return FALSE;
  for (gsize k = i + 2; k < i + 6; k++)
    {
      if (!g_ascii_isxdigit (text[k]))
        return FALSE;
      value = value * 16 + (guint) g_ascii_xdigit_value (text[k]);
    }
  return value >= first && value <= last;
}

/*
 * Half a surrogate pair and NUL are no text: what would become invalid UTF-8 becomes U+FFFD. json-glib 1.6 also makes
 * bytes of \u without its four digits and of octal escapes. Returns: whether there are only JSON's own escapes
 */
static gboolean
replace_bad_escapes (char *text, gsize length)
{
  for (gsize i = 0; i < length; i++)
    {
      if (text[i] != '\\')
        continue;
      if (i + 1 >= length || text[i + 1] == '\0' || strchr ("\"\\/bfnrtu", text[i + 1]) == NULL
          || (text[i + 1] == 'u' && !is_escape_between (text, i, length, 0, 0xffff)))
        return FALSE;
      if (is_escape_between (text, i, length, 0xd800, 0xdbff) && is_escape_between (text, i + 6, length, 0xdc00, 0xdfff))
        i += 11;
      else if (is_escape_between (text, i, length, 0xd800, 0xdfff) || is_escape_between (text, i, length, 0, 0))
        {
          memcpy (text + i, "\\ufffd", 6);
          i += 5;
        }
      else
        i++;
    }
  return TRUE;
}

JsonObject *
bj_json_parse_object (const char *text, gssize length, GError **error)
{
  gsize size = length < 0 ? strlen (text) : (gsize) length;
  g_autoptr(JsonParser) parser = json_parser_new ();
  g_autoptr(GError) why = NULL;
  g_autofree char *copy = NULL;
  JsonNode *root;

  if (!bj_json_depth_is_sane (text, size))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "JSON nests deeper than %d levels", BJ_JSON_MAX_DEPTH);
      return NULL;
    }
  if (size == 0 || size > G_MAXSSIZE || !tokens_are_json (text, size))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "This is not JSON");
      return NULL;
    }
  copy = g_strndup (text, size);
  if (!replace_bad_escapes (copy, size))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "This is not JSON: it has an escape that JSON has not");
      return NULL;
    }
  if (!json_parser_load_from_data (parser, copy, (gssize) size, &why))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "This is not JSON: %s", why->message);
      return NULL;
    }
  root = json_parser_get_root (parser);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "This is not a JSON object");
      return NULL;
    }
  return json_object_ref (json_node_get_object (root));
}

const char *
bj_json_get_string (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  if (node == NULL || json_node_get_value_type (node) != G_TYPE_STRING)
    return NULL;
  return json_node_get_string (node);
}

gboolean
bj_json_get_int (JsonObject *object, const char *name, gint64 *value)
{
  JsonNode *node = json_object_get_member (object, name);
  GType type = node ? json_node_get_value_type (node) : G_TYPE_INVALID;
  double number;

  if (type == G_TYPE_INT64)
    {
      *value = json_node_get_int (node);
      return TRUE;
    }
  if (type != G_TYPE_DOUBLE)
    return FALSE;
  number = json_node_get_double (node);
  if (!(number > -9e15 && number < 9e15))
    return FALSE;
  *value = (gint64) number;
  return !(number < (double) *value || number > (double) *value);
}

gboolean
bj_json_get_bool (JsonObject *object, const char *name, gboolean fallback)
{
  JsonNode *node = json_object_get_member (object, name);

  if (node == NULL || json_node_get_value_type (node) != G_TYPE_BOOLEAN)
    return fallback;
  return json_node_get_boolean (node);
}

JsonObject *
bj_json_get_object (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

JsonArray *
bj_json_get_array (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);

  return node && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

JsonObject *
bj_json_array_get_object (JsonArray *array, guint i)
{
  JsonNode *node = i < json_array_get_length (array) ? json_array_get_element (array, i) : NULL;

  return node && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

/* json-glib 1.6 writes U+001F as it is, which no other parser takes. It can only stand in a string. */
static char *
escape_rest (char *text)
{
  g_autofree char *owned = text;
  g_auto(GStrv) parts = NULL;

  if (strchr (text, 0x1f) == NULL)
    return g_steal_pointer (&owned);
  parts = g_strsplit (text, "\x1f", -1);
  return g_strjoinv ("\\u001f", parts);
}

char *
bj_json_node_to_string (JsonNode *node)
{
  return escape_rest (json_to_string (node, FALSE));
}

char *
bj_json_to_string (JsonObject *object)
{
  g_autoptr(JsonNode) node = json_node_init_object (json_node_alloc (), object);

  return escape_rest (json_to_string (node, FALSE));
}
