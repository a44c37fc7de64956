/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>
#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/** bj_output_is_terminal: @fd: 1 or 2 */
gboolean bj_output_is_terminal (int fd);
/** bj_output_use_colour: Whether @fd is a terminal that shows colours and NO_COLOR is not set. */
gboolean bj_output_use_colour (int fd);
/** bj_output_get_width: Returns: columns of the terminal at @fd, 80 if it is none */
guint bj_output_get_width (int fd);

/** bj_output_line: Writes one line to standard output as UTF-8, whatever the locale. */
void bj_output_line (const char *format, ...) G_GNUC_PRINTF (1, 2);
/** bj_output_note: Writes one line to standard error; what is not ours in it was escaped before. */
void bj_output_note (const char *format, ...) G_GNUC_PRINTF (1, 2);
/** bj_output_text: Writes @text to standard output as it is. */
void bj_output_text (const char *text);

/**
 * bj_output_finish:
 *
 * Returns: whether everything that was written reached standard output
 */
gboolean bj_output_finish (GError **error);

/**
 * bj_output_table:
 * @titles: column titles
 * @rows: (element-type GStrv): one cell a title; cells are escaped here
 *
 * Aligned and with titles on a terminal; elsewhere tabs and no titles, for scripts.
 */
void bj_output_table (const char *const *titles, GPtrArray *rows);

/** bj_output_dup_row: Returns: (transfer full): a row of @n cells for a table; %NULL cells become "" */
char **bj_output_dup_row (const char *const *cells, guint n);

/** bj_output_format_table: The same as text. Pure. @width: columns it may take */
char *bj_output_format_table (const char *const *titles, GPtrArray *rows, gboolean terminal, gboolean colour,
                              guint width);

/** bj_output_cut: Returns: (transfer full): the beginning of @text that takes at most @columns on a terminal, with … */
char *bj_output_cut (const char *text, guint columns);
/** bj_output_format_time: @seconds: since 1970, 0 is unknown. Returns: (transfer full): local time */
char *bj_output_format_time (gint64 seconds);

/** bj_output_format_size: Returns: (transfer full): for people, "602.1 MiB", with an ordinary space */
char *bj_output_format_size (guint64 bytes);

/** bj_output_json: (transfer full) @node: prints it as the one JSON value of this program */
void bj_output_json (JsonNode *node);
/**
 * bj_output_object_to_json:
 * @proxy: a generated proxy; its cached properties become members: StartedAt is started_at
 * @id_key: (nullable): a member for the last element of its path
 */
JsonNode *bj_output_object_to_json (GDBusProxy *proxy, const char *id_key);
/** bj_output_list_to_json: @proxies: (element-type GDBusProxy): an array of them */
JsonNode *bj_output_list_to_json (GPtrArray *proxies, const char *id_key);
/** bj_json_get_text: Returns: (transfer none) (nullable): @object's member if it is a string; @object may be %NULL */
const char *bj_json_get_text (JsonObject *object, const char *key);
/** bj_json_get_number: Returns: @object's member if it is a number, else @fallback; @object may be %NULL */
double bj_json_get_number (JsonObject *object, const char *key, double fallback);

/** bj_output_to_snake: "StartedAt" to "started_at" */
char *bj_output_to_snake (const char *name);

G_END_DECLS
