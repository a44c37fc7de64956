/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"
#include "bj-session-manager.h"

G_BEGIN_DECLS

/*
 * Frees what nobody needs: templates of images that are gone, folders of sessions that nobody knows, and, if [projects] evidence sets
 * a cap, sessions that ended longest ago. Never one that works or waits, nor one that ended less than [projects] evidence-keep ago.
 * It keeps to the cap by itself whenever a session has ended.
 */
typedef struct _BjPruner BjPruner;

BjPruner *bj_pruner_new (BjContext *context, BjSessionManager *sessions);
void bj_pruner_free (BjPruner *self);

/** bj_pruner_call: (transfer full) @invocation: Manager.Prune, answered with the job's path */
gboolean bj_pruner_call (BjPruner *self, GDBusMethodInvocation *invocation, GVariant *options);

G_END_DECLS
