/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-json-bounded.h"

#include <string.h>

#define MAX_NESTING 8

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
bj_json_parse_bounded (const char *text, gsize max_size)
{
  gsize size = strlen (text);
  g_autoptr(JsonParser) parser = json_parser_new_immutable ();
  JsonNode *root;

  if (size > max_size || !is_shallow (text, size) || !json_parser_load_from_data (parser, text, (gssize) size, NULL))
    return NULL;
  root = json_parser_get_root (parser);
  return root != NULL ? json_node_ref (root) : NULL;
}
