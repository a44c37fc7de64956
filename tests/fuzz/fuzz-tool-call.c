/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fuzz.h"

#include "bj-json.h"
#include "bj-tool-call.h"

#include <string.h>

static const char *const known[] = { "run", "finish", NULL };

static void
check (GPtrArray *calls)
{
  for (guint i = 0; i < calls->len; i++)
    {
      const BjToolCall *call = g_ptr_array_index (calls, i);

      g_assert_nonnull (call->name);
      g_assert_true (g_utf8_validate (call->name, -1, NULL));
      g_assert_true ((call->arguments == NULL) == (call->problem != NULL));
    }
}

/* The input is what a model said, and once more the tool_calls of its answer. */
int
LLVMFuzzerTestOneInput (const guint8 *data, size_t size)
{
  g_autofree char *text = g_utf8_make_valid ((const char *) data, (gssize) size);
  g_autoptr(GPtrArray) calls = bj_tool_calls_from_text (text, known);
  g_autoptr(JsonObject) object = bj_json_parse_object ((const char *) data, (gssize) size, NULL);
  JsonArray *array = object ? bj_json_get_array (object, "tool_calls") : NULL;

  g_assert_cmpuint (calls->len, <=, 64);
  check (calls);
  if (array != NULL)
    {
      g_autoptr(GPtrArray) native = bj_tool_calls_from_array (array);

      g_assert_cmpuint (native->len, ==, json_array_get_length (array));
      check (native);
    }
  return 0;
}
