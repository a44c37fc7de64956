/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * How much room trees take on the disk. Nothing is opened but folders, no link is followed and no other file system entered; names
 * and depth may have been chosen by somebody hostile, so depth, number and time have limits.
 */
typedef struct _BjMeter BjMeter;

/** bj_meter_new: @deadline_s: how long all of it may take. Blocks while it measures: for workers. */
BjMeter *bj_meter_new (guint deadline_s, GCancellable *cancellable);
void bj_meter_free (BjMeter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjMeter, bj_meter_free)

/**
 * bj_meter_add:
 * @path: a file or folder; nothing there is 0
 *
 * Returns: bytes that are allocated for it and all below; a file with several names counts once in a meter's life
 */
guint64 bj_meter_add (BjMeter *self, const char *path);

/** bj_meter_is_complete: Whether no limit was met so far. */
gboolean bj_meter_is_complete (BjMeter *self);

G_END_DECLS
