/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes as an answer of QEMU's guest agent, or of its monitor. */

#include "bj-qmp.h"
#include "fuzz.h"

#include <string.h>

#define SIZE_MAX_REPLY 4096
#define DEPTH_MAX 64

static guint
depth_of (JsonNode *node)
{
  guint deepest = 0;

  if (JSON_NODE_HOLDS_OBJECT (node))
    {
      g_autoptr(GList) members = json_object_get_values (json_node_get_object (node));

      for (GList *l = members; l != NULL; l = l->next)
        deepest = MAX (deepest, 1 + depth_of (l->data));
    }
  else if (JSON_NODE_HOLDS_ARRAY (node))
    {
      JsonArray *array = json_node_get_array (node);

      for (guint i = 0; i < json_array_get_length (array); i++)
        deepest = MAX (deepest, 1 + depth_of (json_array_get_element (array, i)));
    }
  return deepest;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autofree char *text = size > 0 ? g_strndup ((const char *) data, size) : g_strdup ("");
  g_autoptr(JsonNode) root = bj_qmp_parse (text, SIZE_MAX_REPLY);

  if (root == NULL)
    return 0;
  g_assert_cmpuint (strlen (text), <=, SIZE_MAX_REPLY);
  g_assert_cmpuint (depth_of (root), <=, DEPTH_MAX);
  if (JSON_NODE_HOLDS_OBJECT (root))
    {
      /* Back out as arguments of a command: one line of JSON again. */
      g_autofree char *json = bj_qmp_build_command ("x", json_node_dup_object (root));

      g_assert_null (strchr (json, '\n'));
    }
  return 0;
}
