/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/* Ends machines that nobody waits for, a few at a time. Thread-safe. */
typedef struct _BjTeardown BjTeardown;

BjTeardown *bj_teardown_new (void);
/** bj_teardown_free: Ends what is left to end first. Blocks. */
void bj_teardown_free (BjTeardown *self);

/** bj_teardown_add: @machine: (transfer full): it is paused or gone in a moment, and destroyed some time later */
void bj_teardown_add (BjTeardown *self, BjMachine *machine);
/** bj_teardown_wait: Until everything added before is gone. Blocks. */
void bj_teardown_wait (BjTeardown *self);

G_END_DECLS
