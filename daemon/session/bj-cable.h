/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-session.h"

G_BEGIN_DECLS

/*
 * The network cable of one machine, and who watches it: while there is one, a thread looks every few seconds whether the
 * firewall's table is still there. If not, the cable is unplugged at once, the table is put back and proved, and only then is
 * the cable plugged in again; the session's report gets warnings that say so. Functions block (worker threads only).
 */
typedef struct _BjCable BjCable;

/**
 * bj_cable_new: The cable is plugged in; watches from now on.
 * @session: gets the warnings; outlives the cable
 */
BjCable *bj_cable_new (BjSession *session, BjMachine *machine);
/** bj_cable_free: Waits for the thread. Call it before the machine is ended. */
void bj_cable_free (BjCable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjCable, bj_cable_free)

/** bj_cable_set: What the machine should have; without the firewall it gets no network in any case. */
gboolean bj_cable_set (BjCable *self, gboolean plugged, GError **error);

G_END_DECLS
