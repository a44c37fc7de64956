/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-engine.h"

G_BEGIN_DECLS

/**
 * bj_accelerator_choose:
 * @wish: what the configuration says
 * @cache_path: where this boot's answer is kept
 * @reason: (out) (transfer full): one sentence
 *
 * Runs a tiny guest with KVM under a deadline, because there are hosts where /dev/kvm opens and every guest hangs.
 *
 * Returns: KVM or TCG; or AUTO with BJ_ERROR_NO_ACCELERATOR if KVM was asked for and does not work
 */
BjAccelerator bj_accelerator_choose (BjAccelerator wish, const char *cache_path, char **reason,
                                     GCancellable *cancellable, GError **error);

G_END_DECLS
