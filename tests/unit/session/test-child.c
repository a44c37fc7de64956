/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Children are this program again, or /bin/sh where no D-Bus is spoken. */
#include "bj-bus.h"
#include "bj-child.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CHILD_UID 1234567u

/* Also for a uid that may not pass the folders above the build folder. */
#define SELF "/proc/self/exe"

/* What a child says of itself once it is connected, over its fd 4. */
typedef struct
{
  pid_t pid;
  uid_t uid, gid;
} Hello;

/* The child: connects, says hello, waits. "stubborn" ignores SIGTERM and the end of the connection. */
static int
be_child (const char *how)
{
  g_autoptr(GDBusConnection) connection = NULL;
  const Hello hello = { getpid (), getuid (), getgid () };

  if (g_str_equal (how, "stubborn"))
    signal (SIGTERM, SIG_IGN);
  connection = bj_bus_peer_from_fd (3, FALSE, NULL);
  if (connection == NULL || write (4, &hello, sizeof hello) != (gssize) sizeof hello)
    return 1;
  alarm (60); /* if the test dies */
  for (;;)
    pause ();
}

static BjChild *
start (const char *how, const uid_t *uid, Hello *hello)
{
  const char *argv[] = { SELF, "--child", how, NULL };
  g_autoptr(GError) error = NULL;
  BjChild *child;
  int pipe_fds[2];

  g_assert_cmpint (pipe2 (pipe_fds, O_CLOEXEC), ==, 0);
  child = bj_child_start (argv, uid, pipe_fds[1], &error);
  g_assert_no_error (error);
  close (pipe_fds[1]);
  g_assert_cmpint (read (pipe_fds[0], hello, sizeof *hello), ==, sizeof *hello);
  close (pipe_fds[0]);
  return child;
}

static void
assert_gone (const Hello *hello)
{
  g_assert_cmpint (kill (hello->pid, 0), ==, -1);
  g_assert_cmpint (errno, ==, ESRCH);
}

static void
test_stop (void)
{
  Hello hello;
  g_autoptr(BjChild) child = start ("good", NULL, &hello);

  g_assert_true (bj_child_is_running (child));
  g_assert_true (G_IS_DBUS_CONNECTION (bj_child_get_connection (child)));
  g_assert_false (g_dbus_connection_get_exit_on_close (bj_child_get_connection (child)));
  g_assert_cmpint (hello.uid, ==, getuid ());
  bj_child_stop (child);
  assert_gone (&hello);
  g_assert_false (bj_child_is_running (child));
  bj_child_stop (child); /* and twice does no harm */
}

static void
test_stop_stubborn (void)
{
  Hello hello;
  g_autoptr(BjChild) child = start ("stubborn", NULL, &hello);

  g_assert_cmpint (kill (hello.pid, SIGTERM), ==, 0);
  g_assert_true (bj_child_is_running (child));
  bj_child_stop (child);
  assert_gone (&hello);
  g_assert_false (bj_child_is_running (child));
}

static void
test_free_stops (void)
{
  Hello hello;

  bj_child_free (start ("good", NULL, &hello));
  assert_gone (&hello);
}

/* It died by itself: seen, reaped, and nobody else with its number is ever killed. */
static void
test_death (void)
{
  Hello hello;
  g_autoptr(BjChild) child = start ("good", NULL, &hello);

  g_assert_cmpint (kill (hello.pid, SIGKILL), ==, 0);
  while (bj_child_is_running (child))
    g_usleep (1000);
  assert_gone (&hello);
  bj_child_stop (child);
}

static void
test_uid (void)
{
  const uid_t uid = CHILD_UID;
  Hello hello;
  g_autoptr(BjChild) child = NULL;

  if (geteuid () != 0)
    {
      g_test_skip ("only root can give a child another uid");
      return;
    }
  child = start ("good", &uid, &hello);
  g_assert_cmpuint (hello.uid, ==, uid);
  g_assert_cmpuint (hello.gid, ==, uid);
}

static void
assert_fails (const char *const *argv, const char *word)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjChild) child = bj_child_start (argv, NULL, -1, &error);

  g_assert_null (child);
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, word));
}

static void
test_ends_at_once (void)
{
  assert_fails ((const char *const[]) { "/bin/sh", "-c", "exit 3", NULL }, "Starting sh: ");
  assert_fails ((const char *const[]) { "/bin/sh", "-c", "kill -9 $$", NULL }, "Starting sh: ");
}

static void
test_speaks_something_else (void)
{
  assert_fails ((const char *const[]) { "/bin/sh", "-c", "echo hello >&3; echo AUTH >&3", NULL }, "Starting sh: ");
}

/* A child that never says a word: without a deadline a session could not even be stopped. */
static void
test_silent (void)
{
  assert_fails ((const char *const[]) { "/bin/sh", "-c", "exec sleep 100", NULL }, "Starting sh: ");
}

static void
test_no_program (void)
{
  assert_fails ((const char *const[]) { "/nonexistent/belljar-agent", NULL }, "/nonexistent/belljar-agent");
}

int
main (int argc, char **argv)
{
  if (argc == 3 && g_str_equal (argv[1], "--child"))
    return be_child (argv[2]);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/child/stop", test_stop);
  g_test_add_func ("/session/child/stop-stubborn", test_stop_stubborn);
  g_test_add_func ("/session/child/free-stops", test_free_stops);
  g_test_add_func ("/session/child/death", test_death);
  g_test_add_func ("/session/child/uid", test_uid);
  g_test_add_func ("/session/child/ends-at-once", test_ends_at_once);
  g_test_add_func ("/session/child/speaks-something-else", test_speaks_something_else);
  g_test_add_func ("/session/child/silent", test_silent);
  g_test_add_func ("/session/child/no-program", test_no_program);
  return g_test_run ();
}
