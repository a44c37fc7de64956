/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "vm-fixture.h"

#include "bj-engine-private.h"

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <stdlib.h>
#include <string.h>

static void
assert_bytes (GBytes *bytes, const char *text, gsize size)
{
  g_autoptr(GBytes) expected = g_bytes_new (text, size);

  g_assert_true (g_bytes_equal (bytes, expected));
}

static void
test_uid (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autofree char *path = NULL;
  g_autofree char *pid = NULL;
  g_autofree char *status_path = NULL;
  g_autofree char *status = NULL;
  g_autofree char *line = NULL;

  if (vm == NULL)
    return;
  path = g_build_filename (vm->dir, "engine/run/qemu/bj-one.pid", NULL);
  g_assert_true (g_file_get_contents (path, &pid, NULL, NULL));
  status_path = g_strdup_printf ("/proc/%d/status", (int) g_ascii_strtoll (pid, NULL, 10));
  g_assert_true (g_file_get_contents (status_path, &status, NULL, NULL));
  line = g_strdup_printf ("Uid:\t%u\t%u\t%u\t%u\n", bj_machine_get_uid (vm->machine), bj_machine_get_uid (vm->machine),
                          bj_machine_get_uid (vm->machine), bj_machine_get_uid (vm->machine));
  g_assert_nonnull (strstr (status, line));
  g_assert_nonnull (strstr (status, "CapEff:\t0000000000000000"));
  g_assert_nonnull (strstr (status, "Seccomp:\t2"));
}

static void
test_setup (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autofree char *name = NULL;
  g_autofree char *resolv = NULL;
  g_autofree char *machine_id = NULL;
  g_autofree char *clock = NULL;

  if (vm == NULL)
    return;
  name = vm_sh_ok (vm->guest, "hostname");
  g_assert_cmpstr (name, ==, "jar-under-test");
  resolv = vm_sh_ok (vm->guest, "cat /etc/resolv.conf");
  g_assert_cmpstr (resolv, ==, "nameserver 9.9.9.9\nnameserver 1.1.1.1");
  machine_id = vm_sh_ok (vm->guest, "cat /etc/machine-id");
  g_assert_cmpuint (strlen (machine_id), ==, 32);
  clock = vm_sh_ok (vm->guest, "date +%s.%N");
  g_test_message ("clock differs by %.3f s", g_ascii_strtod (clock, NULL) - (double) g_get_real_time () / 1e6);
  g_assert_cmpfloat (ABS (g_ascii_strtod (clock, NULL) - (double) g_get_real_time () / 1e6), <, 30);
}

static void
test_exec (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *bytes[] = { "printf", "a\\000\\377\\n", NULL };
  const char *where[] = { "sh", "-c", "pwd; id -un; id -u; echo $HOME $X; cat; exit 3", NULL };
  const char *pairs[] = { "X=y z", NULL };
  g_autoptr(GBytes) input = g_bytes_new_static ("in\n", 3);
  BjExec exec = { .argv = bytes };
  g_auto(BjExecResult) first = { 0 };
  g_auto(BjExecResult) second = { 0 };
  g_autoptr(GError) error = NULL;

  if (vm == NULL)
    return;
  bj_guest_exec (vm->guest, &exec, &first, NULL, &error);
  g_assert_no_error (error);
  assert_bytes (first.out, "a\0\377\n", 4);
  g_assert_cmpstr (first.out_sha256, ==, "ecc7f2d684ec36fd4f9135ee4f42db5a1225db9bc234d7ddb50b2ab852212a7d");
  exec = (BjExec) { .argv = where, .cwd = "/usr", .user = "check", .environ = pairs, .input = input };
  bj_guest_exec (vm->guest, &exec, &second, NULL, &error);
  g_assert_no_error (error);
  assert_bytes (second.out, "/usr\ncheck\n1000\n/home/check y z\nin\n", 35);
  g_assert_cmpint (second.exit, ==, 3);
  g_assert_false (second.timed_out);
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a;
  double y = *(const double *) b;

  return (x > y) - (x < y);
}

/* It starts no earlier than we are ready. */
static void
wait_for_agent (virDomainPtr domain)
{
  double deadline = vm_now () + 120;
  char *reply = NULL;

  while (reply == NULL && vm_now () < deadline)
    {
      reply = virDomainQemuAgentCommand (domain, "{\"execute\":\"guest-ping\"}", 10, 0);
      if (reply == NULL)
        g_usleep (100000);
    }
  g_assert_nonnull (reply);
  free (reply);
}

/* The bare agent, with the same steps as bj_guest_exec() takes. */
static void
run_bare (virDomainPtr domain)
{
  char *reply = virDomainQemuAgentCommand (domain, "{\"execute\":\"guest-exec\",\"arguments\":{\"path\":\"/bin/true\","
                                           "\"capture-output\":true}}", 10, 0);
  g_autofree char *status = NULL;
  gulong pause = 2000;

  g_assert_nonnull (reply);
  status = g_strdup_printf ("{\"execute\":\"guest-exec-status\",\"arguments\":{\"pid\":%d}}",
                            (int) g_ascii_strtoll (strstr (reply, "\"pid\":") + 6, NULL, 10));
  free (reply);
  for (;;)
    {
      gboolean done;

      g_usleep (pause);
      reply = virDomainQemuAgentCommand (domain, status, 10, 0);
      g_assert_nonnull (reply);
      done = strstr (reply, "\"exited\":true") != NULL;
      free (reply);
      if (done)
        return;
      pause += pause / 2;
    }
}

static void
test_speed (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *argv[] = { "/bin/true", NULL };
  const BjExec exec = { .argv = argv };
  virDomainPtr domain;
  double ours[40];
  double bare[40];

  if (vm == NULL)
    return;
  domain = virDomainLookupByName (bj_engine_get_connection (vm->engine, NULL), "bj-one");
  wait_for_agent (domain);
  for (int i = 0; i < 40; i++)
    {
      g_auto(BjExecResult) result = { 0 };
      double start = vm_now ();

      run_bare (domain);
      bare[i] = vm_now () - start;
      start = vm_now ();
      g_assert_true (bj_guest_exec (vm->guest, &exec, &result, NULL, NULL));
      ours[i] = vm_now () - start;
    }
  virDomainFree (domain);
  qsort (ours, 40, sizeof (double), compare_doubles);
  qsort (bare, 40, sizeof (double), compare_doubles);
  vm_report ("exec p50 through belljar", ours[20]);
  vm_report ("exec p50 of the bare agent", bare[20]);
  g_test_message ("RATIO %.2f", ours[20] / bare[20]);
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/vm/uid", test_uid);
  g_test_add_func ("/vm/setup", test_setup);
  g_test_add_func ("/vm/exec", test_exec);
  g_test_add_func ("/vm/speed", test_speed);
  vm_add_share_tests ();
  vm_add_lane_tests ();
  vm_add_trouble_tests ();
  status = g_test_run ();
  vm_end ();
  return status;
}
