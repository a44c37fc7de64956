/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-bus.h"

#include "bj-error.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixfdlist.h>
#include <poll.h>
#include <unistd.h>

#define LAST_WORDS_US (5 * G_USEC_PER_SEC)

static GDBusConnection *
connect_address (const char *spec, GCancellable *cancellable, GError **error)
{
  if (g_str_equal (spec, "session"))
    return g_bus_get_sync (G_BUS_TYPE_SESSION, cancellable, error);
  if (g_str_equal (spec, "system"))
    return g_bus_get_sync (G_BUS_TYPE_SYSTEM, cancellable, error);
  return g_dbus_connection_new_for_address_sync (
      spec, G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION, NULL,
      cancellable, error);
}

GDBusConnection *
bj_bus_connect (const char *spec, GCancellable *cancellable, GError **error)
{
  GDBusConnection *connection;

  if (spec == NULL)
    spec = g_getenv ("BELLJAR_BUS");
  if (spec == NULL || *spec == '\0')
    spec = "system";
  connection = connect_address (spec, cancellable, error);
  if (connection == NULL && error != NULL)
    {
      g_autofree char *said = g_strdup ((*error)->message);

      g_clear_error (error);
      bj_error_set (error, BJ_ERROR_FAILED,
                    "Connecting to the bus “%s”: %s. Start that bus (the system's: dbus-daemon --system --fork, or boot with "
                    "dbus installed), or name another one in BELLJAR_BUS", spec, said);
    }
  else
    g_dbus_connection_set_exit_on_close (connection, FALSE);
  return connection;
}

GDBusConnection *
bj_bus_peer_from_fd (int fd, gboolean server, GError **error)
{
  GDBusConnectionFlags flags = G_DBUS_CONNECTION_FLAGS_DELAY_MESSAGE_PROCESSING;
  g_autoptr(GSocket) socket = g_socket_new_from_fd (fd, error);
  g_autoptr(GSocketConnection) stream = NULL;
  g_autofree char *guid = NULL;

  if (socket == NULL)
    {
      close (fd);
      return NULL;
    }
  stream = g_socket_connection_factory_create_connection (socket);
  if (server)
    {
      flags |= G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_SERVER | G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_ALLOW_ANONYMOUS;
      guid = g_dbus_generate_guid ();
    }
  else
    flags |= G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT;
  return g_dbus_connection_new_sync (G_IO_STREAM (stream), guid, flags, NULL, NULL, error);
}

static gpointer
watch_peer (gpointer data)
{
  struct pollfd peer = { .fd = GPOINTER_TO_INT (data), .events = POLLRDHUP };

  while (poll (&peer, 1, -1) < 0 && errno == EINTR)
    continue;
  g_usleep (LAST_WORDS_US);
  _exit (1);
}

void
bj_bus_end_with_peer (int fd)
{
  int own = fcntl (fd, F_DUPFD_CLOEXEC, 0);

  if (own >= 0)
    g_thread_unref (g_thread_new ("peer", watch_peer, GINT_TO_POINTER (own)));
}

GDBusConnection *
bj_bus_peer_to_daemon (int fd, GError **error)
{
  GDBusConnection *connection;

  bj_bus_end_with_peer (fd);
  connection = bj_bus_peer_from_fd (fd, FALSE, error);
  if (connection == NULL)
    g_prefix_error (error, "File descriptor %d should be the daemon's socket: ", fd);
  return connection;
}
