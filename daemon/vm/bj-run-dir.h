/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_run_dir_create:
 * @path: must not exist; its parent must
 * @uid: the machine's; as a group it may enter and read, but only root makes files there
 */
gboolean bj_run_dir_create (const char *path, uid_t uid, GError **error);

/**
 * bj_run_dir_remove:
 *
 * Removes the folder and all in it without following links or entering other file systems: an escaped machine may have
 * written there. A folder that does not exist is success.
 */
gboolean bj_run_dir_remove (const char *path, GError **error);

G_END_DECLS
