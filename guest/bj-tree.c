/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  int pid;
  int parent;
  bool ours;
} BjProcess;

/* The name in a stat line is the guest's: it may hold anything, so what counts starts after the last ")". */
static bool
read_process (const char *name, BjProcess *process)
{
  char path[64];
  char line[512];
  char state;
  const char *rest;
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, "/proc/%.20s/stat", name);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  n = read (fd, line, sizeof line - 1);
  close (fd);
  if (n <= 0)
    return false;
  line[n] = '\0';
  rest = strrchr (line, ')');
  if (rest == NULL || sscanf (rest + 1, " %c %d", &state, &process->parent) != 2)
    return false;
  process->pid = (int) strtol (name, NULL, 10);
  process->ours = false;
  return state != 'Z' && state != 'X';
}

static BjProcess *
list_processes (size_t *n)
{
  DIR *dir = opendir ("/proc");
  BjProcess *all = NULL;
  size_t room = 0;
  struct dirent *entry;

  *n = 0;
  while (dir != NULL && (entry = readdir (dir)) != NULL)
    {
      if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
        continue;
      if (*n == room)
        {
          BjProcess *more = realloc (all, (room + 256) * sizeof *all);

          if (more == NULL)
            break;
          all = more;
          room += 256;
        }
      if (read_process (entry->d_name, &all[*n]))
        (*n)++;
    }
  if (dir != NULL)
    closedir (dir);
  return all;
}

static int
compare_pids (const void *a, const void *b)
{
  return ((const BjProcess *) a)->pid - ((const BjProcess *) b)->pid;
}

/* /proc lists pids in ascending order. */
static bool
is_ours (const BjProcess *all, size_t n, int pid)
{
  const BjProcess key = { .pid = pid };
  const BjProcess *found = bsearch (&key, all, n, sizeof key, compare_pids);

  return found != NULL && found->ours;
}

/* One pass nearly always does it, because /proc lists parents before children; the loop is for the rest. */
static void
mark_ours (BjProcess *all, size_t n)
{
  int self = getpid ();
  bool changed = true;

  while (changed)
    {
      changed = false;
      for (size_t i = 0; i < n; i++)
        if (!all[i].ours && (all[i].parent == self || is_ours (all, n, all[i].parent)))
          all[i].ours = changed = true;
    }
}

int
bj_tree_signal (int signal)
{
  size_t n;
  BjProcess *all = list_processes (&n);
  int count = 0;

  mark_ours (all, n);
  for (size_t i = 0; i < n; i++)
    if (all[i].ours)
      {
        count++;
        if (signal != 0)
          kill (all[i].pid, signal);
      }
  free (all);
  return count;
}

void
bj_tree_hurry (void)
{
  struct sched_param param = { .sched_priority = 1 };

  /* Without the privilege it works too, only not against a fork bomb. */
  (void) sched_setscheduler (0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}
