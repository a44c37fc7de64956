/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_state_dir_open:
 * @path: absolute; made with mode 0711 if it is missing, with the folders inside it
 *
 * Takes STATE/lock: one daemon for one folder. Fails clearly when the folder cannot be written, when its path is too long for
 * the sockets below it, or when another daemon has it.
 *
 * Returns: the lock's fd, held until it is closed; or -1
 */
int bj_state_dir_open (const char *path, GError **error);

/** bj_state_dir_check_length: Whether every unix socket below @path fits into 107 bytes. Pure. */
gboolean bj_state_dir_check_length (const char *path, GError **error);

/** bj_state_dir_get_free: Returns: bytes that are free there */
guint64 bj_state_dir_get_free (const char *path);

/** bj_state_dir_has_sessions: Whether there is one. */
gboolean bj_state_dir_has_sessions (const char *path);
/** bj_state_dir_check_database: Fails if the database is missing or empty beside state that it should know of. */
gboolean bj_state_dir_check_database (const char *path, GError **error);

G_END_DECLS
