/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-template"

#include "bj-template-capture.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-name.h"
#include "bj-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#define BOOT_SECONDS 300
#define WARM_SECONDS 300
#define KERNEL_HEAD (64u << 10)

/* The image says what is worth having in memory; without its script a template is a machine that has booted. */
static const char warm_script[] = "if [ -x /usr/lib/belljar/warm ]; then /usr/lib/belljar/warm || exit 1; fi\n"
                                  "sync; fstrim / 2>/dev/null; sync\n";

static BjMachineSpec *
make_spec (const BjMachineSpec *like, guint slot, const char *dir, BjRam *ram)
{
  BjMachineSpec *spec = g_new0 (BjMachineSpec, 1);
  g_autofree char *id = bj_name_new_id ();

  spec->id = g_strdup_printf ("tmpl-%s", id);
  spec->slot = slot;
  spec->run_dir = g_build_filename (dir, "run", NULL);
  spec->base = g_strdup (like->base);
  spec->kernel = g_strdup (like->kernel);
  spec->initrd = g_strdup (like->initrd);
  spec->cmdline = g_strdup (like->cmdline);
  spec->hostname = g_strdup ("template");
  spec->memory_mib = like->memory_mib;
  spec->cpus = like->cpus;
  spec->tablet = like->tablet;
  spec->ram = bj_ram_ref (ram);
  return spec;
}

static gboolean
boot_and_warm (BjMachine *machine, GCancellable *cancellable, GError **error)
{
  const char *argv[] = { "/bin/sh", "-c", warm_script, NULL };
  const BjExec exec = { .argv = argv, .cwd = "/", .timeout_s = WARM_SECONDS, .cap = 4096 };
  g_auto(BjExecResult) result = { 0 };

  if (!bj_machine_prepare (machine, cancellable, error) || !bj_machine_start (machine, cancellable, error)
      || !bj_machine_wait_ready (machine, BOOT_SECONDS, cancellable, error)
      || !bj_guest_exec (bj_machine_get_guest (machine), &exec, &result, cancellable, error))
    return FALSE;
  return result.exit == 0
         || bj_error_set (error, BJ_ERROR_FAILED, "Warming the template failed with exit code %d%s", result.exit,
                          result.timed_out ? " (timed out)" : "");
}

/*
 * A clone's kernel is in its memory already, but QEMU reads the file it is given before it learns that, and keeps it: 50 MB for
 * nothing. The real-mode part, at most 32 KiB, is all it looks at.
 */
static gboolean
keep_kernel_head (const BjMachineSpec *spec, const char *dir, GError **error)
{
  g_autofree char *path = g_build_filename (dir, "kernel", NULL);
  g_autofree char *head = g_malloc (KERNEL_HEAD);
  g_auto(BjFd) from = spec->kernel != NULL ? open (spec->kernel, O_RDONLY | O_CLOEXEC) : -1;
  g_auto(BjFd) to = -1;
  gssize n;

  if (spec->kernel == NULL)
    return TRUE;
  if (from < 0 || (n = read (from, head, KERNEL_HEAD)) < 0)
    return bj_fd_set_io_error (error, errno, "Reading %s", spec->kernel);
  to = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  return to >= 0 ? bj_fd_write_all (to, head, (gsize) n, error) : bj_fd_set_io_error (error, errno, "Making %s", path);
}

/* The machine is paused afterwards and has written all of its disk. */
static gboolean
freeze (BjMachine *machine, const BjMachineSpec *spec, const char *dir, char **ram_digest, GCancellable *cancellable, GError **error)
{
  g_autofree char *state = g_build_filename (dir, "state", NULL);
  g_autofree char *memory = g_build_filename (dir, "ram", NULL);
  g_autofree char *overlay = g_build_filename (dir, "run", "overlay.qcow2", NULL);
  g_autofree char *disk = g_build_filename (dir, "disk.qcow2", NULL);
  g_auto(BjFd) fd = open (state, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", state);
  if (!keep_kernel_head (spec, dir, error) || !bj_machine_save_state (machine, fd, cancellable, error))
    return FALSE;
  if (g_rename (overlay, disk) < 0)
    return bj_fd_set_io_error (error, errno, "Moving %s", overlay);
  *ram_digest = bj_ram_save (spec->ram, memory, cancellable, error);
  return *ram_digest != NULL;
}

static gboolean
capture (BjMachine *machine, const BjMachineSpec *spec, const char *dir, const char *key, const char *image_digest,
         GCancellable *cancellable, GError **error)
{
  g_autofree char *ram_digest = NULL;
  g_autoptr(GError) leftover = NULL;
  gint64 begun = g_get_monotonic_time ();
  gboolean ok = boot_and_warm (machine, cancellable, error)
                && freeze (machine, spec, dir, &ram_digest, cancellable, error);

  if (!bj_machine_destroy (machine, &leftover))
    g_warning ("The machine of a template is not quite gone: %s", leftover->message);
  if (!ok)
    return FALSE;
  if (leftover != NULL)
    return bj_error_set (error, BJ_ERROR_FAILED, "%s", leftover->message);
  g_message ("Template made in %.1f s: %" G_GUINT64_FORMAT " MiB of memory",
             (double) (g_get_monotonic_time () - begun) / G_USEC_PER_SEC, bj_ram_get_used (spec->ram) >> 20);
  return bj_template_write_description (dir, &(BjTemplateFacts) { key, image_digest, spec->memory_mib, spec->cpus, ram_digest },
                                        cancellable, error);
}

gboolean
bj_template_capture (BjEngine *engine, const BjMachineSpec *like, guint slot, const char *dir, const char *key,
                     const char *image_digest, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjRam) ram = bj_ram_new (like->memory_mib, error);
  g_autoptr(BjMachineSpec) spec = NULL;
  g_autoptr(BjMachine) machine = NULL;

  if (ram == NULL)
    return FALSE;
  if (g_mkdir (dir, 0711) < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", dir);
  spec = make_spec (like, slot, dir, ram);
  machine = bj_machine_new (engine, spec);
  if (capture (machine, spec, dir, key, image_digest, cancellable, error))
    return TRUE;
  bj_remove_tree (dir, NULL);
  return FALSE;
}
