/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli-status.h"
#include "bj-client.h"

G_BEGIN_DECLS

/* Shows on standard error what a session does, for as long as the object lives. */
typedef struct _BjLive BjLive;

BjLive *bj_live_new (BjClient *client, BjDBusSession *session, BjStatus *status);
void bj_live_free (BjLive *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjLive, bj_live_free)

G_END_DECLS
