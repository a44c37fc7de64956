/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"
#include "bj-session-manager.h"

G_BEGIN_DECLS

/* What Manager.Doctor looks at; every check that fails names its fix. */
typedef struct _BjDoctor BjDoctor;

BjDoctor *bj_doctor_new (BjContext *context, BjSessionManager *sessions);
void bj_doctor_free (BjDoctor *self);

/** bj_doctor_run: In a worker. @data: a BjDoctor. @reply: (out): "(aa{sv})", floating. Always TRUE */
gboolean bj_doctor_run (gpointer data, GVariant **reply, GError **error);

G_END_DECLS
