/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Numbers that live machines share out among them: uid, MAC and agent uid follow from a slot. Thread-safe. */
typedef struct _BjSlots BjSlots;

BjSlots *bj_slots_new (void);
void bj_slots_free (BjSlots *self);
/** bj_slots_take: Returns: a free slot below BJ_MACHINE_SLOTS, or -1 when all are taken */
int bj_slots_take (BjSlots *self);
/** bj_slots_reserve: For a machine adopted at start. Returns: whether it was free */
gboolean bj_slots_reserve (BjSlots *self, guint slot);
void bj_slots_release (BjSlots *self, guint slot);

G_END_DECLS
