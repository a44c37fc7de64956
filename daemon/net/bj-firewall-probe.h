/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_firewall_probe:
 * @uid: whose socket it is to be
 * @family: AF_INET or AF_INET6
 * @sent_errno: (out): 0 when the datagram was sent, else why not (EPERM when a firewall refused it)
 *
 * One UDP datagram to the discard port of this machine's own loopback address, from a socket that belongs to @uid as far as a
 * firewall can tell: made with that file-system uid, on a thread that ends right after. No process runs as @uid, so that nobody
 * with that uid can signal or trace us. Needs root.
 *
 * Returns: whether it could be tried at all
 */
gboolean bj_firewall_probe (guint32 uid, int family, int *sent_errno, GError **error);

G_END_DECLS
