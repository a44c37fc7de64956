/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-image-smoke.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-guest.h"
#include "bj-machine.h"
#include "bj-name.h"

#include <string.h>

#define SMOKE_MEMORY_MIB 1024
#define ERROR_TAIL 1500

static BjMachineSpec *
make_spec (const BjImageBuild *build)
{
  BjMachineSpec *spec = g_new0 (BjMachineSpec, 1);
  g_autofree char *id = bj_name_new_id ();

  spec->id = g_strdup_printf ("smoke-%s", id);
  spec->slot = build->slot;
  spec->run_dir = g_build_filename (build->dir, "run", NULL);
  spec->base = g_build_filename (build->dir, "disk.qcow2", NULL);
  spec->kernel = g_build_filename (build->dir, "vmlinuz", NULL);
  spec->initrd = g_build_filename (build->dir, "initrd", NULL);
  spec->cmdline = g_strdup (build->recipe->cmdline);
  spec->tablet = build->recipe->desktop;
  spec->hostname = g_strdup ("smoke");
  spec->memory_mib = SMOKE_MEMORY_MIB;
  spec->cpus = 1;
  return spec;
}

static void
log_bytes (int log, GBytes *bytes)
{
  gsize size = 0;
  gconstpointer data = bytes ? g_bytes_get_data (bytes, &size) : NULL;

  if (log >= 0 && size > 0)
    (void) bj_fd_write_all (log, data, size, NULL);
}

static gboolean
judge (const BjExecResult *result, GError **error)
{
  gsize size = 0;
  const char *data = result->err ? g_bytes_get_data (result->err, &size) : "";
  gsize skip = size > ERROR_TAIL ? size - ERROR_TAIL : 0;
  g_autofree char *tail = g_utf8_make_valid (data + skip, (gssize) (size - skip));

  if (result->timed_out)
    return bj_error_set (error, BJ_ERROR_FAILED, "The image's smoke test did not end in time: %s", tail);
  if (result->exit != 0)
    return bj_error_set (error, BJ_ERROR_FAILED, "The image's smoke test failed with exit code %d: %s", result->exit,
                         tail);
  return TRUE;
}

static gboolean
run_script (const BjImageBuild *build, BjMachine *machine, const char *dir, const char *name, int log, GCancellable *cancellable,
            GError **error)
{
  static const char *const argv[] = { "/bin/sh", "-s", NULL };
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autofree char *script = NULL;
  g_autoptr(GBytes) input = NULL;
  g_auto(BjExecResult) result = { 0 };
  gsize length;
  BjExec exec = { .argv = argv, .cwd = "/", .timeout_s = build->recipe->smoke_timeout_s };

  if (!g_file_get_contents (path, &script, &length, error))
    return FALSE;
  input = g_bytes_new_take (g_steal_pointer (&script), length);
  exec.input = input;
  if (!bj_guest_exec (bj_machine_get_guest (machine), &exec, &result, cancellable, error))
    return FALSE;
  log_bytes (log, result.out);
  log_bytes (log, result.err);
  return judge (&result, error);
}

static gboolean
run_test (const BjImageBuild *build, BjMachine *machine, int log, GCancellable *cancellable, GError **error)
{
  const BjRecipe *recipe = build->recipe;

  return (recipe->base_dir == NULL
          || run_script (build, machine, recipe->base_dir, recipe->base_smoke, log, cancellable, error))
         && run_script (build, machine, recipe->dir, recipe->smoke, log, cancellable, error);
}

static gboolean
boot_and_test (const BjImageBuild *build, BjMachine *machine, int log, GCancellable *cancellable, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  g_autofree char *line = NULL;

  if (!bj_machine_prepare (machine, cancellable, error) || !bj_machine_start (machine, cancellable, error)
      || !bj_machine_wait_ready (machine, build->recipe->boot_timeout_s, cancellable, error))
    return FALSE;
  line = g_strdup_printf ("The agent answered after %.2f s\n",
                          (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC);
  if (log >= 0)
    (void) bj_fd_write_all (log, line, strlen (line), NULL);
  return bj_machine_setup (machine, NULL, NULL, cancellable, error) && run_test (build, machine, log, cancellable, error);
}

gboolean
bj_image_smoke_run (const BjImageBuild *build, int log, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjMachineSpec) spec = make_spec (build);
  g_autoptr(BjMachine) machine = bj_machine_new (build->engine, spec);
  g_autoptr(GError) left = NULL;
  gboolean ok = boot_and_test (build, machine, log, cancellable, error);

  if (!ok)
    g_prefix_error (error, "Booting the new image: ");
  if (!bj_machine_destroy (machine, &left))
    g_warning ("Ending the machine of the smoke test: %s", left->message);
  return ok;
}
