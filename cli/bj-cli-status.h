/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * What goes on, on standard error: one line that is redrawn on a terminal; elsewhere a line for each step, nothing in
 * between.
 */
typedef struct _BjStatus BjStatus;

BjStatus *bj_status_new (void);
/** bj_status_free: Takes the redrawn line away. */
void bj_status_free (BjStatus *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjStatus, bj_status_free)

/**
 * bj_status_set:
 * @step: what it does, for example "running"; a new one is a new line where there is no terminal
 * @detail: (nullable): what changes often, only for a terminal; escaped by the caller
 */
void bj_status_set (BjStatus *self, const char *step, const char *detail);
/** bj_status_note: A line that stays. */
void bj_status_note (BjStatus *self, const char *text);
/** bj_status_clear: Takes the redrawn line away until the next bj_status_set(). */
void bj_status_clear (BjStatus *self);

G_END_DECLS
