/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_overlay_create:
 * @path: of the new qcow2; must not exist
 * @base: absolute path of the qcow2 below it, whose format is written down explicitly
 * @uid: owner of the new file, as user and group
 */
gboolean bj_overlay_create (const char *path, const char *base, uid_t uid, GCancellable *cancellable, GError **error);

G_END_DECLS
