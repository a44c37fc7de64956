/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* The tools' definitions (data/agent/tools.json): what the model is told, and what its arguments are checked against. */
typedef struct _BjToolbox BjToolbox;

/**
 * bj_toolbox_load:
 * @path: a JSON file {"tools": […]} in the form of Ollama's "tools"
 * @implemented: the names there is code for; a tool in the file without code, and the reverse, is an error
 */
BjToolbox *bj_toolbox_load (const char *path, const char *const *implemented, GError **error);
void bj_toolbox_free (BjToolbox *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjToolbox, bj_toolbox_free)

/** bj_toolbox_get_names: Returns: (transfer none): in the file's order */
const char *const *bj_toolbox_get_names (BjToolbox *self);
/** bj_toolbox_get_json: Returns: (transfer none): for a request's "tools" */
JsonArray *bj_toolbox_get_json (BjToolbox *self);
/** bj_toolbox_describe: Returns: (transfer full): the tools as text, for models that have no tool calls of their own */
char *bj_toolbox_describe (BjToolbox *self);

/**
 * bj_toolbox_check:
 * @name: a tool's name as the model wrote it
 * @arguments: what the model gave
 * @ignored: (out): (transfer full): arguments that the tool has not, for a hint to the model; may be empty
 *
 * Numbers written as text and the like are forgiven.
 *
 * Returns: (transfer full): arguments of the right types only, or %NULL with a message the model can act on
 */
JsonObject *bj_toolbox_check (BjToolbox *self, const char *name, JsonObject *arguments, char ***ignored,
                              GError **error);

G_END_DECLS
