/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * /init of a small initramfs: loads the modules that /modules lists, one path a line and in order, mounts root= (rw or ro,
 * rootfstype=, rootflags=) and becomes init= there. When that fails the machine is switched off: nobody sits before it.
 */
#define DEVICE_WAIT_MS 20000
#define NEW_ROOT "/root"

static char command_line[4096];

static void
say (const char *what, const char *thing, int saved_errno)
{
  int fd = open ("/dev/kmsg", O_WRONLY | O_CLOEXEC);

  if (fd < 0)
    fd = 2;
  dprintf (fd, "<3>belljar-init: %s %s: %s\n", what, thing, strerror (saved_errno));
}

static void
fail (const char *what, const char *thing)
{
  say (what, thing, errno);
  sync ();
  reboot (RB_POWER_OFF);
  _exit (1);
}

static void
read_command_line (void)
{
  int fd = open ("/proc/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read (fd, command_line, sizeof command_line - 1);

  if (n < 0)
    fail ("cannot read", "/proc/cmdline");
  command_line[n] = '\0';
  command_line[strcspn (command_line, "\n")] = '\0';
  close (fd);
}

/* Returns a copy of the value of "key=", the last one if there are several, or of fallback. */
static const char *
get_option (const char *key, const char *fallback)
{
  size_t length = strlen (key);
  const char *found = NULL;
  const char *next = command_line;

  while (*next != '\0')
    {
      size_t n = strcspn (next, " ");

      if (strncmp (next, key, length) == 0)
        found = next + length;
      next += n + strspn (next + n, " ");
    }
  return found != NULL ? strndup (found, strcspn (found, " ")) : fallback;
}

static int
has_word (const char *word)
{
  size_t length = strlen (word);
  const char *next = command_line;

  while (*next != '\0')
    {
      size_t n = strcspn (next, " ");

      if (n == length && strncmp (next, word, n) == 0)
        return 1;
      next += n + strspn (next + n, " ");
    }
  return 0;
}

static void
mount_pseudo (const char *type, const char *target)
{
  mkdir (target, 0755);
  if (mount (type, target, type, MS_NOSUID | (strcmp (type, "devtmpfs") == 0 ? 0 : MS_NOEXEC | MS_NODEV), NULL) < 0
      && errno != EBUSY)
    fail ("cannot mount", target);
}

static void
load_module (const char *path)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    {
      say ("cannot open", path, errno);
      return;
    }
  if (syscall (SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
    say ("cannot load", path, errno);
  close (fd);
  /* The initramfs is memory. */
  unlink (path);
}

static void
load_modules (void)
{
  FILE *list = fopen ("/modules", "re");
  char line[512];

  if (list == NULL)
    return;
  while (fgets (line, sizeof line, list) != NULL)
    {
      line[strcspn (line, "\n")] = '\0';
      if (line[0] != '\0' && line[0] != '#')
        load_module (line);
    }
  fclose (list);
  unlink ("/modules");
}

static void
wait_for (const char *device)
{
  const struct timespec pause = { .tv_nsec = 1000000 };

  for (int i = 0; i < DEVICE_WAIT_MS; i++)
    {
      if (access (device, F_OK) == 0)
        return;
      nanosleep (&pause, NULL);
    }
  errno = ENODEV;
  fail ("did not find the root device", device);
}

static void
mount_root (void)
{
  const char *device = get_option ("root=", "/dev/vda");
  const char *type = get_option ("rootfstype=", "ext4");
  const char *flags = get_option ("rootflags=", "");

  wait_for (device);
  mkdir (NEW_ROOT, 0755);
  if (mount (device, NEW_ROOT, type, has_word ("rw") ? 0 : MS_RDONLY, flags) < 0)
    fail ("cannot mount the root device", device);
}

static void
switch_root (void)
{
  const char *const moved[] = { "/dev", "/proc", "/sys" };
  char target[64];

  for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++)
    {
      snprintf (target, sizeof target, NEW_ROOT "%s", moved[i]);
      if (mount (moved[i], target, NULL, MS_MOVE, NULL) < 0)
        fail ("cannot move", moved[i]);
    }
  unlink ("/init");
  if (chdir (NEW_ROOT) < 0 || mount (".", "/", NULL, MS_MOVE, NULL) < 0 || chroot (".") < 0 || chdir ("/") < 0)
    fail ("cannot change to", NEW_ROOT);
}

int
main (void)
{
  const char *init;

  if (getpid () != 1)
    {
      fputs ("belljar-guest-init: this is /init of an initramfs and does nothing elsewhere\n", stderr);
      return 2;
    }
  mount_pseudo ("proc", "/proc");
  mount_pseudo ("sysfs", "/sys");
  mount_pseudo ("devtmpfs", "/dev");
  read_command_line ();
  load_modules ();
  mount_root ();
  init = get_option ("init=", "/sbin/init");
  switch_root ();
  execl (init, init, (char *) NULL);
  fail ("cannot run", init);
  return 1;
}
