/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-session.h"

G_BEGIN_DECLS

/* The background commands that an agent started, as the daemon last saw them. Thread-safe; each event is recorded. */
typedef struct _BjBackground BjBackground;

BjBackground *bj_background_new (BjSession *session);
void bj_background_free (BjBackground *self);

void bj_background_add (BjBackground *self, guint id, const char *label);
/** bj_background_end: A poll saw that it had ended; only the first time counts. */
void bj_background_end (BjBackground *self, guint id, int exit, int signal);
/** bj_background_note: @event: send or kill */
void bj_background_note (BjBackground *self, guint id, const char *event);
/** bj_background_list: Returns: (transfer floating): aa{sv} with id, label (escaped), running, exit */
GVariant *bj_background_list (BjBackground *self);

G_END_DECLS
