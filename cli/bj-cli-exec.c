/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include "bj-units.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <unistd.h>

#define EXIT_INTERRUPTED (128 + 2)

typedef struct
{
  char *timeout;
  char *cwd;
  char *user;
  gboolean no_stdin;
} ExecWords;

static void
exec_words_clear (ExecWords *words)
{
  g_free (words->timeout);
  g_free (words->cwd);
  g_free (words->user);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ExecWords, exec_words_clear)

/* Cuts @args at the first "--". Returns: (transfer full) (nullable): what stood behind it */
static GStrv
split_command (char **args)
{
  GStrv command;

  while (*args != NULL && !g_str_equal (*args, "--"))
    args++;
  if (*args == NULL)
    return NULL;
  command = g_strdupv (args + 1);
  for (; *args != NULL; args++)
    g_clear_pointer (args, g_free);
  return command;
}

static gboolean
add_stream (GVariantDict *dict, GUnixFDList *fds, const char *key, int fd, GError **error)
{
  int handle = g_unix_fd_list_append (fds, fd, error);

  if (handle >= 0)
    g_variant_dict_insert (dict, key, "h", handle);
  return handle >= 0;
}

static GVariant *
build_options (const ExecWords *words, GUnixFDList *fds, GError **error)
{
  g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);
  g_autoptr(GError) problem = NULL;
  guint seconds = 0;

  if (words->timeout != NULL && !bj_units_parse_duration (words->timeout, 1, &seconds, &problem))
    {
      bj_usage_error_set (error, "--timeout: %s", problem->message);
      return NULL;
    }
  if (words->timeout != NULL)
    g_variant_dict_insert (&dict, "timeout", "u", seconds);
  if (words->cwd != NULL)
    g_variant_dict_insert_value (&dict, "cwd", g_variant_new_bytestring (words->cwd));
  if (words->user != NULL && !g_utf8_validate (words->user, -1, NULL))
    {
      bj_usage_error_set (error, _("--user needs UTF-8 text"));
      return NULL;
    }
  if (words->user != NULL)
    g_variant_dict_insert (&dict, "user", "s", words->user);
  if (!words->no_stdin && !bj_output_is_terminal (STDIN_FILENO)
      && !add_stream (&dict, fds, "stdin", STDIN_FILENO, error))
    return NULL;
  if (!add_stream (&dict, fds, "stdout", STDOUT_FILENO, error)
      || !add_stream (&dict, fds, "stderr", STDERR_FILENO, error))
    return NULL;
  return g_variant_dict_end (&dict);
}

/*
 * The daemon ends a command whose caller leaves the bus. Closing the connection first makes sure that it was told before the
 * shell shows its prompt again.
 */
static void
on_interrupt (guint count, gpointer user_data)
{
  GDBusProxy *session = user_data;

  g_dbus_connection_close_sync (g_dbus_proxy_get_connection (session), NULL, NULL);
  _exit (EXIT_INTERRUPTED);
}

static int
finish (GVariant *answer)
{
  g_autoptr(GVariant) info = g_variant_get_child_value (answer, 3);
  gboolean timed_out = FALSE;
  int code = BJ_EXIT_ERROR;

  g_variant_get_child (answer, 0, "i", &code);
  g_variant_lookup (info, "timed-out", "b", &timed_out);
  if (timed_out)
    bj_output_note (_("belljar: the command was ended because its time was over"));
  return code & 0xff;
}

static int
run_exec (BjCli *cli, const char *id, char **command, const ExecWords *words, GError **error)
{
  g_autoptr(GUnixFDList) fds = g_unix_fd_list_new ();
  g_autoptr(GVariant) options = build_options (words, fds, error);
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (options == NULL)
    return -1;
  g_variant_ref_sink (options);
  session = bj_cli_find_session (cli, id, error);
  if (session == NULL)
    return -1;
  bj_cli_on_interrupt (cli, on_interrupt, session);
  answer = bj_cli_call (cli, session, "Exec",
                        g_variant_new ("(@aay@a{sv})", g_variant_new_bytestring_array ((const char *const *) command, -1),
                                       options),
                        fds, NULL, G_MAXINT, error);
  bj_cli_on_interrupt (cli, NULL, NULL);
  return answer != NULL ? finish (answer) : -1;
}

int
bj_verb_exec (BjCli *cli, char **args, GError **error)
{
  g_auto(ExecWords) words = { 0 };
  const GOptionEntry entries[] = {
    { "timeout", 't', 0, G_OPTION_ARG_FILENAME, &words.timeout, N_("end the command after this time"), N_("DURATION") },
    { "cwd", 0, 0, G_OPTION_ARG_FILENAME, &words.cwd, N_("folder in the machine"), N_("FOLDER") },
    { "user", 'u', 0, G_OPTION_ARG_FILENAME, &words.user, N_("user in the machine"), N_("NAME") },
    { "no-stdin", 'n', 0, G_OPTION_ARG_NONE, &words.no_stdin, N_("do not pass standard input on"), NULL },
    { 0 },
  };
  g_auto(GStrv) command = split_command (args);

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  if (command == NULL || command[0] == NULL)
    return bj_usage_error_set (error, _("Write the command behind “--”: belljar exec %s -- uname -a"), args[1]);
  return run_exec (cli, args[1], command, &words, error);
}
