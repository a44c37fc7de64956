/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/** BjDigestProgress: @fraction: 0 to 1 */
typedef void (*BjDigestProgress) (double fraction, gpointer user_data);

/**
 * bj_digest_file:
 * @path: a file, not a link
 * @progress: (nullable): told after each MiB
 *
 * Reads every byte. Blocks.
 *
 * Returns: (transfer full): "sha256:HEX", or %NULL with an error that names @path
 */
char *bj_digest_file (const char *path, BjDigestProgress progress, gpointer user_data, GCancellable *cancellable,
                      GError **error);

G_END_DECLS
