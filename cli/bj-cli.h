/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-client.h"

G_BEGIN_DECLS

/* Exit codes; the contract of DESIGN section 5. */
typedef enum
{
  BJ_EXIT_OK = 0,          /* done, proved or passes */
  BJ_EXIT_ERROR = 1,       /* an error, failed, cancelled */
  BJ_EXIT_USAGE = 2,
  BJ_EXIT_NEEDS_INPUT = 3,
  BJ_EXIT_IN_PROGRESS = 4,
  BJ_EXIT_UNPROVED = 5,    /* done, passes-here or none */
  BJ_EXIT_REFUTED = 6,     /* done, failed */
} BjExit;

/* A call that was written wrongly; main ends with BJ_EXIT_USAGE. */
#define BJ_USAGE_ERROR (bj_usage_error_quark ())
GQuark bj_usage_error_quark (void);
/** bj_usage_error_set: Returns: always -1, so that verbs can write `return bj_usage_error_set (…)` */
int bj_usage_error_set (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

typedef struct _BjCli BjCli;
typedef struct _BjCliVerb BjCliVerb;

/**
 * BjCliRun:
 * @args: (transfer none): the arguments as bytes; args[0] is the verb
 *
 * Returns: the exit code, or -1 with @error
 */
typedef int (*BjCliRun) (BjCli *cli, char **args, GError **error);

struct _BjCliVerb
{
  const char *name;    /* "task", "image build" */
  const char *usage;   /* what follows the options, "SESSION" */
  const char *summary; /* one line, translatable */
  const char *help;    /* more and an example, translatable */
  BjCliRun run;
};

/** bj_cli_new: @verb: what is to be done */
BjCli *bj_cli_new (const BjCliVerb *verb);
void bj_cli_free (BjCli *cli);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjCli, bj_cli_free)

/**
 * bj_cli_parse:
 * @entries: options; strings are G_OPTION_ARG_FILENAME, so that no locale changes bytes
 * @args: (inout): loses the options; args[0] stays the verb
 * @min: how many arguments there must be
 * @max: how many there may be
 *
 * Prints the help and ends the program for --help.
 */
gboolean bj_cli_parse (BjCli *cli, const GOptionEntry *entries, char ***args, guint min, guint max, GError **error);

/** bj_cli_connect: Returns: (transfer none): the client, connected once; %NULL with @error */
BjClient *bj_cli_connect (BjCli *cli, GError **error);

/** bj_cli_call: bj_client_call_async() to its end, while the main loop runs. @fds, @fds_out: (nullable) */
GVariant *bj_cli_call (BjCli *cli, gpointer proxy, const char *method, GVariant *parameters, GUnixFDList *fds,
                       GUnixFDList **fds_out, int timeout_ms, GError **error);

/** bj_cli_call_simple: A call without descriptors, with the default timeout. */
GVariant *bj_cli_call_simple (BjCli *cli, gpointer proxy, const char *method, GVariant *parameters, GError **error);

/** bj_cli_find_session: bj_cli_connect() and bj_client_find_session() */
BjDBusSession *bj_cli_find_session (BjCli *cli, const char *id, GError **error);

/**
 * bj_cli_await:
 * @slot: (transfer none): an operation's result; bj_cli_on_ready() fills it
 *
 * Runs the main loop until the operation is done.
 */
void bj_cli_await (GAsyncResult **slot);
/** bj_cli_on_ready: A GAsyncReadyCallback whose data is the address of the slot. */
void bj_cli_on_ready (GObject *source, GAsyncResult *result, gpointer slot);

/**
 * bj_cli_on_interrupt:
 * @func: (nullable): called in the main loop at each SIGINT with how many there were; %NULL gives SIGINT its own meaning back
 */
typedef void (*BjCliInterrupt) (guint count, gpointer user_data);
void bj_cli_on_interrupt (BjCli *cli, BjCliInterrupt func, gpointer user_data);

G_END_DECLS
