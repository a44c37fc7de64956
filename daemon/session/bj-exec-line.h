/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define BJ_EXEC_LINE_AT_ONCE 4
#define BJ_EXEC_LINE_WAITING 64

/*
 * The commands that people run in one session: a few at a time, the rest in the order in which they came. Thread-safe; nothing
 * blocks.
 */
typedef struct _BjExecLine BjExecLine;

typedef void (*BjExecLineStart) (gpointer call);

BjExecLine *bj_exec_line_new (void);
/** bj_exec_line_free: Nobody is in it any more. */
void bj_exec_line_free (BjExecLine *self);

/**
 * bj_exec_line_enter:
 * @start: called once, now or when it is @call's turn, from any thread; bj_exec_line_leave() has to follow some time later
 * @cancellable: when it is cancelled, @call gives way to others who would find no room
 *
 * Returns: %FALSE, and @start will not be called, if too many wait already: BJ_ERROR_LIMIT
 */
gboolean bj_exec_line_enter (BjExecLine *self, BjExecLineStart start, gpointer call, GCancellable *cancellable,
                             GError **error);
/** bj_exec_line_is_empty: Nothing runs in it and nothing waits. */
gboolean bj_exec_line_is_empty (BjExecLine *self);
/** bj_exec_line_leave: One that was started has ended: starts the next. */
void bj_exec_line_leave (BjExecLine *self);

G_END_DECLS
