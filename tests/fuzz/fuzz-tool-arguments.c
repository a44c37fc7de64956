/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fuzz.h"

#include "bj-agent-private.h"

#include "bj-json.h"

static BjToolbox *
get_toolbox (void)
{
  static BjToolbox *toolbox;

  if (toolbox == NULL)
    {
      g_autofree const char **names = bj_tools_get_names ();
      g_autoptr(GError) error = NULL;

      toolbox = bj_toolbox_load (AGENT_DATA "/tools.json", names, &error);
      g_assert_no_error (error);
    }
  return toolbox;
}

static void
check_member (JsonObject *object, const char *name, JsonNode *node, gpointer tool)
{
  if (JSON_NODE_HOLDS_ARRAY (node))
    for (guint i = 0; i < json_array_get_length (json_node_get_array (node)); i++)
      g_assert_nonnull (json_array_get_string_element (json_node_get_array (node), i));
  else
    g_assert_true (JSON_NODE_HOLDS_VALUE (node));
}

/* The input is what a model gave as arguments: every tool is called with it. */
int
LLVMFuzzerTestOneInput (const guint8 *data, size_t size)
{
  g_autoptr(JsonObject) given = bj_json_parse_object ((const char *) data, (gssize) size, NULL);
  const char *const *names = bj_toolbox_get_names (get_toolbox ());

  for (guint i = 0; given != NULL && names[i] != NULL; i++)
    {
      g_auto(GStrv) ignored = NULL;
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) checked = bj_toolbox_check (get_toolbox (), names[i], given, &ignored, &error);

      g_assert_true ((checked == NULL) == (error != NULL));
      if (checked != NULL)
        json_object_foreach_member (checked, check_member, NULL);
    }
  return 0;
}
