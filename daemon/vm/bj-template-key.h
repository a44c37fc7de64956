/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/**
 * bj_template_key_compute:
 * @image_digest: of the image's disk
 * @spec: a machine that shall be a clone
 *
 * What must be equal for a clone to go on where the template stopped: image, machine, QEMU, libvirt, processor.
 *
 * Returns: (transfer full): 32 hexadecimal characters, or %NULL
 */
char *bj_template_key_compute (BjEngine *engine, const char *image_digest, const BjMachineSpec *spec, GError **error);

G_END_DECLS
