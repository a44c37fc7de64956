/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-budget.h"

#include "bj-error.h"

#include <unistd.h>

#define LOOK_US 100000 /* between two looks at the cancellable */
#define SMALLEST_MIB 1024u

struct _BjBudget
{
  guint total_mib;
  BjBudgetFree give_back;
  gpointer stock;
  GMutex lock; /* guards the rest */
  GCond changed;
  guint used_mib;
  GQueue waiting; /* (element-type BjPlace): of the threads that wait, first in line first */
};

static guint
measure_host (void)
{
  guint64 bytes = (guint64) sysconf (_SC_PHYS_PAGES) * (guint64) sysconf (_SC_PAGESIZE);

  return MAX ((guint) (bytes / 4 * 3 >> 20), SMALLEST_MIB);
}

BjBudget *
bj_budget_new (guint total_mib)
{
  BjBudget *self = g_new0 (BjBudget, 1);

  self->total_mib = total_mib != 0 ? total_mib : measure_host ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->waiting);
  return self;
}

void
bj_budget_free (BjBudget *self)
{
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

void
bj_budget_set_stock (BjBudget *self, BjBudgetFree give_back, gpointer user_data)
{
  self->give_back = give_back;
  self->stock = user_data;
}

/* With the lock. */
static gboolean
fits (const BjBudget *self, guint mib)
{
  return self->used_mib <= self->total_mib && mib <= self->total_mib - self->used_mib;
}

/* With the lock, which is given up while the stock is asked: what it gives back comes through bj_budget_give(). */
static gboolean
use_stock (BjBudget *self)
{
  gboolean gave;

  if (self->give_back == NULL)
    return FALSE;
  g_mutex_unlock (&self->lock);
  gave = self->give_back (self->stock);
  g_mutex_lock (&self->lock);
  return gave;
}

/* Where somebody who waits stands, and what he was told. */
typedef struct
{
  guint place;
  guint used_mib;
} BjPlace;

/* With the lock, which is given up while he is told. Returns whether he was. */
static gboolean
tell_place (BjBudget *self, BjPlace *told, BjBudgetWaits waits, gpointer user_data)
{
  guint place = (guint) g_queue_index (&self->waiting, told) + 1;
  guint used_mib = self->used_mib;

  if (waits == NULL || (place == told->place && used_mib == told->used_mib))
    return FALSE;
  told->place = place;
  told->used_mib = used_mib;
  g_mutex_unlock (&self->lock);
  waits (place, used_mib, self->total_mib, user_data);
  g_mutex_lock (&self->lock);
  return TRUE;
}

/* With the lock. */
static gboolean
wait_in_line (BjBudget *self, guint mib, BjBudgetWaits waits, gpointer user_data, GCancellable *cancellable)
{
  BjPlace own = { 0 };
  gboolean ok = FALSE;

  g_queue_push_tail (&self->waiting, &own);
  while (!g_cancellable_is_cancelled (cancellable))
    {
      gboolean first = g_queue_peek_head (&self->waiting) == &own;

      if (first && fits (self, mib))
        {
          self->used_mib += mib;
          ok = TRUE;
          break;
        }
      if ((!first || !use_stock (self)) && !tell_place (self, &own, waits, user_data))
        g_cond_wait_until (&self->changed, &self->lock, g_get_monotonic_time () + LOOK_US);
    }
  g_queue_remove (&self->waiting, &own);
  g_cond_broadcast (&self->changed);
  return ok;
}

gboolean
bj_budget_take (BjBudget *self, guint mib, BjBudgetWaits waits, gpointer user_data, GCancellable *cancellable,
                GError **error)
{
  gboolean ok;

  if (mib > self->total_mib)
    return bj_error_set (error, BJ_ERROR_LIMIT, "A machine of %u MiB is more than all machines may have together, %u MiB "
                         "([limits] memory-total-mib)", mib, self->total_mib);
  if (bj_budget_try (self, mib))
    return TRUE;
  g_mutex_lock (&self->lock);
  ok = wait_in_line (self, mib, waits, user_data, cancellable);
  g_mutex_unlock (&self->lock);
  return ok || bj_error_set (error, BJ_ERROR_CANCELLED, "Cancelled while it waited for memory");
}

gboolean
bj_budget_try (BjBudget *self, guint mib)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (!g_queue_is_empty (&self->waiting) || !fits (self, mib))
    return FALSE;
  self->used_mib += mib;
  return TRUE;
}

void
bj_budget_force (BjBudget *self, guint mib)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->used_mib += mib;
}

void
bj_budget_give (BjBudget *self, guint mib)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_return_if_fail (mib <= self->used_mib);
  self->used_mib -= mib;
  g_cond_broadcast (&self->changed);
}
