/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-caller.h"
#include "bj-gate.h"
#include "bj-progress.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* Long work as an object on the bus, after UDisks2: exported first, started after. It stays for a minute when it is done. */
typedef struct _BjJobs BjJobs;

/**
 * BjJobFunc:
 * Runs in a worker thread.
 * @message: (out) (transfer full): what happened, for people
 */
typedef gboolean (*BjJobFunc) (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message,
                               GError **error);

BjJobs *bj_jobs_new (GDBusObjectManagerServer *objects, BjGate *gate);
void bj_jobs_cancel_all (BjJobs *self);
/** bj_jobs_free: Cancels all and waits for them, at most @deadline_s seconds. */
void bj_jobs_free (BjJobs *self, guint deadline_s);

/**
 * bj_jobs_start:
 * @operation: for example "image-build"
 * @data: passed to @func, freed with @free_data when the work has ended
 *
 * Returns: (transfer full): object path of the job; it starts in the next main-loop turn. Or %NULL with BJ_ERROR_LIMIT when
 *   the caller has BJ_JOBS_PER_CALLER under way; @data is freed then, too.
 */
#define BJ_JOBS_PER_CALLER 8
char *bj_jobs_start (BjJobs *self, const char *operation, const BjCaller *caller, BjJobFunc func, gpointer data,
                     GDestroyNotify free_data, GError **error);

G_END_DECLS
