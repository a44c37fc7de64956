/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* The independent re-run of the check: DESIGN section 7. Each run is recorded; what it means is evidence/bj-verdict.c's. */

#include "bj-work-boot.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-record.h"
#include "bj-session-command.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define CHECK_MAX_S 900
#define SETUP_MAX_S 900
#define UNPACK_MAX_S 300
#define OUTPUT_CAP (64 * 1024)
#define CHECK_USER "check"

static const char *const check_environ[] = {
  "HOME=/home/check",
  "LANG=C.UTF-8",
  "TERM=dumb",
  "PATH=/usr/local/bin:/usr/bin:/bin",
  NULL,
};

/* One run of the check somewhere. */
typedef struct
{
  BjWork *work;
  const char *where; /* same, fresh, baseline or protected */
  const char *tree;
  BjMachine *machine;
  gint64 begun;   /* monotonic: when the check itself was; 0: it was not */
  BjCable *cable; /* (nullable): the machine has no network card */
  GCancellable *cancellable;
} BjCheckRun;

static void
record_run (BjCheckRun *run, const BjExecResult *result, gboolean setup_failed, const GError *failure)
{
  BjWork *work = run->work;
  BjCheckRunFacts facts = {
    .where = run->where,
    .tree = run->tree,
    .exit = -1,
    .network = work->settings.network && work->network,
    .command = work->check,
    .source = work->check_source,
    .setup = work->setup,
    .setup_failed = setup_failed,
  };
  g_autoptr(BjCapture) output = bj_capture_new (0, OUTPUT_CAP);

  if (failure != NULL)
    {
      facts.failure = failure->message;
      facts.stopped = g_cancellable_is_cancelled (run->cancellable);
      facts.lost = run->begun != 0 && result->sent;
      facts.duration_s = facts.lost ? (double) (g_get_monotonic_time () - run->begun) / G_USEC_PER_SEC : 0;
    }
  else
    {
      gsize size;
      gconstpointer data = g_bytes_get_data (result->out, &size);

      bj_capture_append (output, data, size);
      data = g_bytes_get_data (result->err, &size);
      bj_capture_append (output, data, size);
      facts.exit = result->exit;
      facts.signal = result->signal;
      facts.timed_out = result->timed_out;
      facts.duration_s = result->duration_s;
    }
  facts.output = bj_capture_dup_bytes (output);
  bj_session_record (work->session, TRUE, "check-run", bj_record_check_run (&facts));
  g_bytes_unref (facts.output);
}

static gboolean
run_as_root (BjCheckRun *run, const char *script, const char *argument, guint timeout_s, BjExecResult *result,
             GError **error)
{
  const char *argv[] = { "/bin/bash", "-c", script, "belljar", argument, NULL };
  const BjExec exec = { .argv = argv, .environ = bj_session_environ, .timeout_s = timeout_s, .cap = OUTPUT_CAP, .cwd = "/" };

  return bj_guest_exec (bj_machine_get_guest (run->machine), &exec, result, run->cancellable, error);
}

/* Like run_as_root(), but a script of ours that fails is an error. */
static gboolean
must_run (BjCheckRun *run, const char *what, const char *script, guint timeout_s, GError **error)
{
  g_autofree char *folder = g_strconcat ("/work/", run->work->plan->project, NULL);
  g_auto(BjExecResult) result = { 0 };

  if (!run_as_root (run, script, folder, timeout_s, &result, error))
    return FALSE;
  if (result.exit == 0)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_FAILED, "%s in the machine failed (exit %d)", what, result.exit);
}

static gboolean
run_check (BjCheckRun *run, BjExecResult *result, GError **error)
{
  BjWork *work = run->work;
  g_autofree char *folder = g_strconcat ("/work/", work->plan->project, NULL);
  const char *argv[] = { "/bin/bash", "-c", work->check, NULL };
  const BjExec exec = {
    .argv = argv,
    .cwd = folder,
    .environ = check_environ,
    .user = CHECK_USER,
    .timeout_s = CHECK_MAX_S,
    .cap = OUTPUT_CAP,
    .no_new_privileges = TRUE,
  };

  run->begun = g_get_monotonic_time ();
  return bj_guest_exec (bj_machine_get_guest (run->machine), &exec, result, run->cancellable, error);
}

/* Setup with network, then the check without it (unless the project's settings say otherwise). */
static gboolean
run_in_machine (BjCheckRun *run, BjExecResult *result, gboolean *setup_failed, GError **error)
{
  BjWork *work = run->work;
  g_autofree char *folder = g_strconcat ("/work/", work->plan->project, NULL);

  if (work->setup != NULL)
    {
      g_autofree char *script = g_strdup_printf ("cd \"$1\" && %s", work->setup);

      if (!run_as_root (run, script, folder, SETUP_MAX_S, result, error))
        return FALSE;
      *setup_failed = result->exit != 0;
      if (*setup_failed)
        return TRUE;
      bj_exec_result_clear (result);
      memset (result, 0, sizeof *result);
    }
  if (run->cable != NULL && !bj_cable_set (run->cable, work->settings.network, error))
    return FALSE;
  return run_check (run, result, error);
}

/* The tree as a tar archive that only we can read, and then the machine; it becomes /dev/vdb. */
static char *
export_tree (BjCheckRun *run, const char *suffix, GError **error)
{
  BjWork *work = run->work;
  g_autofree char *name = g_strconcat ("tree", suffix, ".tar", NULL);
  g_autofree char *path = bj_session_dup_dir (work->session, name);
  g_auto(BjFd) fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Making %s", path);
      return NULL;
    }
  if (!bj_project_store_export_tar (work->context->projects, work->plan->project, run->tree, fd, run->cancellable, error))
    return NULL;
  return g_steal_pointer (&path);
}

static gboolean
boot_with_tree (BjCheckRun *run, const char *tar, const char *suffix, GError **error)
{
  BjWork *work = run->work;
  g_autoptr(BjMachineSpec) spec = bj_work_make_spec (work, suffix, 0);
  BjBoot boot = { .spec = spec, .cancellable = run->cancellable };

  spec->data_disk = g_strdup (tar);
  spec->network = work->network && (work->setup != NULL || work->settings.network);
  if (!bj_work_boot (work, &boot, &run->machine, error))
    return FALSE;
  run->cable = g_steal_pointer (&boot.cable);
  return must_run (run, "Unpacking the tree",
                   "mkdir -p \"$1\" && tar -xf /dev/vdb -C \"$1\" --no-same-owner && chown -R check: \"$1\"",
                   UNPACK_MAX_S, error);
}

static BjRun
judge (const BjExecResult *result, gboolean setup_failed, const GError *failure)
{
  if (failure != NULL)
    return BJ_RUN_MACHINE;
  if (!setup_failed && !result->timed_out && result->exit == 0)
    return BJ_RUN_PASSED;
  if (setup_failed)
    return BJ_RUN_SETUP;
  if (result->timed_out)
    return BJ_RUN_TIMEOUT;
  if (result->exit < 1 || result->exit > 125)
    return BJ_RUN_UNCLEAN;
  return BJ_RUN_FAILED;
}

/* A machine of its own for one run: made, used, destroyed. */
static BjRun
run_fresh (BjWork *work, const char *where, const char *suffix, const char *tree)
{
  BjCheckRun run = { .work = work, .where = where, .tree = tree, .cancellable = bj_session_get_hurry (work->session) };
  g_auto(BjExecResult) result = { 0 };
  g_autoptr(GError) failure = NULL;
  g_autofree char *tar = NULL;
  gboolean setup_failed = FALSE;

  bj_session_set_activity (work->session, "checking in a fresh machine (%s)", where);
  tar = export_tree (&run, suffix, &failure);
  if (tar != NULL && boot_with_tree (&run, tar, suffix, &failure))
    run_in_machine (&run, &result, &setup_failed, &failure);
  record_run (&run, &result, setup_failed, failure);
  if (failure != NULL)
    g_message ("Session %s: the %s check could not run: %s", work->plan->id, where, failure->message);

  g_clear_pointer (&run.cable, bj_cable_free);
  if (run.machine != NULL)
    bj_teardown_add (work->context->teardown, g_steal_pointer (&run.machine));
  if (tar != NULL)
    unlink (tar);
  return judge (&result, setup_failed, failure);
}

static void
settle_agent_check (BjWork *work)
{
  g_autofree char *command = NULL;
  g_autofree char *setup = NULL;

  if (work->check != NULL || !bj_session_dup_agent_check (work->session, &command, &setup))
    return;
  work->check = g_steal_pointer (&command);
  work->check_source = "agent";
  if (work->setup == NULL && setup != NULL && *setup != '\0')
    work->setup = g_steal_pointer (&setup);
}

void
bj_work_check_same (BjWork *work)
{
  BjCheckRun run = { .work = work, .where = "same", .machine = work->machine, .cable = work->cable,
                     .cancellable = bj_session_get_hurry (work->session) };
  g_auto(BjExecResult) result = { 0 };
  g_autoptr(GError) failure = NULL;

  settle_agent_check (work);
  if (work->check == NULL || work->plan->project == NULL || work->machine == NULL)
    return;
  bj_session_set_activity (work->session, "checking in the session's own machine");
  /* On a copy, so that what the check writes does not get into the tree; at the same path, by a bind mount over the share. */
  if (must_run (&run, "Copying the project",
                "rm -rf /var/tmp/belljar-same && mkdir /var/tmp/belljar-same && cp -a \"$1/.\" /var/tmp/belljar-same/"
                " && chown -R check: /var/tmp/belljar-same && mount --bind /var/tmp/belljar-same \"$1\"",
                UNPACK_MAX_S, &failure)
      && (run.cable == NULL || bj_cable_set (run.cable, work->settings.network, &failure)))
    run_check (&run, &result, &failure);
  record_run (&run, &result, FALSE, failure);
  work->same = judge (&result, FALSE, failure);
}

/* The baseline's run, beside the fresh one: both need the same seconds to start a machine. */
typedef struct
{
  BjWork *work;
  GThread *thread; /* (nullable): there is no baseline */
} BjBaselineRun;

static gpointer
baseline_thread (gpointer data)
{
  BjBaselineRun *run = data;

  run_fresh (run->work, "baseline", "-b", run->work->baseline_tree);
  return NULL;
}

void
bj_work_verify (BjWork *work)
{
  gint64 begun = g_get_monotonic_time ();
  BjBaselineRun baseline = { .work = work };
  BjRun fresh;

  settle_agent_check (work);
  if (work->check == NULL || work->tree == NULL)
    return;
  if (work->baseline_tree != NULL)
    baseline.thread = g_thread_new ("baseline-check", baseline_thread, &baseline);
  fresh = run_fresh (work, "fresh", "-f", work->tree);
  g_clear_pointer (&baseline.thread, g_thread_join);
  /* Once more: either it is flaky, or it really fails in a fresh machine. The first one's end may still go on, hence the other name. */
  if (fresh != BJ_RUN_PASSED && fresh != BJ_RUN_MACHINE && work->same == BJ_RUN_PASSED)
    run_fresh (work, "fresh", "-g", work->tree);
  if (fresh == BJ_RUN_PASSED && work->protected_tree != NULL && !g_str_equal (work->protected_tree, work->tree))
    run_fresh (work, "protected", "-p", work->protected_tree);
  bj_session_note_time (work->session, "verify", begun);
}
