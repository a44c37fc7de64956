/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-engine-probes.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#define PROGRAM_PREFIX "qemu-system-"
#define FOLDER_PREFIX "qmp-"
#define PID_FILE "/qmp.pid"
#define CMDLINE_MAX 8192
#define END_MS 5000
#define ROUNDS 20

/* @words: NUL-separated. Whether this is QEMU with the pid file of a probe in @folder. */
static gboolean
is_probe (const char *words, gsize length, const char *folder)
{
  g_autofree char *prefix = g_strconcat (folder, "/" FOLDER_PREFIX, NULL);
  const char *base = strrchr (words, '/');
  gboolean next = FALSE;

  if (!g_str_has_prefix (base != NULL ? base + 1 : words, PROGRAM_PREFIX))
    return FALSE;
  for (const char *word = words; word < words + length; word += strlen (word) + 1)
    {
      if (next)
        return g_str_has_prefix (word, prefix) && g_str_has_suffix (word, PID_FILE);
      next = g_str_equal (word, "-pidfile");
    }
  return FALSE;
}

/* The handle comes first, so that what is looked at is what will be ended. Returns -1 if @name is no probe of @folder. */
static int
open_probe (const char *name, const char *folder)
{
  gint64 pid = g_ascii_strtoll (name, NULL, 10);
  g_autofree char *path = g_strdup_printf ("/proc/%" G_GINT64_FORMAT "/cmdline", pid);
  char words[CMDLINE_MAX + 1];
  g_auto(BjFd) process = -1;
  g_auto(BjFd) fd = -1;
  struct stat info;
  gssize length;

  if (pid <= 1 || pid > G_MAXINT32)
    return -1;
  process = pidfd_open ((pid_t) pid, 0);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (process < 0 || fd < 0 || fstat (fd, &info) < 0 || info.st_uid != geteuid ())
    return -1;
  length = read (fd, words, CMDLINE_MAX);
  if (length <= 0)
    return -1;
  words[length] = '\0';
  return is_probe (words, (gsize) length, folder) ? g_steal_fd (&process) : -1;
}

static void
end_probe (int process, const char *name)
{
  struct pollfd gone = { process, POLLIN, 0 };

  if (pidfd_send_signal (process, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
    g_warning ("Ending process %s, which asked QEMU for its abilities: %s", name, g_strerror (errno));
  else if (poll (&gone, 1, END_MS) == 1)
    g_message ("Ended process %s: it asked QEMU for its abilities when an earlier belljard was killed", name);
  else
    g_warning ("Process %s, which asked QEMU for its abilities, does not end", name);
}

/* Returns: how many there were */
static guint
end_probes (const char *folder)
{
  g_autoptr(GDir) proc = g_dir_open ("/proc", 0, NULL);
  const char *name;
  guint count = 0;

  while (proc != NULL && (name = g_dir_read_name (proc)) != NULL)
    {
      g_auto(BjFd) process = open_probe (name, folder);

      if (process < 0)
        continue;
      end_probe (process, name);
      count++;
    }
  return count;
}

static void
remove_folders (const char *folder)
{
  g_autoptr(GDir) entries = g_dir_open (folder, 0, NULL);
  const char *name;

  while (entries != NULL && (name = g_dir_read_name (entries)) != NULL)
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      g_autoptr(GError) error = NULL;

      if (!g_str_has_prefix (name, FOLDER_PREFIX))
        continue;
      g_message ("Removing %s, left by an earlier belljard", path);
      if (!bj_remove_tree (path, &error))
        g_warning ("%s", error->message);
    }
}

void
bj_engine_end_probes (const char *root_dir)
{
  g_autofree char *folder = g_build_filename (root_dir, "lib", "qemu", NULL);

  /* Again until there are none: QEMU forks into the background while it starts. */
  for (guint i = 0; i < ROUNDS && end_probes (folder) > 0; i++)
    continue;
  remove_folders (folder);
}
