/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"

G_BEGIN_DECLS

/* Ids of machines in stock start so. */
#define BJ_POOL_PREFIX "pool-"

/* What a machine takes of what all machines share: memory and a slot. It goes back when the machine is gone. */
typedef struct _BjLease BjLease;

/**
 * bj_lease_take:
 * @slot: a slot that is the caller's already and becomes the lease's, or -1 to take one
 * @waits: (nullable): see bj_budget_take()
 *
 * Blocks until the memory fits. Returns: (transfer full): it, or %NULL: then @slot is still the caller's
 */
BjLease *bj_lease_take (BjContext *context, guint mib, int slot, BjBudgetWaits waits, gpointer user_data,
                        GCancellable *cancellable, GError **error);
/** bj_lease_try: Does not wait. */
BjLease *bj_lease_try (BjContext *context, guint mib);
/** bj_lease_adopt: For a machine that runs already; @slot becomes the lease's. */
BjLease *bj_lease_adopt (BjContext *context, guint mib, guint slot);
/** bj_lease_give_memory: Its machine is on disk: it keeps its slot only. */
void bj_lease_give_memory (BjLease *self);
/** bj_lease_take_memory: It comes back. Blocks until the memory fits. */
gboolean bj_lease_take_memory (BjLease *self, guint mib, BjBudgetWaits waits, gpointer user_data, GCancellable *cancellable,
                               GError **error);
guint bj_lease_get_slot (BjLease *self);
void bj_lease_free (BjLease *self);

G_END_DECLS
