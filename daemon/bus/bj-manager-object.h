/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"
#include "bj-session-manager.h"

G_BEGIN_DECLS

/* org.belljar1.Manager, at /org/belljar1. Main loop only. */
typedef struct _BjManagerObject BjManagerObject;

/** bj_manager_object_new: @report_key: base64 of the public key that reports are signed with */
BjManagerObject *bj_manager_object_new (BjContext *context, BjSessionManager *sessions, const char *report_key);
gboolean bj_manager_object_export (BjManagerObject *self, GDBusConnection *connection, GError **error);
void bj_manager_object_free (BjManagerObject *self);

G_END_DECLS
