/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-guest.h"

G_BEGIN_DECLS

/* A request to /usr/lib/belljar/run, being written. */
typedef struct _BjGuestRequest BjGuestRequest;

BjGuestRequest *bj_guest_request_new (void);
void bj_guest_request_free (BjGuestRequest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjGuestRequest, bj_guest_request_free)

void bj_guest_request_add (BjGuestRequest *self, const char *key, const char *value);
void bj_guest_request_add_number (BjGuestRequest *self, const char *key, guint64 value);
/** bj_guest_request_add_exec: Checks @exec and adds all of it but its input. BJ_ERROR_INVALID, BJ_ERROR_LIMIT. */
gboolean bj_guest_request_add_exec (BjGuestRequest *self, const BjExec *exec, GError **error);

/** bj_guest_request_set_sent: It is on its way: from now on nobody can say that the guest did not act on it. */
void bj_guest_request_set_sent (BjGuestRequest *self);
gboolean bj_guest_request_was_sent (BjGuestRequest *self);

/**
 * bj_guest_request_finish:
 * @input: (nullable): standard input of the command, or what a mode reads after its request
 *
 * Returns: (transfer full): the bytes for the program's standard input
 */
GBytes *bj_guest_request_finish (BjGuestRequest *self, GBytes *input);

G_END_DECLS
