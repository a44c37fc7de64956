/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any JSON object as the arguments of each tool: what comes through is of the tool's own arguments, in their types. */

#include "fuzz.h"

#include "bj-agent-private.h"
#include "bj-json.h"
#include "bj-toolbox.h"

static BjToolbox *
get_toolbox (void)
{
  static BjToolbox *toolbox;
  g_autofree const char **names = NULL;
  g_autoptr(GError) error = NULL;

  if (toolbox != NULL)
    return toolbox;
  names = bj_tools_get_names ();
  toolbox = bj_toolbox_load (AGENT_DATA "/tools.json", names, &error);
  g_assert_no_error (error);
  return toolbox;
}

static void
check_types (JsonObject *arguments)
{
  g_autoptr(GList) keys = json_object_get_members (arguments);

  for (GList *l = keys; l != NULL; l = l->next)
    {
      JsonNode *value = json_object_get_member (arguments, l->data);

      g_assert_true (g_utf8_validate (l->data, -1, NULL));
      if (!JSON_NODE_HOLDS_VALUE (value))
        g_assert_true (JSON_NODE_HOLDS_ARRAY (value));
      else if (json_node_get_value_type (value) == G_TYPE_STRING)
        g_assert_true (g_utf8_validate (json_node_get_string (value), -1, NULL));
    }
}

int
LLVMFuzzerTestOneInput (const guint8 *data, size_t size)
{
  BjToolbox *toolbox = get_toolbox ();
  g_autoptr(JsonObject) arguments = bj_json_parse_object ((const char *) data, (gssize) size, NULL);
  const char *const *names = bj_toolbox_get_names (toolbox);

  for (guint i = 0; arguments != NULL && names[i] != NULL; i++)
    {
      g_auto(GStrv) ignored = NULL;
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) checked = bj_toolbox_check (toolbox, names[i], arguments, &ignored, &error);

      g_assert_true ((checked == NULL) == (error != NULL));
      if (checked == NULL)
        continue;
      g_assert_cmpuint (json_object_get_size (checked) + g_strv_length (ignored), <=, json_object_get_size (arguments));
      check_types (checked);
    }
  return 0;
}
