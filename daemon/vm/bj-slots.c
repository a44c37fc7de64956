/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-slots.h"

#include "bj-engine.h"

struct _BjSlots
{
  GMutex lock;
  gboolean taken[BJ_MACHINE_SLOTS];
  guint next; /* not the lowest free one: a uid is not used again at once */
};

BjSlots *
bj_slots_new (void)
{
  BjSlots *self = g_new0 (BjSlots, 1);

  g_mutex_init (&self->lock);
  return self;
}

void
bj_slots_free (BjSlots *self)
{
  g_mutex_clear (&self->lock);
  g_free (self);
}

int
bj_slots_take (BjSlots *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  for (guint i = 0; i < BJ_MACHINE_SLOTS; i++)
    {
      guint slot = (self->next + i) % BJ_MACHINE_SLOTS;

      if (self->taken[slot])
        continue;
      self->taken[slot] = TRUE;
      self->next = slot + 1;
      return (int) slot;
    }
  return -1;
}

gboolean
bj_slots_reserve (BjSlots *self, guint slot)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (slot >= BJ_MACHINE_SLOTS || self->taken[slot])
    return FALSE;
  self->taken[slot] = TRUE;
  return TRUE;
}

void
bj_slots_release (BjSlots *self, guint slot)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_return_if_fail (slot < BJ_MACHINE_SLOTS);
  self->taken[slot] = FALSE;
}
