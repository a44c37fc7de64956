/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/* A session that got its machine from the pool writes down which: after a restart its own id does not lead there. */

gboolean bj_machine_note_write (const char *session_dir, const BjMachineSpec *spec, GError **error);
/** bj_machine_note_apply: Sets id, slot, size and network of @spec to what was written, if it can be, and run_dir to what follows. */
void bj_machine_note_apply (const char *session_dir, BjMachineSpec *spec);

G_END_DECLS
