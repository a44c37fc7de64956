/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_tar_write:
 * @fd: where to; not closed
 * @folder: the folder in the archive that everything is in
 * @names: files' names in it; with @folder at most 99 ASCII characters
 * @contents: (element-type GBytes): one a name
 *
 * Writes a tar archive (ustar) compressed with gzip.
 */
gboolean bj_tar_write (int fd, const char *folder, const char *const *names, GPtrArray *contents, GError **error);

G_END_DECLS
