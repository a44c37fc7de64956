/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-lease.h"

#include "bj-error.h"

struct _BjLease
{
  BjContext *context;
  guint mib;
  guint slot;
};

static BjLease *
lease_new (BjContext *context, guint mib, guint slot)
{
  BjLease *self = g_new0 (BjLease, 1);

  self->context = context;
  self->mib = mib;
  self->slot = slot;
  return self;
}

BjLease *
bj_lease_take (BjContext *context, guint mib, int slot, BjBudgetWaits waits, gpointer user_data,
               GCancellable *cancellable, GError **error)
{
  if (!bj_budget_take (context->budget, mib, waits, user_data, cancellable, error))
    return NULL;
  if (slot < 0)
    slot = bj_slots_take (context->slots);
  if (slot >= 0)
    return lease_new (context, mib, (guint) slot);
  bj_budget_give (context->budget, mib);
  bj_error_set (error, BJ_ERROR_LIMIT, "There is no free slot for another machine");
  return NULL;
}

BjLease *
bj_lease_try (BjContext *context, guint mib)
{
  int slot;

  if (!bj_budget_try (context->budget, mib))
    return NULL;
  slot = bj_slots_take (context->slots);
  if (slot >= 0)
    return lease_new (context, mib, (guint) slot);
  bj_budget_give (context->budget, mib);
  return NULL;
}

BjLease *
bj_lease_adopt (BjContext *context, guint mib, guint slot)
{
  bj_budget_force (context->budget, mib);
  return lease_new (context, mib, slot);
}

void
bj_lease_give_memory (BjLease *self)
{
  bj_budget_give (self->context->budget, self->mib);
  self->mib = 0;
}

gboolean
bj_lease_take_memory (BjLease *self, guint mib, BjBudgetWaits waits, gpointer user_data, GCancellable *cancellable,
                      GError **error)
{
  if (!bj_budget_take (self->context->budget, mib, waits, user_data, cancellable, error))
    return FALSE;
  self->mib = mib;
  return TRUE;
}

guint
bj_lease_get_slot (BjLease *self)
{
  return self->slot;
}

void
bj_lease_free (BjLease *self)
{
  bj_slots_release (self->context->slots, self->slot);
  bj_budget_give (self->context->budget, self->mib);
  g_free (self);
}
