/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_name_is_valid:
 * @name: (nullable): a project, image or recipe name from anywhere
 *
 * Returns: whether it matches [a-z0-9][a-z0-9._-]{0,62}
 */
gboolean bj_name_is_valid (const char *name);

/**
 * bj_name_to_path_element:
 * @name: a valid name
 *
 * Escapes what a D-Bus object path may not hold: "a.b" becomes "a_2eb".
 *
 * Returns: (transfer full): one path element
 */
char *bj_name_to_path_element (const char *name);

/**
 * bj_name_new_id:
 *
 * Returns: (transfer full): eight random characters of [a-z2-7], a session's id
 */
char *bj_name_new_id (void);

/**
 * bj_id_is_valid:
 * @id: (nullable): a session id from anywhere
 *
 * Returns: whether it has the form that bj_name_new_id() makes
 */
gboolean bj_id_is_valid (const char *id);

G_END_DECLS
