/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-session-command.h"

#include "bj-error.h"
#include "bj-record.h"
#include "bj-untrusted.h"

#include <string.h>

#define ARGV_MAX 1024
#define ARGV_BYTES_MAX (256 * 1024)
#define ACTIVITY_MAX 120

const char *const bj_session_environ[] = {
  "HOME=/root",
  "LANG=C.UTF-8",
  "TERM=dumb",
  "DEBIAN_FRONTEND=noninteractive",
  "PYTHONDONTWRITEBYTECODE=1", /* or every run of a test would leave files in the project */
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  NULL,
};

static void
record (BjSession *self, const char *tool, GBytes *command, const BjExecResult *result, double waited_s,
        const GError *failure)
{
  BjCommandFacts facts = { .tool = tool, .command = command, .exit = -1 };

  if (failure != NULL)
    {
      facts.failure = failure->message;
      facts.lost = result->sent;
      facts.duration_s = result->sent ? waited_s : 0;
    }
  else
    {
      facts.exit = result->exit;
      facts.signal = result->signal;
      facts.timed_out = result->timed_out;
      facts.duration_s = result->duration_s;
      facts.out = result->out;
      facts.err = result->err;
      facts.out_total = result->out_total;
      facts.err_total = result->err_total;
      facts.out_sha256 = result->out_sha256;
      facts.truncated = result->truncated;
    }
  bj_session_record (self, TRUE, "command", bj_record_command (&facts));
}

static gboolean
run_in_guest (BjSession *self, BjMachine *machine, const BjExec *exec, const int *stream, BjExecResult *result,
              GCancellable *cancellable, GError **error)
{
  BjGuest *guest = bj_machine_get_guest (machine);
  g_autoptr(GError) failure = NULL;
  BjMachineState state;
  gboolean ok;

  if (stream != NULL)
    ok = bj_guest_exec_stream (guest, exec, stream[0], stream[1], stream[2], result, cancellable, &failure);
  else
    ok = bj_guest_exec (guest, exec, result, cancellable, &failure);
  if (ok)
    return TRUE;
  if (bj_session_get_end (self) != BJ_END_MACHINE && bj_session_set_over_error (self, error))
    return FALSE;
  state = bj_machine_get_state (machine);
  if (state == BJ_MACHINE_STATE_ABSENT)
    bj_session_end_work (self, BJ_END_MACHINE, bj_error_get_name (BJ_ERROR_GUEST_UNREACHABLE),
                         "The machine was gone: it was powered off or it crashed");
  if (state != BJ_MACHINE_STATE_NO_SPACE || !g_error_matches (failure, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE))
    {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
  return bj_session_set_stall_error (self, error);
}

gboolean
bj_session_run_command (BjSession *self, const char *tool, GBytes *command, const BjExec *exec, const int *stream,
                        BjExecResult *result, GCancellable *cancellable, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autofree char *shown = bj_untrusted_escape (g_bytes_get_data (command, NULL), (gssize) g_bytes_get_size (command),
                                                ACTIVITY_MAX);
  g_autoptr(BjMachine) machine = NULL;
  gint64 begun;

  if (!bj_session_wait_unpaused (self, error) || (machine = bj_session_dup_machine (self, error)) == NULL)
    return FALSE;
  bj_session_set_activity (self, "%s: %s", tool, shown);
  begun = g_get_monotonic_time ();
  run_in_guest (self, machine, exec, stream, result, cancellable, &failure);
  record (self, tool, command, result, (double) (g_get_monotonic_time () - begun) / G_USEC_PER_SEC, failure);
  bj_session_note_command (self);
  bj_session_set_activity (self, "thinking");
  if (failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
bj_session_run_in_kept (BjSession *self, const BjExec *exec, const int *stream, BjExecResult *result,
                        GCancellable *cancellable, GError **error)
{
  g_autoptr(BjMachine) machine = bj_session_begin_kept_use (self, error);
  BjGuest *guest = machine != NULL ? bj_machine_get_guest (machine) : NULL;
  gboolean ok;

  if (machine == NULL)
    return FALSE;
  if (stream != NULL)
    ok = bj_guest_exec_stream (guest, exec, stream[0], stream[1], stream[2], result, cancellable, error);
  else
    ok = bj_guest_exec (guest, exec, result, cancellable, error);
  bj_session_end_kept_use (self);
  return ok;
}

char *
bj_session_join_argv (const char *const *argv)
{
  GString *out = g_string_new (NULL);

  for (; *argv != NULL; argv++)
    {
      g_autofree char *quoted = g_shell_quote (*argv);
      gboolean plain = **argv != '\0'
                       && strspn (*argv, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == strlen (*argv);

      g_string_append_printf (out, "%s%s", out->len > 0 ? " " : "", plain ? *argv : quoted);
    }
  return g_string_free (out, FALSE);
}

GBytes *
bj_session_describe_exec (const BjExec *exec)
{
  const char *const *argv = exec->argv;
  gboolean is_shell = g_str_equal (argv[0], "/bin/bash") && g_strcmp0 (argv[1], "-c") == 0 && argv[2] != NULL && argv[3] == NULL;
  g_autofree char *line = is_shell ? g_strdup (argv[2]) : bj_session_join_argv (argv);
  GByteArray *whole = g_byte_array_new ();

  g_byte_array_append (whole, (const guint8 *) line, (guint) strlen (line));
  if (exec->input != NULL && g_bytes_get_size (exec->input) > 0)
    {
      g_byte_array_append (whole, (const guint8 *) "\n", 1);
      g_byte_array_append (whole, g_bytes_get_data (exec->input, NULL), (guint) g_bytes_get_size (exec->input));
    }
  return g_byte_array_free_to_bytes (whole);
}

GStrv
bj_session_dup_argv (GVariant *bytes, GError **error)
{
  gsize n = g_variant_n_children (bytes);
  g_auto(GStrv) argv = NULL;

  if (n == 0 || n > ARGV_MAX || g_variant_get_size (bytes) > ARGV_BYTES_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "A command has 1 to %d arguments and at most %d bytes", ARGV_MAX,
                    ARGV_BYTES_MAX);
      return NULL;
    }
  argv = g_new0 (char *, n + 1);
  for (gsize i = 0; i < n; i++)
    {
      g_autoptr(GVariant) item = g_variant_get_child_value (bytes, i);
      gsize length;
      const char *data = g_variant_get_fixed_array (item, &length, 1);

      if (length > 0 && data[length - 1] == '\0')
        length--;
      if (length > 0 && memchr (data, '\0', length) != NULL)
        {
          bj_error_set (error, BJ_ERROR_INVALID, "Argument %" G_GSIZE_FORMAT " of the command has a NUL byte in it", i);
          return NULL;
        }
      argv[i] = length > 0 ? g_strndup (data, length) : g_strdup (""); /* an empty array has no data */
    }
  if (argv[0][0] == '\0')
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The command is empty");
      return NULL;
    }
  return g_steal_pointer (&argv);
}
