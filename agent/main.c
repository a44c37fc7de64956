/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent.h"
#include "bj-bus.h"
#include "bj-config-build.h"
#include "bj-harden.h"
#include "bj-log.h"

#include <glib-unix.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#define DAEMON_FD 3
#define GATEWAY_PATH "/proc/self/fd/4"

/* What the thread of the loop needs. */
typedef struct
{
  BjAgent *agent;
  GDBusConnection *connection;
  GMainLoop *loop;
  int status;
} BjRun;

/* Nothing is left to do without the daemon, and the loop's thread may be waiting for the model. */
static void
on_daemon_gone (GDBusConnection *connection, gboolean remote_vanished, GError *error, gpointer data)
{
  _exit (EXIT_SUCCESS);
}

static gpointer
run_loop (gpointer data)
{
  BjRun *run = data;
  g_autoptr(GMainContext) context = g_main_context_new ();
  g_autoptr(GError) error = NULL;

  g_main_context_push_thread_default (context);
  run->status = bj_agent_run (run->agent, run->connection, GATEWAY_PATH, &error) ? EXIT_SUCCESS : EXIT_FAILURE;
  if (error != NULL)
    g_printerr ("belljar-agent: %s\n", error->message);
  g_main_context_pop_thread_default (context);
  g_main_loop_quit (run->loop);
  return NULL;
}

static int
serve (const char *data, GError **error)
{
  g_autoptr(GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  g_autoptr(BjAgent) agent = bj_agent_new (data, error);
  g_autoptr(GDBusConnection) connection = NULL;
  BjRun run = { agent, NULL, loop, EXIT_FAILURE };
  GThread *thread;

  if (agent == NULL)
    return EXIT_FAILURE;
  connection = bj_bus_peer_to_daemon (DAEMON_FD, error);
  if (connection == NULL)
    return EXIT_FAILURE;
  run.connection = connection;
  g_signal_connect (connection, "closed", G_CALLBACK (on_daemon_gone), NULL);
  g_dbus_connection_start_message_processing (connection);
  thread = g_thread_new ("loop", run_loop, &run);
  g_main_loop_run (loop);
  g_thread_join (thread);
  return run.status;
}

static int
check_data (const char *data, GError **error)
{
  g_autoptr(BjAgent) agent = bj_agent_new (data, error);

  return agent ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main (int argc, char **argv)
{
  g_autofree char *data = NULL;
  g_autofree char *level_name = NULL;
  gboolean version = FALSE;
  gboolean check = FALSE;
  const GOptionEntry entries[] = {
    { "data", 0, 0, G_OPTION_ARG_FILENAME, &data, "Folder with prompts, tools and parameters", "DIR" },
    { "check", 0, 0, G_OPTION_ARG_NONE, &check, "Check that folder and end", NULL },
    { "log-level", 0, 0, G_OPTION_ARG_STRING, &level_name, "error, warning, message, info or debug", "LEVEL" },
    { "version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version", NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr(GOptionContext) context = g_option_context_new (NULL);
  g_autoptr(GError) error = NULL;
  GLogLevelFlags level = G_LOG_LEVEL_WARNING;
  const char *folder = BJ_PKGDATADIR "/agent";
  int status;

  bj_harden ();
  setlocale (LC_ALL, "");
  g_option_context_set_summary (context, "The loop around the model. Started by belljard with two sockets as fd 3 and 4.");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error)
      || (level_name != NULL && !bj_log_parse_level (level_name, &level)))
    {
      g_printerr ("belljar-agent: %s\n", error ? error->message : "unknown log level");
      return 2;
    }
  if (version)
    {
      g_print ("belljar-agent %s\n", BJ_VERSION);
      return EXIT_SUCCESS;
    }
  bj_log_init ("belljar-agent", level);
  folder = data ? data : folder;
  status = check ? check_data (folder, &error) : serve (folder, &error);
  if (error != NULL)
    g_printerr ("belljar-agent: %s\n", error->message);
  return status;
}
