/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_remove_tree:
 * @path: a file, link or folder of ours; nothing there is fine
 * @error: return location for the first failure; what can be removed is removed all the same
 *
 * Removes it with all below. Links are removed, not followed; nothing on another file system is touched; names and depth may
 * have been chosen by somebody hostile.
 *
 * Returns: whether nothing is left
 */
gboolean bj_remove_tree (const char *path, GError **error);

G_END_DECLS
