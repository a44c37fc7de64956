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

G_END_DECLS
