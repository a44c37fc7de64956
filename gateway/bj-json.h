/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* JSON from strangers: depth and types are checked here, so that nobody else has to. Shared by gateway and agent. */

#define BJ_JSON_MAX_DEPTH 64

/**
 * bj_json_depth_is_sane:
 * @text: bytes
 *
 * json-glib's parser recurses; this scan keeps it from being led deeper than BJ_JSON_MAX_DEPTH.
 */
gboolean bj_json_depth_is_sane (const char *text, gsize length);

/**
 * bj_json_parse_object:
 * @text: bytes, need not end in NUL
 * @length: bytes, or -1 if @text ends in NUL
 *
 * Returns: (transfer full): the object, or %NULL with BJ_ERROR_INVALID when it is no JSON object or nests too deep
 */
JsonObject *bj_json_parse_object (const char *text, gssize length, GError **error);

/** bj_json_get_string: Returns: (nullable) (transfer none): the member if there is one and it is a string */
const char *bj_json_get_string (JsonObject *object, const char *name);
/** bj_json_get_int: Takes whole numbers, also when written as 3.0. Returns: whether there was one */
gboolean bj_json_get_int (JsonObject *object, const char *name, gint64 *value);
/** bj_json_get_bool: Returns: the member, @fallback if it is absent or something else */
gboolean bj_json_get_bool (JsonObject *object, const char *name, gboolean fallback);
/** bj_json_get_object: Returns: (nullable) (transfer none) */
JsonObject *bj_json_get_object (JsonObject *object, const char *name);
/** bj_json_get_array: Returns: (nullable) (transfer none) */
JsonArray *bj_json_get_array (JsonObject *object, const char *name);
/** bj_json_array_get_object: Returns: (nullable) (transfer none): element @i if it is an object */
JsonObject *bj_json_array_get_object (JsonArray *array, guint i);

/** bj_json_to_string: Returns: (transfer full): one line */
char *bj_json_to_string (JsonObject *object);
char *bj_json_node_to_string (JsonNode *node);

G_END_DECLS
