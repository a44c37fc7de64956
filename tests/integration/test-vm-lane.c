/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "vm-fixture.h"

#include "bj-error.h"
#include "bj-guest-private.h"
#include "bj-libvirt.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The channel into a guest that is hostile to it. */

#define OPEN_S 60
#define MANY 100

/* $1: control or bulk */
#define FIND_PORT "port=$(basename $(dirname $(grep -lx org.belljar.$1.0 /sys/class/virtio-ports/*/name)));"

static gboolean
wait_open (BjGuest *guest, int lane)
{
  return bj_lane_wait_open (guest->lanes[lane], g_get_monotonic_time () + OPEN_S * G_USEC_PER_SEC, NULL);
}

static gboolean
try_sh (BjGuest *guest, const char *script, GError **error)
{
  const char *argv[] = { "/bin/sh", "-c", script, NULL };
  const BjExec exec = { .argv = argv, .timeout_s = 120 };
  g_auto(BjExecResult) result = { 0 };

  return bj_guest_exec (guest, &exec, &result, NULL, error);
}

static void
test_killed (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autofree char *left = NULL;
  g_autoptr(GError) error = NULL;
  double start = vm_now ();

  if (vm == NULL)
    return;
  g_assert_true (wait_open (vm->guest, BJ_GUEST_CONTROL));
  g_assert_true (wait_open (vm->guest, BJ_GUEST_BULK));
  g_assert_false (try_sh (vm->guest, "systemctl kill -s KILL --kill-who=main belljar-lane@control; sleep 7654", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
  g_test_message ("%s", error->message);
  vm_report ("noticed a killed server", vm_now () - start);
  left = vm_sh_ok (vm->guest, "i=0; while pgrep -f 'sleep [7]654' && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done >/dev/null; "
                              "pgrep -c -f 'sleep [7]654' || true");
  g_assert_cmpstr (left, ==, "0");
  g_assert_true (wait_open (vm->guest, BJ_GUEST_CONTROL));
}

/* Both are stopped, and the agent has them started anew. */
static void
test_stopped (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autoptr(GError) error = NULL;
  double start = vm_now ();

  if (vm == NULL)
    return;
  g_assert_true (wait_open (vm->guest, BJ_GUEST_BULK));
  g_assert_false (try_sh (vm->guest, "systemctl kill -s STOP --kill-who=main belljar-lane@bulk belljar-lane@control; sleep 1",
                          &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
  g_test_message ("%s", error->message);
  vm_report ("noticed a stopped server", vm_now () - start);
  /* What was greeted is found to be silent when it is asked next. */
  while (bj_lane_is_open (vm->guest->lanes[BJ_GUEST_BULK]))
    try_sh (vm->guest, "true", NULL);
  start = vm_now ();
  g_free (vm_sh_ok (vm->guest, "true"));
  vm_report ("a command after that", vm_now () - start);
  g_assert_true (wait_open (vm->guest, BJ_GUEST_CONTROL));
  g_assert_true (wait_open (vm->guest, BJ_GUEST_BULK));
}

/* There is no server at all: the agent steps in, and streams come at the end. */
static void
test_absent (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *argv[] = { "/bin/sh", "-c", "printf text; printf other >&2", NULL };
  const char *long_argv[] = { "head", "-c", "2000000", "/dev/zero", NULL };
  BjExec exec = { .argv = argv, .timeout_s = 60 };
  g_auto(BjExecResult) result = { 0 };
  g_auto(BjExecResult) cut = { 0 };
  g_autoptr(GError) error = NULL;
  char buffer[16];
  int fds[2];

  if (vm == NULL)
    return;
  g_assert_true (wait_open (vm->guest, BJ_GUEST_CONTROL));
  g_assert_false (try_sh (vm->guest, "systemd-run --quiet systemctl mask --quiet --now belljar-lane@bulk "
                                     "belljar-lane@control; sleep 100",
                          NULL));
  while (bj_lane_is_open (vm->guest->lanes[BJ_GUEST_BULK]))
    try_sh (vm->guest, "true", NULL);
  g_assert_cmpint (pipe2 (fds, O_CLOEXEC), ==, 0);
  bj_guest_exec_stream (vm->guest, &exec, -1, fds[1], -1, &result, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (read (fds[0], buffer, sizeof buffer), ==, 4);
  g_assert_cmpuint (result.err_total, ==, 5);
  exec.argv = long_argv;
  g_assert_false (bj_guest_exec_stream (vm->guest, &exec, -1, fds[1], -1, &cut, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
  close (fds[0]);
  close (fds[1]);
  g_free (vm_sh_ok (vm->guest, "systemctl unmask --quiet belljar-lane@bulk belljar-lane@control; "
                               "systemctl start --no-block belljar-lane@bulk belljar-lane@control"));
  g_assert_true (wait_open (vm->guest, BJ_GUEST_CONTROL));
  g_assert_true (wait_open (vm->guest, BJ_GUEST_BULK));
}

static void
flood (BjGuest *guest, const char *lane, const char *what)
{
  g_autofree char *script = g_strdup_printf (
      "set -- %s; " FIND_PORT " systemctl stop belljar-lane@$1; (exec 3<>/dev/$port; %s >&3) >/dev/null 2>&1 & sleep 3", lane,
      what);
  g_autofree char *back = g_strdup_printf ("pkill -x flood; systemctl start belljar-lane@%s", lane);

  g_test_message ("%s: %s", lane, what);
  try_sh (guest, script, NULL);
  g_free (vm_sh_ok (guest, "echo the other way is open"));
  g_free (vm_sh_ok (guest, back));
  g_assert_true (wait_open (guest, BJ_GUEST_CONTROL));
  g_assert_true (wait_open (guest, BJ_GUEST_BULK));
}

/* Somebody else holds the port, and says things. */
static void
test_flood (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;

  if (vm == NULL)
    return;
  g_free (vm_sh_ok (vm->guest, "cp /bin/cat /run/flood"));
  flood (vm->guest, "control", "/run/flood /dev/urandom");
  flood (vm->guest, "bulk", "/run/flood /dev/zero");
  /* A half frame, and then the real server. */
  flood (vm->guest, "control", "printf 'BJL1\\103\\0\\377\\177\\1\\0\\0\\0half'");
}

typedef struct
{
  BjGuest *guest;
  int fd;
  guint64 size;
  double seconds;
} Copy;

static gpointer
copy_much (gpointer data)
{
  Copy *copy = data;
  g_autofree char *size = g_strdup_printf ("%" G_GUINT64_FORMAT, copy->size);
  const char *argv[] = { "head", "-c", size, "/dev/zero", NULL };
  const BjExec exec = { .argv = argv, .timeout_s = 1200 };
  g_auto(BjExecResult) result = { 0 };
  g_autoptr(GError) error = NULL;
  double start = vm_now ();

  bj_guest_exec_stream (copy->guest, &exec, -1, copy->fd, -1, &result, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (result.out_total, ==, copy->size);
  copy->seconds = vm_now () - start;
  close (copy->fd);
  return NULL;
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *) a;
  double y = *(const double *) b;

  return (x > y) - (x < y);
}

static void
time_lines (BjGuest *guest, const char *what)
{
  double times[20];

  for (guint i = 0; i < G_N_ELEMENTS (times); i++)
    {
      double start = vm_now ();

      g_free (vm_sh_ok (guest, "true"));
      times[i] = vm_now () - start;
    }
  qsort (times, G_N_ELEMENTS (times), sizeof times[0], compare_doubles);
  vm_report (what, times[G_N_ELEMENTS (times) / 2]);
}

/* Much on one lane while one-line commands run on the other; how long they take is said, not asserted. */
static void
test_copy (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  const char *size = g_getenv ("BELLJAR_TEST_COPY");
  Copy copy = { .size = size ? g_ascii_strtoull (size, NULL, 10) : 200u << 20 };
  g_autofree guint8 *buffer = g_malloc (1 << 20);
  GThread *thread;
  guint64 total = 0;
  gssize n;
  int fds[2];

  if (vm == NULL)
    return;
  time_lines (vm->guest, "a line alone, p50");
  g_assert_cmpint (pipe2 (fds, O_CLOEXEC), ==, 0);
  copy.guest = vm->guest;
  copy.fd = fds[1];
  thread = g_thread_new ("copy", copy_much, &copy);
  /* A reader that takes a little and stops holds up nothing else. */
  g_assert_cmpint (read (fds[0], buffer, 1000), >, 0);
  total = 1000;
  time_lines (vm->guest, "a line beside a stream whose reader stopped, p50");
  while ((n = read (fds[0], buffer, 1 << 20)) > 0)
    total += (guint64) n;
  g_thread_join (thread);
  g_assert_cmpuint (total, ==, copy.size);
  vm_report ("the stream", copy.seconds);
  close (fds[0]);
}

static gpointer
run_one (gpointer data)
{
  g_autofree char *out = vm_sh_ok (data, "sleep 0.2; echo $$");

  g_assert_cmpint ((int) g_ascii_strtoll (out, NULL, 10), >, 1);
  return NULL;
}

static void
test_many (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  GThread *threads[MANY];
  double start = vm_now ();

  if (vm == NULL)
    return;
  for (int i = 0; i < MANY; i++)
    threads[i] = g_thread_new ("many", run_one, vm->guest);
  for (int i = 0; i < MANY; i++)
    g_thread_join (threads[i]);
  vm_report ("a hundred calls at once", vm_now () - start);
}

static gpointer
run_lost (gpointer data)
{
  g_autoptr(GError) error = NULL;

  g_assert_false (try_sh (data, "sleep 6543", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE);
  return NULL;
}

/* As after a restart of the daemon: another one comes, and commands of the first do not live on. */
static void
test_adopt (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autoptr(BjMachine) second = NULL;
  g_autofree char *left = NULL;
  g_autoptr(virDomain) domain = NULL;
  g_autoptr(GError) error = NULL;
  GThread *thread;
  double start;

  if (vm == NULL)
    return;
  thread = g_thread_new ("lost", run_lost, vm->guest);
  g_usleep (G_USEC_PER_SEC);
  domain = vm->guest->domain;
  virDomainRef (domain);
  bj_guest_set_domain (vm->guest, NULL);
  g_thread_join (thread);
  start = vm_now ();
  second = vm_new_machine (vm, "one", 7);
  g_assert_true (bj_machine_adopt (second, &error));
  g_assert_true (wait_open (bj_machine_get_guest (second), BJ_GUEST_CONTROL));
  vm_report ("adopted machine answers", vm_now () - start);
  left = vm_sh_ok (bj_machine_get_guest (second),
                   "i=0; while pgrep -f 'sleep [6]543' && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done >/dev/null; "
                   "pgrep -c -f 'sleep [6]543' || true");
  g_assert_cmpstr (left, ==, "0");
  g_clear_object (&second);
  bj_guest_set_domain (vm->guest, domain);
  g_assert_true (wait_open (vm->guest, BJ_GUEST_CONTROL));
}

void
vm_add_lane_tests (void)
{
  g_test_add_func ("/vm/lane-copy", test_copy);
  g_test_add_func ("/vm/lane-many", test_many);
  g_test_add_func ("/vm/lane-adopt", test_adopt);
  g_test_add_func ("/vm/lane-killed", test_killed);
  g_test_add_func ("/vm/lane-stopped", test_stopped);
  g_test_add_func ("/vm/lane-absent", test_absent);
  g_test_add_func ("/vm/lane-flood", test_flood);
}
