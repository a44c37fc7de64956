/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-unmount.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define PROCESSES_MAX 100000
#define FILES_MAX 4096

static bool
leads_into (const char *link, const char *folder)
{
  char target[4096];
  size_t length = strlen (folder);
  ssize_t n = readlink (link, target, sizeof target - 1);

  if (n < (ssize_t) length)
    return false;
  target[n] = '\0';
  return strncmp (target, folder, length) == 0 && (target[length] == '/' || target[length] == '\0');
}

static bool
has_open_file (const char *pid, const char *folder)
{
  char path[512];
  DIR *files;
  struct dirent *entry;
  bool found = false;
  int n = 0;

  snprintf (path, sizeof path, "/proc/%.20s/fd", pid);
  files = opendir (path);
  while (files != NULL && !found && n++ < FILES_MAX && (entry = readdir (files)) != NULL)
    {
      snprintf (path, sizeof path, "/proc/%.20s/fd/%.20s", pid, entry->d_name);
      found = leads_into (path, folder);
    }
  if (files != NULL)
    closedir (files);
  return found;
}

static bool
uses (const char *pid, const char *folder)
{
  char path[64];

  snprintf (path, sizeof path, "/proc/%.20s/cwd", pid);
  return leads_into (path, folder) || has_open_file (pid, folder);
}

static unsigned int
count_users (const char *folder)
{
  DIR *processes = opendir ("/proc");
  struct dirent *entry;
  unsigned int users = 0;
  int n = 0;

  while (processes != NULL && n++ < PROCESSES_MAX && (entry = readdir (processes)) != NULL)
    if (isdigit ((unsigned char) entry->d_name[0]) && strtol (entry->d_name, NULL, 10) != getpid ())
      users += uses (entry->d_name, folder);
  if (processes != NULL)
    closedir (processes);
  return users;
}

bool
bj_unmount (const char *folder, unsigned int *users)
{
  *users = count_users (folder);
  return umount2 (folder, MNT_DETACH) == 0 || errno == EINVAL || errno == ENOENT;
}
