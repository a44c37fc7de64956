/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/**
 * bj_template_capture:
 * @spec: image, memory and processors of the machines that will be clones
 * @slot: of the machine that is booted for it
 * @dir: a new folder's path; on failure nothing is left of it
 * @image_digest: noted, to know later what it belongs to
 *
 * Boots a machine, waits until it has nothing left to do, warms it and stops it for good. Blocks for a boot and some seconds.
 */
gboolean bj_template_capture (BjEngine *engine, const BjMachineSpec *spec, guint slot, const char *dir, const char *key,
                              const char *image_digest, GCancellable *cancellable, GError **error);

G_END_DECLS
