/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Flooding, full disks, frozen agents and machines that power off are in test_trouble_guest.py, through the whole daemon. */
#include "vm-fixture.h"

#include "bj-error.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static void
run_sh (BjGuest *guest, const char *script, guint timeout_s, BjExecResult *result)
{
  const char *argv[] = { "/bin/sh", "-c", script, NULL };
  const BjExec exec = { .argv = argv, .timeout_s = timeout_s, .cap = 64 << 10 };
  g_autoptr(GError) error = NULL;

  bj_guest_exec (guest, &exec, result, NULL, &error);
  g_assert_no_error (error);
}

static void
test_timeout (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_auto(BjExecResult) result = { 0 };
  g_auto(BjExecResult) stopped = { 0 };
  g_autofree char *left = NULL;

  if (vm == NULL)
    return;
  run_sh (vm->guest, "setsid sleep 7777 & (setsid sh -c 'trap \"\" TERM; sleep 7777' &) ; echo x; sleep 7777", 3, &result);
  g_assert_true (result.timed_out);
  g_assert_cmpint (result.exit, ==, -1);
  run_sh (vm->guest, "trap '' TERM; kill -STOP 0; sleep 7777", 3, &stopped);
  g_assert_true (stopped.timed_out);
  g_assert_cmpint (stopped.signal, ==, 9);
  left = vm_sh_ok (vm->guest, "pgrep -c -x sleep || true");
  g_assert_cmpstr (left, ==, "0");
}

static void
test_background_child (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_auto(BjExecResult) result = { 0 };
  g_autofree char *alive = NULL;

  if (vm == NULL)
    return;
  run_sh (vm->guest, "(i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; echo ok >/run/bg.done) & echo first",
          60, &result);
  g_assert_cmpint (result.exit, ==, 0);
  g_assert_cmpfloat (result.duration_s, <, 30);
  /* It prints on, and does not die of it. */
  alive = vm_sh_ok (vm->guest, "i=0; until [ -e /run/bg.done ] || [ $i -gt 600 ]; do sleep 0.1; i=$((i+1)); done; cat /run/bg.done");
  g_assert_cmpstr (alive, ==, "ok");
}

/* A reader that goes away ends the command as it would on any terminal. */
static void
test_stream_closed (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *argv[] = { "yes", NULL };
  const BjExec exec = { .argv = argv, .timeout_s = 300 };
  g_auto(BjExecResult) result = { 0 };
  g_autoptr(GError) error = NULL;
  int fds[2];

  if (vm == NULL)
    return;
  g_assert_cmpint (pipe2 (fds, O_CLOEXEC), ==, 0);
  close (fds[0]);
  bj_guest_exec_stream (vm->guest, &exec, -1, fds[1], -1, &result, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (result.signal, ==, 13);
  close (fds[1]);
}

static void
test_background (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *argv[] = { "/bin/sh", "-c", "echo up; while read x; do echo \"got $x\"; done", NULL };
  const BjExec exec = { .argv = argv };
  g_autoptr(GBytes) line = g_bytes_new_static ("one\n", 4);
  g_autoptr(GString) seen = g_string_new (NULL);
  g_autoptr(GError) error = NULL;
  gint64 deadline = g_get_monotonic_time () + 60 * G_USEC_PER_SEC;
  guint id = 0;
  gboolean sent = FALSE;
  g_auto(BjPollResult) last = { 0 };

  if (vm == NULL)
    return;
  bj_guest_start (vm->guest, &exec, &id, &sent, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (sent);
  bj_guest_send (vm->guest, id, line, NULL, &error);
  g_assert_no_error (error);
  while (strstr (seen->str, "got one\n") == NULL && g_get_monotonic_time () < deadline)
    {
      g_auto(BjPollResult) result = { 0 };

      bj_guest_poll (vm->guest, id, 2, &result, NULL, &error);
      g_assert_no_error (error);
      g_assert_true (result.running);
      g_string_append_len (seen, g_bytes_get_data (result.output, NULL), (gssize) g_bytes_get_size (result.output));
    }
  g_assert_cmpstr (seen->str, ==, "up\ngot one\n");
  bj_guest_kill (vm->guest, id, NULL, &error);
  g_assert_no_error (error);
  bj_guest_poll (vm->guest, id, 0, &last, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (last.running);
  g_assert_false (bj_guest_send (vm->guest, id, line, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (bj_guest_kill (vm->guest, 999, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
}

static void
test_files (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autofree char *text = g_strnfill (300000, 'z');
  g_autoptr(GBytes) big = g_bytes_new (text, 300000);
  g_autoptr(GBytes) end = g_bytes_new_static ("end", 3);
  g_autoptr(GBytes) back = NULL;
  g_autoptr(GError) error = NULL;
  guint64 size = 0;

  if (vm == NULL)
    return;
  g_assert_true (bj_guest_write_file (vm->guest, "/root/f", big, 0640, FALSE, NULL, &error));
  g_assert_true (bj_guest_write_file (vm->guest, "/root/f", end, 0640, TRUE, NULL, &error));
  back = bj_guest_read_file (vm->guest, "/root/f", 299998, 100, &size, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (size, ==, 300003);
  g_assert_cmpuint (g_bytes_get_size (back), ==, 5);
  g_assert_cmpint (memcmp (g_bytes_get_data (back, NULL), "zzend", 5), ==, 0);
  g_assert_null (bj_guest_read_file (vm->guest, "/root", 0, 10, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (bj_guest_read_file (vm->guest, "/nothing", 0, 10, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_free (vm_sh_ok (vm->guest, "mkfifo /root/fifo"));
  g_assert_null (bj_guest_read_file (vm->guest, "/root/fifo", 0, 10, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (bj_guest_write_file (vm->guest, "/root/fifo", end, 0600, FALSE, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

static gpointer
exec_slowly (gpointer data)
{
  g_auto(BjExecResult) result = { 0 };

  run_sh (data, "sleep 3; echo woke", 120, &result);
  g_assert_cmpint (result.exit, ==, 0);
  return NULL;
}

static void
test_pause (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *argv[] = { "true", NULL };
  const BjExec exec = { .argv = argv, .timeout_s = 10 };
  g_auto(BjExecResult) result = { 0 };
  g_autoptr(GError) error = NULL;
  GThread *thread;

  if (vm == NULL)
    return;
  thread = g_thread_new ("exec", exec_slowly, vm->guest);
  g_usleep (G_USEC_PER_SEC);
  g_assert_true (bj_machine_pause (vm->machine, &error));
  g_assert_cmpint (bj_machine_get_state (vm->machine), ==, BJ_MACHINE_STATE_PAUSED);
  g_assert_false (bj_guest_exec (vm->guest, &exec, &result, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
  g_assert_nonnull (strstr (error->message, "paused"));
  g_clear_error (&error);
  g_assert_true (bj_machine_resume (vm->machine, &error));
  g_thread_join (thread);
  g_assert_true (bj_machine_set_link (vm->machine, FALSE, &error));
  g_assert_true (bj_machine_set_link (vm->machine, TRUE, &error));
}

static void
test_screenshot (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) png = NULL;
  double start = vm_now ();

  if (vm == NULL)
    return;
  png = bj_machine_screenshot (vm->machine, &error);
  g_assert_no_error (error);
  vm_report ("screenshot", vm_now () - start);
  g_assert_cmpuint (g_bytes_get_size (png), >, 100);
}

/* Last: the machine is gone after it. */
static void
test_destroy (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autoptr(GError) error = NULL;
  g_autofree char *run_dir = NULL;
  g_autofree char *pid = NULL;
  g_autoptr(BjMachine) half = NULL;
  g_auto(GStrv) ids = NULL;
  double start = vm_now ();

  if (vm == NULL)
    return;
  run_dir = g_build_filename (vm->dir, "one", NULL);
  pid = g_build_filename (vm->dir, "engine/run/qemu/bj-one.pid", NULL);
  for (int i = 0; i < 2; i++)
    {
      bj_machine_destroy (vm->machine, &error);
      g_assert_no_error (error);
    }
  vm_report ("destroy", vm_now () - start);
  g_assert_false (g_file_test (run_dir, G_FILE_TEST_EXISTS));
  g_assert_false (g_file_test (pid, G_FILE_TEST_EXISTS));
  ids = bj_engine_list_machines (vm->engine, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (ids), ==, 0);
  half = vm_new_machine (vm, "half", 8);
  g_assert_true (bj_machine_prepare (half, NULL, &error));
  g_assert_true (bj_machine_destroy (half, &error));
}

void
vm_add_trouble_tests (void)
{
  g_test_add_func ("/vm/timeout", test_timeout);
  g_test_add_func ("/vm/background-child", test_background_child);
  g_test_add_func ("/vm/stream-closed", test_stream_closed);
  g_test_add_func ("/vm/background", test_background);
  g_test_add_func ("/vm/files", test_files);
  g_test_add_func ("/vm/pause", test_pause);
  g_test_add_func ("/vm/screenshot", test_screenshot);
  g_test_add_func ("/vm/destroy", test_destroy);
}
