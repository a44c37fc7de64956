/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-bus.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 60

/* A process that is busy for ever, and whose peer goes away. */
static void
test_end_with_peer (void)
{
  int pair[2];
  int status = 0;
  pid_t pid;
  pid_t ended = 0;

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
  pid = fork ();
  if (pid == 0)
    {
      close (pair[0]);
      bj_bus_end_with_peer (pair[1]);
      for (;;)
        continue;
    }
  close (pair[1]);
  g_usleep (G_USEC_PER_SEC / 5);
  g_assert_cmpint (waitpid (pid, &status, WNOHANG), ==, 0);
  close (pair[0]);
  for (guint i = 0; ended == 0 && i < DEADLINE_S * 10; i++)
    {
      g_usleep (G_USEC_PER_SEC / 10);
      ended = waitpid (pid, &status, WNOHANG);
    }
  if (ended == 0)
    kill (pid, SIGKILL);
  g_assert_cmpint (ended, ==, pid);
  g_assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bus/end-with-peer", test_end_with_peer);
  return g_test_run ();
}
