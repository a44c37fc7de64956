/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-spawn.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define DEFAULT_MAX_OUTPUT (1024 * 1024)
#define ERROR_TAIL 2000

/* What one run holds while it lasts. */
typedef struct
{
  const BjSpawn *spawn;
  GPid pid;
  int in, out, err;
  gsize written;
  GByteArray *output; /* (owned) */
  GString *line;      /* (owned): of standard error, not yet complete */
  GString *tail;      /* (owned): end of standard error */
  gint64 deadline;    /* monotonic microseconds; 0: none */
} BjRun;

static void
child_setup (gpointer data)
{
  const BjSpawn *spawn = data;

  setpgid (0, 0);
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < 4 && spawn->pass_fd[i] > 0; i++)
    fcntl (spawn->pass_fd[i], F_SETFD, 0);
  if (!spawn->set_uid)
    return;
  if (setgroups (0, NULL) < 0 || setresgid (spawn->gid, spawn->gid, spawn->gid) < 0
      || setresuid (spawn->uid, spawn->uid, spawn->uid) < 0)
    _exit (127);
}

static gboolean
start (BjRun *run, GError **error)
{
  const BjSpawn *spawn = run->spawn;
  int targets[4] = { 3, 4, 5, 6 };
  gsize n_fds = 0;

  while (n_fds < 4 && spawn->pass_fd[n_fds] > 0)
    n_fds++;
  if (!g_spawn_async_with_pipes_and_fds (NULL, spawn->argv, spawn->environ,
                                         G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH | G_SPAWN_CLOEXEC_PIPES,
                                         child_setup, (gpointer) spawn, -1, -1, -1, spawn->pass_fd, targets, n_fds,
                                         &run->pid, &run->in, &run->out, &run->err, error))
    return FALSE;
  fcntl (run->in, F_SETFL, O_NONBLOCK);
  return TRUE;
}

static void
feed_input (BjRun *run)
{
  gsize size = 0;
  const guint8 *data = run->spawn->input ? g_bytes_get_data (run->spawn->input, &size) : NULL;
  gssize n = 0;

  if (run->written < size)
    n = write (run->in, data + run->written, size - run->written);
  if (n > 0)
    run->written += (gsize) n;
  if (run->written >= size || (n < 0 && errno != EAGAIN && errno != EINTR))
    bj_fd_clear (&run->in);
}

static void
finish_line (BjRun *run)
{
  g_autofree char *text = g_utf8_make_valid (run->line->str, (gssize) run->line->len);

  if (run->spawn->on_line != NULL)
    run->spawn->on_line (text, run->spawn->user_data);
  g_string_append_printf (run->tail, "%s\n", text);
  if (run->tail->len > 2 * ERROR_TAIL)
    g_string_erase (run->tail, 0, (gssize) (run->tail->len - ERROR_TAIL));
  g_string_truncate (run->line, 0);
}

static void
take_error_output (BjRun *run)
{
  char buffer[4096];
  gssize n = read (run->err, buffer, sizeof buffer);

  if (n < 0 && errno == EINTR)
    return;
  if (n <= 0)
    {
      bj_fd_clear (&run->err);
      return;
    }
  for (gssize i = 0; i < n; i++)
    if (buffer[i] == '\n' || run->line->len > ERROR_TAIL)
      finish_line (run);
    else
      g_string_append_c (run->line, buffer[i]);
}

static gboolean
take_output (BjRun *run, GError **error)
{
  guint8 buffer[65536];
  gsize max = run->spawn->max_output ? run->spawn->max_output : DEFAULT_MAX_OUTPUT;
  gssize n = read (run->out, buffer, sizeof buffer);

  if (n < 0 && errno == EINTR)
    return TRUE;
  if (n <= 0)
    bj_fd_clear (&run->out);
  else if (run->output->len + (gsize) n > max)
    return bj_error_set (error, BJ_ERROR_LIMIT, "%s printed more than %" G_GSIZE_FORMAT " bytes", run->spawn->argv[0],
                         max);
  else
    g_byte_array_append (run->output, buffer, (guint) n);
  return TRUE;
}

static gboolean
pump_once (BjRun *run, GCancellable *cancellable, GError **error)
{
  struct pollfd fds[3] = { { run->in, POLLOUT, 0 }, { run->out, POLLIN, 0 }, { run->err, POLLIN, 0 } };

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (run->deadline != 0 && g_get_monotonic_time () > run->deadline)
    return bj_error_set (error, BJ_ERROR_FAILED, "%s did not end within %u seconds", run->spawn->argv[0],
                         run->spawn->timeout_s);
  if (poll (fds, 3, run->out < 0 && run->err < 0 ? 2 : 50) <= 0)
    return TRUE;
  if (fds[0].revents != 0)
    feed_input (run);
  if (fds[2].revents != 0)
    take_error_output (run);
  return fds[1].revents == 0 || take_output (run, error);
}

static gboolean
wait_end (BjRun *run, GCancellable *cancellable, int *status, GError **error)
{
  for (;;)
    {
      pid_t done;

      if (!pump_once (run, cancellable, error))
        break;
      done = waitpid (run->pid, status, WNOHANG);
      if (done == run->pid)
        return TRUE;
    }
  kill (-run->pid, SIGKILL);
  waitpid (run->pid, status, 0);
  return FALSE;
}

/* The program is gone: take what still stands in its pipes, but do not wait for a grandchild that holds them. */
static gboolean
drain (BjRun *run, GError **error)
{
  struct pollfd fd = { -1, POLLIN, 0 };

  kill (-run->pid, SIGKILL);
  for (fd.fd = run->out; run->out >= 0 && poll (&fd, 1, 0) > 0;)
    if (!take_output (run, error))
      return FALSE;
  for (fd.fd = run->err; run->err >= 0 && poll (&fd, 1, 0) > 0;)
    take_error_output (run);
  if (run->line->len > 0)
    finish_line (run);
  return TRUE;
}

static gboolean
judge (BjRun *run, int status, GError **error)
{
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    return TRUE;
  g_strchomp (run->tail->str);
  if (WIFSIGNALED (status))
    return bj_error_set (error, BJ_ERROR_FAILED, "%s was ended by signal %d: %s", run->spawn->argv[0],
                         WTERMSIG (status), run->tail->str);
  return bj_error_set (error, BJ_ERROR_FAILED, "%s failed with exit code %d: %s", run->spawn->argv[0],
                       WEXITSTATUS (status), run->tail->str);
}

gboolean
bj_spawn_run (const BjSpawn *spawn, GBytes **output, GCancellable *cancellable, GError **error)
{
  BjRun run = { .spawn = spawn, .in = -1, .out = -1, .err = -1 };
  int status = 0;
  gboolean ok = FALSE;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (spawn->timeout_s > 0)
    run.deadline = g_get_monotonic_time () + (gint64) spawn->timeout_s * G_USEC_PER_SEC;
  if (!start (&run, error))
    return FALSE;
  run.output = g_byte_array_new ();
  run.line = g_string_new (NULL);
  run.tail = g_string_new (NULL);
  ok = wait_end (&run, cancellable, &status, error) && drain (&run, error) && judge (&run, status, error);

  bj_fd_clear (&run.in);
  bj_fd_clear (&run.out);
  bj_fd_clear (&run.err);
  g_string_free (run.line, TRUE);
  g_string_free (run.tail, TRUE);
  if (ok && output != NULL)
    *output = g_byte_array_free_to_bytes (run.output);
  else
    g_byte_array_unref (run.output);
  return ok;
}
