/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A long-lived process of ours that we talk to over a socketpair: the gateway, an agent. */
typedef struct _BjChild BjChild;

/**
 * bj_child_start:
 * @argv: what to run
 * @uid: (nullable): uid and gid to run with, when the daemon is root
 * @second_fd: becomes the child's fd 4, or -1; not owned
 *
 * The child's fd 3 is a socket; our end is a peer-to-peer D-Bus connection that has not started to process messages.
 * The child ends with the daemon. Its standard error goes to ours. Blocks for the handshake, at most 20 seconds.
 */
BjChild *bj_child_start (const char *const *argv, const uid_t *uid, int second_fd, GError **error);

GDBusConnection *bj_child_get_connection (BjChild *self); /* (transfer none) */
/** bj_child_is_running: Whether the process still lives. */
gboolean bj_child_is_running (BjChild *self);
/** bj_child_stop: Closes the connection, ends the process (SIGTERM, after 2 seconds SIGKILL), reaps it. Blocks. */
void bj_child_stop (BjChild *self);
void bj_child_free (BjChild *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjChild, bj_child_free)

G_END_DECLS
