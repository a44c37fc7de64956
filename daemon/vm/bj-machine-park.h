/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/*
 * A machine that goes to disk, with everything in its memory, and comes back: minutes or weeks later, after another start of the
 * daemon or of the host. Its share and its network card are unplugged first and plugged again afterwards. All functions block.
 */

/* What parking did. */
typedef struct
{
  guint64 bytes; /* on disk, beside its overlay */
  guint users;   /* processes that had files of the share open or worked in it: they lost them */
} BjParkFacts;

/**
 * bj_machine_park:
 * @dir: a folder to be made beside the machine's own; the machine's uid may pass it, but reads only the disk in it
 * @mount_point: (nullable): where the guest has its share
 * @facts: (out)
 *
 * Afterwards nothing of it runs; its overlay stays. When it fails the machine is as it was or, if it could not be brought back
 * to that, gone; @dir is not there then.
 */
gboolean bj_machine_park (BjMachine *self, const char *dir, const char *mount_point, BjParkFacts *facts,
                          GCancellable *cancellable, GError **error);

/** bj_machine_is_parked: Whether @dir holds a whole machine. */
gboolean bj_machine_is_parked (const char *dir);

/**
 * bj_machine_unpark:
 * @self: a machine of the same spec that was not started
 * @dir: where its state is; it stays until bj_machine_forget_park()
 *
 * It is paused afterwards, where it stopped; share and network are to be plugged as into a new one. BJ_ERROR_INVALID: the
 * state is damaged. When it fails, it can be tried again.
 */
gboolean bj_machine_unpark (BjMachine *self, const char *dir, GCancellable *cancellable, GError **error);
void bj_machine_forget_park (const char *dir);

/**
 * bj_machine_setup_again:
 *
 * What bj_machine_setup() is for a new machine: clock, random pool, network and share of one that was away. Its name, ids and
 * keys stay; that its random numbers are not those of before is proved.
 */
gboolean bj_machine_setup_again (BjMachine *self, const char *mount_point, BjMachineFacts *facts, GCancellable *cancellable,
                                 GError **error);

G_END_DECLS
