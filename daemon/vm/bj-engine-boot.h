/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_engine_forget_dead:
 * @root_dir: the embedded engine's folder, with no daemon on it
 *
 * libvirt keeps which machines run, with their process numbers, in a folder that it believes to be empty after a boot. The embedded
 * engine's lies on the disk: after a power cut, or in a copy of the state folder, it names processes that are gone, or somebody
 * else's by now, and libvirt would end them. So it is removed unless it was written in this boot and in this very folder.
 *
 * Returns: whether it could be done
 */
gboolean bj_engine_forget_dead (const char *root_dir, GError **error);

G_END_DECLS
