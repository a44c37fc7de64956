/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* The memory that machines may have together. Who does not fit waits, first come, first served. Thread-safe. */
typedef struct _BjBudget BjBudget;

/** bj_budget_new: @total_mib: 0: three quarters of the host's memory */
BjBudget *bj_budget_new (guint total_mib);
void bj_budget_free (BjBudget *self);

/** BjBudgetFree: Asked when somebody would have to wait: gives back what is only kept in stock. Returns: whether it did */
typedef gboolean (*BjBudgetFree) (gpointer user_data);
void bj_budget_set_stock (BjBudget *self, BjBudgetFree give_back, gpointer user_data);

/** BjBudgetWaits: Called in the thread that waits, before the wait and whenever one of these has changed. @place: from 1 */
typedef void (*BjBudgetWaits) (guint place, guint used_mib, guint total_mib, gpointer user_data);

/**
 * bj_budget_take:
 * @waits: (nullable): called when it does not fit now
 *
 * Blocks until @mib fit. BJ_ERROR_LIMIT when they never will.
 */
gboolean bj_budget_take (BjBudget *self, guint mib, BjBudgetWaits waits, gpointer user_data, GCancellable *cancellable,
                         GError **error);
/** bj_budget_try: Does not wait, and does not overtake those who do. */
gboolean bj_budget_try (BjBudget *self, guint mib);
/** bj_budget_force: For a machine that is there already. */
void bj_budget_force (BjBudget *self, guint mib);
void bj_budget_give (BjBudget *self, guint mib);

G_END_DECLS
