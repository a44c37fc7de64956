/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-accelerator.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define PROBE_SECONDS 5
#define PROBE_SIZE 65536

/*
 * The tiny guest is a firmware of its own whose first instructions, at the reset vector, end it:
 * mov al, 0x10; out 0xf4, al; hlt; jmp -1. QEMU's isa-debug-exit makes exit code (0x10 << 1) | 1 of that.
 */
static const guint8 probe_code[] = { 0xb0, 0x10, 0xe6, 0xf4, 0xf4, 0xeb, 0xfd };
#define PROBE_EXIT_TEXT "exit code 33"

static gboolean
write_firmware (const char *path, GError **error)
{
  g_autofree guint8 *rom = g_malloc (PROBE_SIZE);

  memset (rom, 0xf4, PROBE_SIZE);
  memcpy (rom + PROBE_SIZE - 16, probe_code, sizeof probe_code);
  return g_file_set_contents (path, (const char *) rom, PROBE_SIZE, error);
}

/* The same machine and CPU model as real machines get: hosts differ in what of it they can do. */
static gboolean
run_probe (const char *firmware, GCancellable *cancellable, GError **error)
{
  const char *argv[] = { "qemu-system-x86_64", "-machine", "q35,accel=kvm", "-cpu", "host", "-m", "64", "-nodefaults",
                         "-no-user-config", "-display", "none", "-no-reboot", "-bios", firmware, "-device",
                         "isa-debug-exit,iobase=0xf4,iosize=4", NULL };
  BjSpawn spawn = { .argv = argv, .timeout_s = PROBE_SECONDS };
  g_autoptr(GError) local = NULL;

  if (bj_spawn_run (&spawn, NULL, cancellable, &local))
    return bj_error_set (error, BJ_ERROR_NO_ACCELERATOR, "the tiny guest did not run");
  if (strstr (local->message, PROBE_EXIT_TEXT) != NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
probe_kvm (const char *firmware, GCancellable *cancellable, GError **error)
{
  g_auto(BjFd) kvm = open ("/dev/kvm", O_RDWR | O_CLOEXEC);

  if (kvm < 0)
    return bj_fd_set_io_error (error, errno, "/dev/kvm does not open");
  return write_firmware (firmware, error) && run_probe (firmware, cancellable, error);
}

static char *
read_boot_id (void)
{
  char *id = NULL;

  if (!g_file_get_contents ("/proc/sys/kernel/random/boot_id", &id, NULL, NULL))
    return g_strdup ("");
  return g_strstrip (id);
}

static gboolean
load_answer (const char *path, const char *boot_id, BjAccelerator *accelerator, char **reason)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *boot = NULL;

  if (!g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, NULL))
    return FALSE;
  boot = g_key_file_get_string (file, "accelerator", "boot", NULL);
  *reason = g_key_file_get_string (file, "accelerator", "reason", NULL);
  *accelerator = g_key_file_get_boolean (file, "accelerator", "kvm", NULL) ? BJ_ACCELERATOR_KVM : BJ_ACCELERATOR_TCG;
  if (*boot_id != '\0' && g_strcmp0 (boot, boot_id) == 0 && *reason != NULL)
    return TRUE;
  g_clear_pointer (reason, g_free);
  return FALSE;
}

static void
save_answer (const char *path, const char *boot_id, BjAccelerator accelerator, const char *reason)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autoptr(GError) error = NULL;

  g_key_file_set_string (file, "accelerator", "boot", boot_id);
  g_key_file_set_string (file, "accelerator", "reason", reason);
  g_key_file_set_boolean (file, "accelerator", "kvm", accelerator == BJ_ACCELERATOR_KVM);
  if (!g_key_file_save_to_file (file, path, &error))
    g_warning ("The accelerator's probe is repeated at the next start: %s", error->message);
}

/* A reason is one sentence for people; QEMU's own complaint may be longer. */
static char *
make_reason (const GError *failure)
{
  g_autofree char *first = g_strndup (failure->message, MIN (strcspn (failure->message, "\n"), 200));

  return g_strdup_printf ("TCG (slow emulation): a probe guest with KVM did not run here: %s", first);
}

BjAccelerator
bj_accelerator_choose (BjAccelerator wish, const char *cache_path, char **reason, GCancellable *cancellable,
                       GError **error)
{
  g_autofree char *boot_id = read_boot_id ();
  g_autofree char *firmware = g_strconcat (cache_path, ".rom", NULL);
  g_autoptr(GError) failure = NULL;
  BjAccelerator found = BJ_ACCELERATOR_TCG;

  *reason = NULL;
  if (wish == BJ_ACCELERATOR_TCG)
    *reason = g_strdup ("TCG (slow emulation), because the configuration says so");
  else if (load_answer (cache_path, boot_id, &found, reason))
    g_debug ("Accelerator as probed earlier in this boot: %s", *reason);
  else
    {
      if (probe_kvm (firmware, cancellable, &failure))
        found = BJ_ACCELERATOR_KVM;
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return BJ_ACCELERATOR_AUTO;
      *reason = failure ? make_reason (failure) : g_strdup ("KVM: a probe guest ran");
      save_answer (cache_path, boot_id, found, *reason);
    }
  if (wish != BJ_ACCELERATOR_KVM || found == BJ_ACCELERATOR_KVM)
    return found;
  bj_error_set (error, BJ_ERROR_NO_ACCELERATOR, "KVM is asked for ([engine] accelerator=kvm) and does not work: %s",
                *reason);
  return BJ_ACCELERATOR_AUTO;
}
