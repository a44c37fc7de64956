/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-work.h"

G_BEGIN_DECLS

/* One of a session's machines, from nothing to ready for its first command. */
typedef struct
{
  BjMachineSpec *spec; /* (owned) */
  gboolean own;        /* the session's own machine: its phases are the report's */
  GCancellable *cancellable;
  BjCable *cable;      /* (out) (owned) (nullable): of a machine with network, while it is watched */
} BjBoot;

/**
 * bj_work_boot:
 * @machine: (out) (transfer full) (nullable): also set when it fails after the machine was made: the caller ends it
 *
 * One of the pool; else, when there is memory for it, a clone of the image's template; else, with a warning in the report, a
 * cold boot. With spec->share the project's folder is plugged in and mounted. spec->data_disk is handed to the machine. The
 * facts of its freshness are recorded. Slot and memory go back when the machine is gone. Blocks.
 */
gboolean bj_work_boot (BjWork *work, BjBoot *boot, BjMachine **machine, GError **error);

/** bj_work_say_that_it_waits: A BjBudgetWaits: the session's activity says its place in line. @user_data: the BjWork */
void bj_work_say_that_it_waits (guint place, guint used_mib, guint total_mib, gpointer user_data);
/** bj_work_attach_share: Plugs the project's folder in. */
gboolean bj_work_attach_share (BjWork *work, BjMachine *machine, GCancellable *cancellable, GError **error);
/** bj_work_record_machine: @start: cold, template, pool; or parked, paused for one that came back */
void bj_work_record_machine (BjWork *work, BjMachine *machine, const char *start, const BjMachineFacts *facts);

G_END_DECLS
