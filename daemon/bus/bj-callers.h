/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-caller.h"

G_BEGIN_DECLS

/* Asks the bus who a sender is, once: the answer is kept until the sender's name goes. Main loop only. */
#define BJ_TYPE_CALLERS (bj_callers_get_type ())
G_DECLARE_FINAL_TYPE (BjCallers, bj_callers, BJ, CALLERS, GObject)

BjCallers *bj_callers_new (GDBusConnection *connection);

/** bj_callers_lookup_async: @sender: a unique bus name */
void bj_callers_lookup_async (BjCallers *self, const char *sender, GAsyncReadyCallback callback, gpointer user_data);
/** bj_callers_lookup_finish: Returns: (transfer full): who it is, or BJ_ERROR_DENIED */
BjCaller *bj_callers_lookup_finish (BjCallers *self, GAsyncResult *result, GError **error);

G_END_DECLS
