/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"

G_BEGIN_DECLS

/*
 * Clones of the default image in stock, paused: whoever needs a machine like them gets one at once. Filled again at leisure,
 * emptied when memory is short, when the image changes and at the end. Thread-safe.
 */
typedef struct _BjPool BjPool;

/** bj_pool_new: [pool] size of @context's configuration; 0: always empty. */
BjPool *bj_pool_new (BjContext *context);
/** bj_pool_free: Ends filling and hands its machines to the teardown. Blocks while a clone is being made. */
void bj_pool_free (BjPool *self);

/**
 * bj_pool_take:
 * @image_digest: of the image it must be of
 * @spec: what is wanted
 *
 * Returns: (transfer full) (nullable): a machine that is paused and well and took over what @spec says, or %NULL: there is none.
 * Its memory is accounted for in the budget, its slot is its own; both go back when it is gone.
 */
BjMachine *bj_pool_take (BjPool *self, const char *image_digest, const BjMachineSpec *spec);

/** bj_pool_get_count: how many there are now; for doctor */
guint bj_pool_get_count (BjPool *self);

/** bj_pool_clean: Removes folders that an earlier belljard left. Before anything is in stock. */
void bj_pool_clean (BjContext *context);

G_END_DECLS
