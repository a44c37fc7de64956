/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * JSON from strangers and JSON to sign. json-glib's parser recurses, takes comments and keeps quiet about double keys; these keep it inside
 * bounds. Getters answer a fallback for what is missing or of another type.
 */

/**
 * bj_json_scan:
 * @values: (out) (optional): how many values there are at most
 *
 * Whether @text may be given to a parser: no stray characters, depth and number of values within bounds.
 */
gboolean bj_json_scan (const char *text, gsize length, guint max_depth, guint max_values, guint *values,
                       GError **error);
/** bj_json_parse: Returns: (transfer full): an object within the bounds of bj_json_scan(), in which no key stands twice */
JsonObject *bj_json_parse (const char *text, gsize length, guint max_depth, guint max_values, GError **error);
/** bj_json_to_canonical: Keys sorted by bytes, no spaces, shortest numbers. Parsing and writing it again gives the same bytes. */
char *bj_json_to_canonical (JsonObject *object);

const char *bj_json_get_string (JsonObject *object, const char *key, const char *fallback);
gint64 bj_json_get_int (JsonObject *object, const char *key, gint64 fallback);
double bj_json_get_double (JsonObject *object, const char *key, double fallback);
gboolean bj_json_get_boolean (JsonObject *object, const char *key);
/** bj_json_get_object: Returns: (transfer none) (nullable) */
JsonObject *bj_json_get_object (JsonObject *object, const char *key);
/** bj_json_get_array: Returns: (transfer none) (nullable) */
JsonArray *bj_json_get_array (JsonObject *object, const char *key);
gboolean bj_json_has (JsonObject *object, const char *key); /* and it is not null */
/** bj_json_array_get_object: Returns: (transfer none) (nullable) */
JsonObject *bj_json_array_get_object (JsonArray *array, guint index);
/** bj_json_array_get_string: Returns: (transfer none) (nullable) */
const char *bj_json_array_get_string (JsonArray *array, guint index);
/** bj_json_copy_member: Puts a copy of @from's @key into @to, null when it is not there. */
void bj_json_copy_member (JsonObject *to, JsonObject *from, const char *key);
/** bj_json_set_string: null for %NULL */
void bj_json_set_string (JsonObject *object, const char *key, const char *value);
/** bj_json_set_seconds: rounded to milliseconds */
void bj_json_set_seconds (JsonObject *object, const char *key, double seconds);

G_END_DECLS
