/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljard"

#include "bj-config-build.h"
#include "bj-daemon.h"
#include "bj-log.h"

#include <gio/gio.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define EXIT_USAGE 2

static char *option_bus;
static char *option_state_dir;
static char *option_config;
static char *option_engine;
static char *option_auth;
static char *option_log_level;
static gboolean option_version;

static const GOptionEntry entries[] = {
  { "bus", 0, 0, G_OPTION_ARG_STRING, &option_bus, "Bus to serve: session, system or an address", "BUS" },
  { "state-dir", 0, 0, G_OPTION_ARG_FILENAME, &option_state_dir, "State folder (" BJ_STATE_DIR ")", "DIR" },
  { "config", 0, 0, G_OPTION_ARG_FILENAME, &option_config, "Configuration (" BJ_CONFIG_FILE ")", "FILE" },
  { "engine", 0, 0, G_OPTION_ARG_STRING, &option_engine, "libvirt URI; default is an embedded driver", "URI" },
  { "auth", 0, 0, G_OPTION_ARG_STRING, &option_auth, "Who may call: polkit (system bus) or owner (other buses)", "HOW" },
  { "log-level", 0, 0, G_OPTION_ARG_STRING, &option_log_level, "error, warning, message, info or debug", "LEVEL" },
  { "version", 0, 0, G_OPTION_ARG_NONE, &option_version, "Print the version and exit", NULL },
  { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
};

/* What is in our memory is not for other processes, nor for core files. What nobody else may read is made with a mode that says so;
 * the rest has to be passed and read by the uids of machines and helpers. */
static void
harden (void)
{
  const struct rlimit none = { 0, 0 };

  umask (022);
  prctl (PR_SET_DUMPABLE, 0, 0, 0, 0);
  setrlimit (RLIMIT_CORE, &none);
}

static int
usage (const char *message)
{
  fprintf (stderr, "belljard: %s\nSee belljard --help.\n", message);
  return EXIT_USAGE;
}

static const char *
choose_bus (void)
{
  const char *environment = g_getenv ("BELLJAR_BUS");

  if (option_bus != NULL)
    return option_bus;
  return environment != NULL && *environment != '\0' ? environment : "system";
}

static gboolean
is_system_bus (const char *bus)
{
  g_autofree char *address = g_dbus_address_get_for_bus_sync (G_BUS_TYPE_SYSTEM, NULL, NULL);

  return g_str_equal (bus, "system") || g_strcmp0 (bus, address) == 0;
}

/* Returns: an error message, or NULL */
static const char *
choose_auth (const char *bus, BjAuth *auth)
{
  gboolean system = is_system_bus (bus);

  *auth = system ? BJ_AUTH_POLKIT : BJ_AUTH_OWNER;
  if (option_auth == NULL)
    return NULL;
  if (g_str_equal (option_auth, "polkit"))
    return system ? NULL : "--auth=polkit needs --bus=system: polkit knows callers by their name on the system bus";
  if (g_str_equal (option_auth, "owner"))
    return !system ? NULL : "--auth=owner is refused on the system bus: use --auth=polkit, or another --bus";
  return "--auth is polkit or owner";
}

static int
run (void)
{
  GLogLevelFlags level = G_LOG_LEVEL_MESSAGE;
  const char *bus = choose_bus ();
  g_autofree char *state_dir = g_canonicalize_filename (option_state_dir ? option_state_dir : BJ_STATE_DIR, NULL);
  g_autofree char *config = option_config != NULL ? g_canonicalize_filename (option_config, NULL) : NULL;
  BjDaemonOptions options = { .bus = bus, .state_dir = state_dir, .config = config, .engine = option_engine };
  const char *wrong = choose_auth (bus, &options.auth);

  if (wrong != NULL)
    return usage (wrong);
  if (option_log_level != NULL && !bj_log_parse_level (option_log_level, &level))
    return usage ("--log-level is error, warning, message, info or debug");
  bj_log_init ("belljard", level);
  return bj_daemon_run (&options);
}

int
main (int argc, char **argv)
{
  g_autoptr(GOptionContext) context = g_option_context_new (NULL);
  g_autoptr(GError) error = NULL;

  harden ();
  /* A session's work goes through many threads; with a heap for each, every one keeps what it once needed. Saves 13 of 51 MB. */
  mallopt (M_ARENA_MAX, 2);
  setlocale (LC_ALL, "");
  g_option_context_set_summary (context, "Runs throwaway machines for Belljar and serves org.belljar1 on a bus.");
  g_option_context_add_main_entries (context, entries, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    return usage (error->message);
  if (argc > 1)
    return usage ("There are no arguments, only options");
  if (option_version)
    {
      puts ("belljard " BJ_VERSION);
      return 0;
    }
  return run ();
}
