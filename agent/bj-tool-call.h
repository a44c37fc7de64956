/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* One call the model wants. Pure: nothing here knows what the tools do. */
typedef struct
{
  char *name;            /* may be empty, may be no tool at all */
  JsonObject *arguments; /* (nullable) when @problem is set */
  char *problem;         /* (nullable): why this call cannot be understood; for the model */
} BjToolCall;

void bj_tool_call_free (BjToolCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjToolCall, bj_tool_call_free)

/**
 * bj_tool_calls_from_array:
 * @array: "tool_calls" of an answer
 *
 * Returns: (transfer full) (element-type BjToolCall): one for each element, in order
 */
GPtrArray *bj_tool_calls_from_array (JsonArray *array);

/**
 * bj_tool_calls_from_text:
 * @text: what the model said
 * @known: the tools' names
 *
 * Calls that a model wrote into its prose: <tool_call>{…}</tool_call>, a fenced block that is such an object or a list
 * of them, or an object that stands alone at a line's beginning. In tags every name counts; elsewhere only that of a
 * tool does, because prose may show JSON that is no call. At most 64 are taken.
 *
 * Returns: (transfer full) (element-type BjToolCall): perhaps empty
 */
GPtrArray *bj_tool_calls_from_text (const char *text, const char *const *known);

G_END_DECLS
