/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/*
 * Follows a store that says "changed" in whatever thread changed it: lists it anew there, and hands the list to the main
 * loop. Lists arrive in the order they were made, so the last one is the newest.
 */
typedef struct _BjFollow BjFollow;

/** BjFollowList: In the thread that emits. Returns: (transfer full) (element-type any) */
typedef GPtrArray *(*BjFollowList) (gpointer store);
/** BjFollowFunc: On the main loop. */
typedef void (*BjFollowFunc) (GPtrArray *rows, gpointer user_data);

/** bj_follow_new: Calls @func once before it returns. Main loop only, as is bj_follow_free(). */
BjFollow *bj_follow_new (gpointer store, BjFollowList list, BjFollowFunc func, gpointer user_data);
void bj_follow_free (BjFollow *self);

G_END_DECLS
