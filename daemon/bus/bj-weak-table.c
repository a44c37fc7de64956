/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-weak-table.h"

static void
on_object_gone (gpointer user_data, GObject *where_it_was)
{
  BjWeakTable *self = user_data;
  gpointer value = NULL;

  g_mutex_lock (&self->lock);
  g_hash_table_steal_extended (self->values, where_it_was, NULL, &value);
  g_mutex_unlock (&self->lock);
  if (value != NULL)
    self->free_value (value);
}

void
bj_weak_table_put (BjWeakTable *self, gpointer object, gpointer value)
{
  gpointer old = NULL;

  g_mutex_lock (&self->lock);
  if (self->values == NULL)
    self->values = g_hash_table_new (NULL, NULL);
  g_hash_table_steal_extended (self->values, object, NULL, &old);
  g_hash_table_insert (self->values, object, value);
  g_mutex_unlock (&self->lock);
  if (old != NULL)
    self->free_value (old);
  else
    g_object_weak_ref (object, on_object_gone, self);
}

gpointer
bj_weak_table_get (BjWeakTable *self, gpointer object)
{
  gpointer value;

  g_mutex_lock (&self->lock);
  value = self->values != NULL ? g_hash_table_lookup (self->values, object) : NULL;
  g_mutex_unlock (&self->lock);
  return value;
}
