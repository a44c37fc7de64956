/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GUEST_MARK "/etc/belljar-image" /* elsewhere, only tests run this program */
#define GROUPS 64
#define PIDS_MAX "1024"

static bool
write_to (int cgroup, const char *name, const char *text)
{
  int fd = openat (cgroup, name, O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0 && write (fd, text, strlen (text)) == (ssize_t) strlen (text);

  if (fd >= 0)
    close (fd);
  return done;
}

/* Whether it holds nothing; a command may have left something in the background. */
static bool
is_empty (int cgroup)
{
  int fd = openat (cgroup, "cgroup.events", O_RDONLY | O_CLOEXEC);
  char text[256];
  ssize_t n = fd >= 0 ? read (fd, text, sizeof text - 1) : -1;

  if (fd >= 0)
    close (fd);
  text[n > 0 ? n : 0] = '\0';
  return strstr (text, "populated 0") != NULL;
}

static int
open_group (unsigned number)
{
  char path[64];
  int fd;

  snprintf (path, sizeof path, "/sys/fs/cgroup/belljar-%u", number);
  fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 || errno != ENOENT || mkdir (path, 0755) < 0)
    return fd;
  fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0)
    write_to (fd, "pids.max", PIDS_MAX);
  return fd;
}

int
bj_cgroup_take (void)
{
  if (access (GUEST_MARK, F_OK) < 0)
    return -1;
  for (unsigned i = 0; i < GROUPS; i++)
    {
      int fd = open_group (i);

      if (fd < 0)
        return -1;
      if (flock (fd, LOCK_EX | LOCK_NB) == 0 && is_empty (fd))
        return fd;
      close (fd);
    }
  return -1;
}

pid_t
bj_cgroup_fork (int cgroup)
{
  struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t) cgroup };
  pid_t pid = cgroup >= 0 ? (pid_t) syscall (SYS_clone3, &args, sizeof args) : -1;

  return pid >= 0 ? pid : fork ();
}

void
bj_cgroup_kill (int cgroup)
{
  if (cgroup >= 0)
    write_to (cgroup, "cgroup.kill", "1");
}
