/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-qmp.h"

#include <string.h>

#define MAX_NESTING 8

char *
bj_qmp_build_command (const char *command, JsonObject *arguments)
{
  g_autoptr(JsonNode) root = json_node_new (JSON_NODE_OBJECT);
  JsonObject *object = json_object_new ();

  json_object_set_string_member (object, "execute", command);
  if (arguments != NULL)
    json_object_set_object_member (object, "arguments", arguments);
  json_node_take_object (root, object);
  return json_to_string (root, FALSE);
}

static gboolean
is_shallow (const char *json, gsize size)
{
  guint depth = 0;
  gboolean in_string = FALSE;

  for (gsize i = 0; i < size; i++)
    {
      if (in_string && json[i] == '\\')
        i++;
      else if (json[i] == '"')
        in_string = !in_string;
      else if (!in_string && (json[i] == '{' || json[i] == '['))
        depth++;
      else if (!in_string && (json[i] == '}' || json[i] == ']'))
        depth--;
      if (depth > MAX_NESTING)
        return FALSE;
    }
  return TRUE;
}

JsonNode *
bj_qmp_parse (const char *text, gsize max_size)
{
  gsize size = strlen (text);
  g_autoptr(JsonParser) parser = json_parser_new_immutable ();
  JsonNode *root;

  if (size > max_size || !is_shallow (text, size) || !json_parser_load_from_data (parser, text, (gssize) size, NULL))
    return NULL;
  root = json_parser_get_root (parser);
  return root != NULL ? json_node_ref (root) : NULL;
}
