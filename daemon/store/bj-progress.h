/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * Progress as a tree of weighted steps. Whoever does a step only reports its own 0 to 1. Thread-safe; the root tells its
 * listener, small moves are not sent. A child must not outlive its parent.
 */
typedef struct _BjProgress BjProgress;
typedef void (*BjProgressFunc) (const char *phase, double fraction, gpointer user_data);

BjProgress *bj_progress_new (BjProgressFunc func, gpointer user_data);
void bj_progress_free (BjProgress *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjProgress, bj_progress_free)

/** bj_progress_new_child: (nullable) @parent; what moves it moves @parent's current step, under the child's phases */
BjProgress *bj_progress_new_child (BjProgress *parent);

/** bj_progress_add_step: @phase: one word, for example "bootstrap"; @weight: relative to the others */
void bj_progress_add_step (BjProgress *self, const char *phase, guint weight);
/** bj_progress_set: the current step stands at @fraction, 0 to 1. All functions accept %NULL. */
void bj_progress_set (BjProgress *self, double fraction);
/** bj_progress_step_done: the current step is done, the next begins */
void bj_progress_step_done (BjProgress *self);

G_END_DECLS
