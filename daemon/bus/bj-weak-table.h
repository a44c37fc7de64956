/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* Values beside objects of other people's classes; a value goes when its object goes. Thread-safe. */
typedef struct
{
  GMutex lock;
  GHashTable *values; /* (nullable) */
  GDestroyNotify free_value;
} BjWeakTable;

#define BJ_WEAK_TABLE_INIT(free_value) { { 0 }, NULL, free_value }

/** bj_weak_table_put: @value: (transfer full): replaces an older one */
void bj_weak_table_put (BjWeakTable *self, gpointer object, gpointer value);
/** bj_weak_table_get: Returns: (transfer none) (nullable): valid as long as the caller holds @object */
gpointer bj_weak_table_get (BjWeakTable *self, gpointer object);

G_END_DECLS
