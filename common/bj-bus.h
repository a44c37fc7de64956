/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

#define BJ_BUS_NAME "org.belljar1"
#define BJ_BUS_ROOT "/org/belljar1"

/**
 * bj_bus_connect:
 * @spec: (nullable): session, system or a D-Bus address; %NULL means $BELLJAR_BUS, and without that system
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error that names the bus
 *
 * Blocks; for programs at their start.
 *
 * Returns: (transfer full): a connection that does not end the process when it closes
 */
GDBusConnection *bj_bus_connect (const char *spec, GCancellable *cancellable, GError **error);

/**
 * bj_bus_peer_from_fd:
 * @fd: a connected unix socket; taken over, also on failure
 * @server: whether this side authenticates the other one
 * @error: return location for an error
 *
 * A peer-to-peer D-Bus connection over an inherited socket. Messages are delayed until
 * g_dbus_connection_start_message_processing(), so that objects can be exported first. Blocks for the handshake.
 *
 * Returns: (transfer full): the connection
 */
GDBusConnection *bj_bus_peer_from_fd (int fd, gboolean server, GError **error);

/**
 * bj_bus_end_with_peer:
 * @fd: a connected unix socket; it is duplicated
 *
 * Ends this process five seconds after the other side closed the socket, whatever the main loop is busy with then: whoever
 * served belljard has nothing left to do without it.
 */
void bj_bus_end_with_peer (int fd);

/**
 * bj_bus_peer_to_daemon:
 * @fd: what belljard left open for this process; taken over
 *
 * bj_bus_end_with_peer() and bj_bus_peer_from_fd(), for programs that belljard starts.
 *
 * Returns: (transfer full): the connection; an error names the descriptor
 */
GDBusConnection *bj_bus_peer_to_daemon (int fd, GError **error);

G_END_DECLS
