/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "vm-fixture.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

static VmFixture *the_vm;

const char *
vm_get_image (void)
{
  const char *image = g_getenv ("BELLJAR_TEST_IMAGE");

  if (image == NULL)
    g_test_skip ("BELLJAR_TEST_IMAGE names no image folder");
  return image;
}

double
vm_now (void)
{
  return (double) g_get_monotonic_time () / G_USEC_PER_SEC;
}

void
vm_report (const char *what, double seconds)
{
  g_test_message ("TIME %s: %.4f s", what, seconds);
}

BjMachine *
vm_new_machine (VmFixture *vm, const char *id, guint slot)
{
  const char *image = g_getenv ("BELLJAR_TEST_IMAGE");
  BjMachineSpec *spec = g_new0 (BjMachineSpec, 1);
  g_autofree char *cmdline = g_build_filename (image, "cmdline", NULL);
  BjMachine *machine;

  spec->id = g_strdup (id);
  spec->slot = slot;
  spec->run_dir = g_build_filename (vm->dir, id, NULL);
  spec->base = g_build_filename (image, "disk.qcow2", NULL);
  spec->kernel = g_build_filename (image, "vmlinuz", NULL);
  spec->initrd = g_build_filename (image, "initrd", NULL);
  g_assert_true (g_file_get_contents (cmdline, &spec->cmdline, NULL, NULL));
  g_strstrip (spec->cmdline);
  spec->hostname = g_strdup ("jar-under-test");
  spec->memory_mib = 1024;
  spec->cpus = 1;
  spec->network = TRUE;
  spec->resolvers = g_strsplit ("9.9.9.9 1.1.1.1", " ", 0);
  spec->share = TRUE;
  machine = bj_machine_new (vm->engine, spec);
  bj_machine_spec_free (spec);
  return machine;
}

void
vm_boot (BjMachine *machine)
{
  g_autoptr(GError) error = NULL;
  double t0 = vm_now ();
  double t1;
  double t2;

  bj_machine_prepare (machine, NULL, &error);
  g_assert_no_error (error);
  t1 = vm_now ();
  bj_machine_start (machine, NULL, &error);
  g_assert_no_error (error);
  t2 = vm_now ();
  bj_machine_wait_ready (machine, 180, NULL, &error);
  g_assert_no_error (error);
  vm_report ("prepare (folder and overlay)", t1 - t0);
  vm_report ("start (createXML)", t2 - t1);
  vm_report ("start to ready", vm_now () - t1);
  t1 = vm_now ();
  bj_machine_setup (machine, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  vm_report ("setup", vm_now () - t1);
}

VmFixture *
vm_get (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *root = NULL;
  double start = vm_now ();

  if (the_vm != NULL)
    return the_vm;
  the_vm = g_new0 (VmFixture, 1);
  the_vm->dir = g_strdup (g_getenv ("BELLJAR_TEST_KEEP"));
  if (the_vm->dir != NULL)
    g_mkdir (the_vm->dir, 0711);
  else
    the_vm->dir = g_dir_make_tmp ("vm-XXXXXX", &error);
  g_assert_no_error (error);
  g_assert_cmpint (g_chmod (the_vm->dir, 0711), ==, 0);
  root = g_build_filename (the_vm->dir, "engine", NULL);
  the_vm->engine = bj_engine_new (NULL, root, BJ_ACCELERATOR_AUTO);
  bj_engine_open (the_vm->engine, NULL, &error);
  g_assert_no_error (error);
  vm_report ("open (with the probe)", vm_now () - start);
  g_test_message ("accelerator: %s", bj_engine_get_accelerator_reason (the_vm->engine));
  the_vm->machine = vm_new_machine (the_vm, "one", 7);
  the_vm->guest = bj_machine_get_guest (the_vm->machine);
  if (g_getenv ("BELLJAR_TEST_KEEP") == NULL || !bj_machine_adopt (the_vm->machine, NULL))
    vm_boot (the_vm->machine);
  return the_vm;
}

void
vm_end (void)
{
  g_autoptr(GError) error = NULL;
  const char *argv[] = { "/bin/rm", "-rf", NULL, NULL };

  if (the_vm == NULL || g_getenv ("BELLJAR_TEST_KEEP") != NULL)
    return;
  bj_machine_destroy (the_vm->machine, &error);
  g_assert_no_error (error);
  g_object_unref (the_vm->machine);
  bj_engine_close (the_vm->engine);
  g_object_unref (the_vm->engine);
  argv[2] = the_vm->dir;
  g_spawn_sync (NULL, (char **) argv, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
  g_free (the_vm->dir);
  g_clear_pointer (&the_vm, g_free);
}

void
vm_sh (BjGuest *guest, const char *script, BjExecResult *result)
{
  const char *argv[] = { "/bin/sh", "-c", script, NULL };
  const BjExec exec = { .argv = argv, .timeout_s = 120 };
  g_autoptr(GError) error = NULL;

  bj_guest_exec (guest, &exec, result, NULL, &error);
  g_assert_no_error (error);
}

char *
vm_sh_ok (BjGuest *guest, const char *script)
{
  g_auto(BjExecResult) result = { 0 };
  char *text;

  vm_sh (guest, script, &result);
  if (result.exit != 0)
    g_test_message ("%s: exit %d: %.*s", script, result.exit, (int) g_bytes_get_size (result.err),
                    (const char *) g_bytes_get_data (result.err, NULL));
  g_assert_cmpint (result.exit, ==, 0);
  text = g_strndup (g_bytes_get_data (result.out, NULL), g_bytes_get_size (result.out));
  return text ? g_strchomp (text) : g_strdup ("");
}
