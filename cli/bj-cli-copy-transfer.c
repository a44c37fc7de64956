/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-copy.h"

#include "bj-cli-output.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-units.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <string.h>

#define REDRAW_MS 500
#define TIMEOUT_S (24u * 60 * 60) /* the longest that the daemon allows */

/* Pipes by who holds which end. */
typedef struct
{
  BjFd guest;       /* the machine's, out: writes, in: reads */
  BjFd ours;        /* its other end */
  BjFd child;       /* the program's here */
  BjFd ours_child;  /* its other end */
  BjFd guest_err;   /* the machine's standard error */
  BjFd child_err;
  BjFd child_facts; /* standard output of a program that reads */
} BjPipes;

static void
pipes_clear (BjPipes *pipes)
{
  bj_fd_clear (&pipes->guest);
  bj_fd_clear (&pipes->ours);
  bj_fd_clear (&pipes->child);
  bj_fd_clear (&pipes->ours_child);
  bj_fd_clear (&pipes->guest_err);
  bj_fd_clear (&pipes->child_err);
  bj_fd_clear (&pipes->child_facts);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjPipes, pipes_clear)

void
bj_copy_ends_clear (BjCopyEnds *ends)
{
  g_free (ends->guest_text);
  g_free (ends->child_text);
  g_free (ends->child_facts);
}

static gboolean
make_pipe (int *reader, int *writer, GError **error)
{
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return bj_fd_set_io_error (error, errno, _("Making a pipe"));
  fcntl (ends[1], F_SETPIPE_SZ, 1 << 20); /* fewer turns; not given is no harm */
  *reader = ends[0];
  *writer = ends[1];
  return TRUE;
}

/* Returns: (transfer full) (nullable): something that listens at the other end of *@writer */
static BjHeard *
listen_to (int *writer, GError **error)
{
  int reader;

  return make_pipe (&reader, writer, error) ? bj_heard_new (reader) : NULL;
}

static char *
dup_first_line (const char *text)
{
  return g_strndup (text, strcspn (text, "\n"));
}

static GVariant *
build_options (BjCopy *self, GUnixFDList *fds, const char *const *keys, const int *wanted, GError **error)
{
  g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);

  g_variant_dict_insert (&dict, "timeout", "u", TIMEOUT_S);
  if (self->user != NULL)
    g_variant_dict_insert (&dict, "user", "s", self->user);
  for (guint i = 0; keys != NULL && keys[i] != NULL; i++)
    {
      int handle = g_unix_fd_list_append (fds, wanted[i], error);

      if (handle < 0)
        return NULL;
      g_variant_dict_insert (&dict, keys[i], "h", handle);
    }
  return g_variant_dict_end (&dict);
}

static gboolean
start_guest (BjCopy *self, const char *const *argv, const char *const *keys, const int *wanted, GAsyncResult **slot,
             GError **error)
{
  g_autoptr(GUnixFDList) fds = g_unix_fd_list_new ();
  GVariant *options = build_options (self, fds, keys, wanted, error);
  BjClient *client = bj_cli_connect (self->cli, error);

  if (options == NULL || client == NULL)
    return FALSE;
  bj_client_call_async (client, self->session, "Exec",
                        g_variant_new ("(@aay@a{sv})", g_variant_new_bytestring_array (argv, -1), options), fds, G_MAXINT,
                        NULL, bj_cli_on_ready, slot);
  return TRUE;
}

static gboolean
finish_guest (BjCopy *self, GAsyncResult *result, int *code, char **text, GError **error)
{
  g_autoptr(GVariant) answer = bj_client_call_finish (bj_cli_connect (self->cli, NULL), result, NULL, error);
  g_autoptr(GVariant) complaint = NULL;
  g_autofree char *whole = NULL;
  gsize size;

  if (answer == NULL)
    return FALSE;
  g_variant_get_child (answer, 0, "i", code);
  complaint = g_variant_get_child_value (answer, 2);
  size = g_variant_get_size (complaint);
  whole = size > 0 ? g_strndup (g_variant_get_data (complaint), size) : g_strdup (""); /* an empty array has no data */
  if (text != NULL)
    *text = dup_first_line (whole);
  return TRUE;
}

int
bj_copy_run_small (BjCopy *self, const char *const *guest, char **text, GError **error)
{
  g_autoptr(GAsyncResult) result = NULL;
  int code = -1;

  if (!start_guest (self, guest, NULL, NULL, &result, error))
    return -1;
  bj_cli_await (&result);
  return finish_guest (self, result, &code, text, error) ? code : -1;
}

static gboolean
start_child (BjCopy *self, const char *const *argv, const char *folder, gboolean out, BjPipes *pipes, GError **error)
{
  g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);

  if (folder != NULL)
    g_subprocess_launcher_set_cwd (launcher, folder);
  if (out)
    {
      g_subprocess_launcher_take_stdin_fd (launcher, g_steal_fd (&pipes->child));
      g_subprocess_launcher_take_stdout_fd (launcher, g_steal_fd (&pipes->child_facts));
    }
  else
    g_subprocess_launcher_take_stdout_fd (launcher, g_steal_fd (&pipes->child));
  g_subprocess_launcher_take_stderr_fd (launcher, g_steal_fd (&pipes->child_err));
  self->child = g_subprocess_launcher_spawnv (launcher, argv, error);
  return self->child != NULL;
}

static gboolean
on_tick (gpointer data)
{
  BjCopy *self = data;
  guint64 bytes = bj_flow_get_bytes (self->flow);
  double seconds = (double) MAX (g_get_monotonic_time () - self->begun, 1) / G_USEC_PER_SEC;
  g_autofree char *size = bj_output_format_size (bytes);
  g_autofree char *rate = bj_output_format_size ((guint64) ((double) bytes / seconds));
  g_autofree char *detail = g_strdup_printf ("%s  %s/s", size, rate);

  bj_status_set (self->status, _("copying"), detail);
  return G_SOURCE_CONTINUE;
}

static void
await_flow (BjCopy *self)
{
  while (!bj_flow_is_done (self->flow))
    g_main_context_iteration (NULL, TRUE);
}

/* To the end of all three: the command in the machine, the bytes, the program here. */
static gboolean
await_all (BjCopy *self, GAsyncResult **guest, gboolean out, BjCopyEnds *ends, GError **error)
{
  guint tick = bj_output_is_terminal (2) ? g_timeout_add (REDRAW_MS, on_tick, self) : 0;
  g_autoptr(GAsyncResult) child = NULL;
  gboolean ok;

  g_subprocess_wait_async (self->child, NULL, bj_cli_on_ready, &child);
  bj_cli_await (guest);
  ok = finish_guest (self, *guest, &ends->guest_code, NULL, error);
  if (!ok || !out)
    bj_flow_stop (self->flow); /* nobody takes more */
  await_flow (self);
  if (!ok)
    g_subprocess_force_exit (self->child);
  bj_cli_await (&child);
  g_subprocess_wait_finish (self->child, child, NULL);
  ends->child_code = g_subprocess_get_if_exited (self->child) ? g_subprocess_get_exit_status (self->child) : -1;
  ends->broken = bj_flow_is_broken (self->flow);
  self->bytes = bj_flow_get_bytes (self->flow);
  g_clear_handle_id (&tick, g_source_remove);
  bj_status_clear (self->status);
  return ok;
}

static gboolean
make_pipes (BjPipes *pipes, gboolean out, GError **error)
{
  return out ? make_pipe (&pipes->ours, &pipes->guest, error) && make_pipe (&pipes->child, &pipes->ours_child, error)
             : make_pipe (&pipes->guest, &pipes->ours, error) && make_pipe (&pipes->ours_child, &pipes->child, error);
}

gboolean
bj_copy_transfer (BjCopy *self, const char *const *guest, const char *const *local, const char *folder, gboolean out,
                  BjCopyEnds *ends, GError **error)
{
  const char *const keys[] = { out ? "stdout" : "stdin", "stderr", NULL };
  g_auto(BjPipes) pipes = { -1, -1, -1, -1, -1, -1, -1 };
  g_autoptr(BjHeard) guest_heard = listen_to (&pipes.guest_err, error);
  g_autoptr(BjHeard) child_heard = guest_heard != NULL ? listen_to (&pipes.child_err, error) : NULL;
  g_autoptr(BjHeard) facts_heard = child_heard != NULL ? listen_to (&pipes.child_facts, error) : NULL;
  g_autoptr(GAsyncResult) result = NULL;
  gboolean ok;

  if (facts_heard == NULL || !make_pipes (&pipes, out, error)
      || !start_child (self, local, folder, out, &pipes, error)
      || !start_guest (self, guest, keys, (const int[]){ pipes.guest, pipes.guest_err }, &result, error))
    return FALSE;
  self->begun = g_get_monotonic_time ();
  self->flow = out ? bj_flow_new (g_steal_fd (&pipes.ours), g_steal_fd (&pipes.ours_child))
                   : bj_flow_new (g_steal_fd (&pipes.ours_child), g_steal_fd (&pipes.ours));
  pipes_clear (&pipes); /* who is left without a reader or writer has to notice */
  if (self->interrupted)
    bj_flow_stop (self->flow);
  ok = await_all (self, &result, out, ends, error);
  g_clear_pointer (&self->flow, bj_flow_free);
  g_clear_object (&self->child);
  if (self->interrupted)
    {
      g_clear_error (error);
      return bj_error_set (error, BJ_ERROR_CANCELLED, _("Interrupted: nothing was copied"));
    }
  if (!ok)
    return FALSE;
  ends->guest_text = dup_first_line (bj_heard_finish (guest_heard));
  ends->child_text = dup_first_line (bj_heard_finish (child_heard));
  ends->child_facts = g_strdup (bj_heard_finish (facts_heard));
  return TRUE;
}
