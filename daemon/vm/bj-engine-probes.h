/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_engine_end_probes:
 * @root_dir: the embedded engine's folder, with no daemon on it
 *
 * Ends the QEMU processes that libvirt asks for their abilities, and removes their folders: a daemon that was killed meanwhile
 * leaves them behind. Blocks until they are gone, at most a few seconds. What cannot be ended is logged.
 */
void bj_engine_end_probes (const char *root_dir);

G_END_DECLS
