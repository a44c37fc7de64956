/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-task.h"
#include "bj-cli-verbs.h"

#include "bj-client-wait.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <sys/ioctl.h>
#include <termios.h>

#define SHELL_SECONDS (24 * 60 * 60)
#define PIECE 4096

/* The terminal, while what is typed goes to the machine as it is. */
typedef struct
{
  struct termios before;
  gboolean raw;
  int to_guest; /* write end of the shell's standard input */
  guint source;
} Terminal;

static void
terminal_close (Terminal *terminal)
{
  g_clear_handle_id (&terminal->source, g_source_remove);
  bj_fd_clear (&terminal->to_guest);
  if (terminal->raw)
    tcsetattr (STDIN_FILENO, TCSADRAIN, &terminal->before);
  terminal->raw = FALSE;
}

static gboolean
on_typed (int fd, GIOCondition condition, gpointer user_data)
{
  Terminal *terminal = user_data;
  char piece[PIECE];
  gssize n = read (fd, piece, sizeof piece);

  if (n > 0 && bj_fd_write_all (terminal->to_guest, piece, (gsize) n, NULL))
    return G_SOURCE_CONTINUE;
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return G_SOURCE_CONTINUE;
  bj_fd_clear (&terminal->to_guest); /* the shell sees the end of its input */
  terminal->source = 0;
  return G_SOURCE_REMOVE;
}

static gboolean
terminal_open (Terminal *terminal, int to_guest, GError **error)
{
  struct termios raw;

  terminal->to_guest = to_guest;
  if (tcgetattr (STDIN_FILENO, &terminal->before) < 0)
    return bj_fd_set_io_error (error, errno, _("Looking at the terminal"));
  raw = terminal->before;
  cfmakeraw (&raw);
  if (tcsetattr (STDIN_FILENO, TCSADRAIN, &raw) < 0)
    return bj_fd_set_io_error (error, errno, _("Setting the terminal"));
  terminal->raw = TRUE;
  terminal->source = g_unix_fd_add (STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, on_typed, terminal);
  return TRUE;
}

/* A login shell on a terminal of the machine's own, as large as this one. */
static GStrv
make_command (void)
{
  struct winsize size = { .ws_row = 24, .ws_col = 80 };
  const char *term = g_getenv ("TERM");
  g_autofree char *line = NULL;
  const char *argv[] = { "script", "-qec", NULL, "/dev/null", NULL };

  ioctl (STDOUT_FILENO, TIOCGWINSZ, &size);
  if (term == NULL || strspn (term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._") != strlen (term))
    term = "linux";
  line = g_strdup_printf ("stty rows %u cols %u; TERM=%s exec bash -l", size.ws_row, size.ws_col, term);
  argv[2] = line;
  return g_strdupv ((GStrv) argv);
}

static GVariant *
make_options (GUnixFDList *fds, int input, GError **error)
{
  g_auto(GVariantDict) options = G_VARIANT_DICT_INIT (NULL);
  const struct
  {
    const char *key;
    int fd;
  } streams[] = { { "stdin", input }, { "stdout", STDOUT_FILENO }, { "stderr", STDERR_FILENO } };

  for (guint i = 0; i < G_N_ELEMENTS (streams); i++)
    {
      int handle = g_unix_fd_list_append (fds, streams[i].fd, error);

      if (handle < 0)
        return NULL;
      g_variant_dict_insert (&options, streams[i].key, "h", handle);
    }
  g_variant_dict_insert (&options, "timeout", "u", SHELL_SECONDS);
  return g_variant_dict_end (&options);
}

static int
run_shell (BjCli *cli, BjDBusSession *session, GError **error)
{
  g_autoptr(GUnixFDList) fds = g_unix_fd_list_new ();
  g_autoptr(GVariant) options = NULL;
  g_autoptr(GVariant) answer = NULL;
  g_auto(GStrv) command = make_command ();
  Terminal terminal = { .to_guest = -1 };
  int pipe_fds[2];
  int code = BJ_EXIT_ERROR;

  if (!g_unix_open_pipe (pipe_fds, FD_CLOEXEC, error))
    return -1;
  options = make_options (fds, pipe_fds[0], error);
  close (pipe_fds[0]); /* the list has a duplicate */
  if (options == NULL || !terminal_open (&terminal, pipe_fds[1], error))
    {
      terminal_close (&terminal);
      return -1;
    }
  g_variant_ref_sink (options);
  answer = bj_cli_call (cli, session, "Exec",
                        g_variant_new ("(@aay@a{sv})", g_variant_new_bytestring_array ((const char *const *) command, -1), options),
                        fds, NULL, G_MAXINT, error);
  terminal_close (&terminal);
  if (answer == NULL)
    return -1;
  g_variant_get_child (answer, 0, "i", &code);
  return code & 0xff;
}

/* Returns whether there is a machine to look into; else what there is to say was said. */
static gboolean
wait_for_failure (BjCli *cli, BjDBusSession *session, int *code, GError **error)
{
  g_autoptr(GVariant) kept = bj_cli_call_simple (cli, session, "Keep", NULL, error);
  g_autoptr(GAsyncResult) result = NULL;
  g_autofree char *json = NULL;
  g_autoptr(JsonObject) report = NULL;

  if (kept == NULL)
    return FALSE;
  bj_output_note (_("Waiting for the end of session %s"), bj_client_get_id (session));
  bj_client_wait_report_async (bj_cli_connect (cli, NULL), session, NULL, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  json = bj_client_wait_report_finish (bj_cli_connect (cli, NULL), result, NULL, error);
  report = json != NULL ? bj_report_parse (json, error) : NULL;
  if (report == NULL)
    return FALSE;
  *code = (int) bj_report_to_exit (report);
  if (*code == BJ_EXIT_ERROR || *code == BJ_EXIT_UNPROVED || *code == BJ_EXIT_REFUTED)
    return TRUE;
  bj_output_note (_("It did not fail: belljar report %s"), bj_client_get_id (session));
  return FALSE;
}

int
bj_verb_shell (BjCli *cli, char **args, GError **error)
{
  gboolean keep_failed = FALSE;
  const GOptionEntry entries[] = {
    { "keep-failed", 0, 0, G_OPTION_ARG_NONE, &keep_failed, N_("wait for the end; open the machine if the work failed"), NULL },
    { 0 },
  };
  g_autoptr(BjDBusSession) session = NULL;
  int code = -1;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  if (!isatty (STDIN_FILENO) || !isatty (STDOUT_FILENO))
    return bj_usage_error_set (error, _("A shell needs a terminal; elsewhere: belljar exec %s -- COMMAND"), args[1]);
  session = bj_cli_find_session (cli, args[1], error);
  if (session == NULL)
    return -1;
  if (keep_failed && !wait_for_failure (cli, session, &code, error))
    return code;
  return run_shell (cli, session, error);
}
