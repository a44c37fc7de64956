/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-bus.h"
#include "bj-config-build.h"
#include "bj-gateway.h"
#include "bj-harden.h"
#include "bj-log.h"

#include <glib-unix.h>
#include <locale.h>
#include <stdlib.h>

#define DAEMON_FD 3

static void
on_daemon_gone (GDBusConnection *connection, gboolean remote_vanished, GError *error, gpointer loop)
{
  g_main_loop_quit (loop);
}

static gboolean
on_terminate (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_CONTINUE;
}

static int
serve (GError **error)
{
  g_autoptr(GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr(GDBusConnection) connection = NULL;
  g_autoptr(BjGateway) gateway = NULL;

  connection = bj_bus_peer_to_daemon (DAEMON_FD, error);
  if (connection == NULL)
    return EXIT_FAILURE;
  gateway = bj_gateway_new (connection, error);
  if (gateway == NULL)
    return EXIT_FAILURE;
  g_signal_connect (connection, "closed", G_CALLBACK (on_daemon_gone), loop);
  g_unix_signal_add (SIGTERM, on_terminate, loop);
  g_dbus_connection_start_message_processing (connection);
  g_main_loop_run (loop);
  return EXIT_SUCCESS;
}

int
main (int argc, char **argv)
{
  g_autofree char *level_name = NULL;
  gboolean version = FALSE;
  const GOptionEntry entries[] = {
    { "log-level", 0, 0, G_OPTION_ARG_STRING, &level_name, "error, warning, message, info or debug", "LEVEL" },
    { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version", NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr(GOptionContext) context = g_option_context_new (NULL);
  g_autoptr(GError) error = NULL;
  GLogLevelFlags level = G_LOG_LEVEL_MESSAGE;
  int status;

  bj_harden ();
  setlocale (LC_ALL, "");
  g_option_context_set_summary (context, "The only path to the model. Started by belljard, with its socket as fd 3.");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)
      || (level_name != NULL && !bj_log_parse_level (level_name, &level)))
    {
      g_printerr ("belljar-gateway: %s\n", error ? error->message : "unknown log level");
      return 2;
    }
  if (version)
    {
      g_print ("belljar-gateway %s\n", BJ_VERSION);
      return EXIT_SUCCESS;
    }
  bj_log_init ("belljar-gateway", level);
  status = serve (&error);
  if (error != NULL)
    g_printerr ("belljar-gateway: %s\n", error->message);
  return status;
}
