/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * Bytes from one pipe into another in a thread of its own, counted. It ends when one side does or when it is stopped, closes both
 * then, and wakes the default main context.
 */
typedef struct _BjFlow BjFlow;

/** bj_flow_new: @from, @to: (transfer full): ends of pipes; they become non-blocking */
BjFlow *bj_flow_new (int from, int to);
/** bj_flow_free: Stops it and waits for its end. */
void bj_flow_free (BjFlow *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjFlow, bj_flow_free)

void bj_flow_stop (BjFlow *self);
gboolean bj_flow_is_done (BjFlow *self);
/** bj_flow_is_broken: Whether it ended because nobody reads the other pipe any more. */
gboolean bj_flow_is_broken (BjFlow *self);
guint64 bj_flow_get_bytes (BjFlow *self);

/* All of what a program prints, of which the beginning is kept, in a thread of its own. */
typedef struct _BjHeard BjHeard;

/** bj_heard_new: @from: (transfer full): the reading end of a pipe */
BjHeard *bj_heard_new (int from);
/** bj_heard_free: Does not wait for the writer. */
void bj_heard_free (BjHeard *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjHeard, bj_heard_free)

/** bj_heard_finish: Waits until all writers have gone. Returns: (transfer none): at most 4 KiB, bytes, not escaped */
const char *bj_heard_finish (BjHeard *self);

G_END_DECLS
