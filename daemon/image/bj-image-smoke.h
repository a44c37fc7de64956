/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-image-build.h"

G_BEGIN_DECLS

/**
 * bj_image_smoke_run:
 * @log: (nullable): an fd that gets what the smoke test printed
 *
 * Boots the fresh disk in a machine of its own, over an overlay, and runs the recipe's smoke test in it.
 * The machine is gone when this returns.
 */
gboolean bj_image_smoke_run (const BjImageBuild *build, int log, GCancellable *cancellable, GError **error);

G_END_DECLS
