/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_fault_point:
 * @step: a step of a state machine, for example an action of the journal
 * @point: how far it is: begun, ended, or a name of its own
 *
 * A place where the tests let the daemon die, as if the power went: when BELLJAR_FAULT is STEP:POINT. Otherwise it does nothing.
 */
void bj_fault_point (const char *step, const char *point);

G_END_DECLS
