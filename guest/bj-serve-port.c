/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS "/sys/class/virtio-ports"

static bool
has_name (const char *folder, const char *name)
{
  char path[128];
  char text[64];
  ssize_t n;
  int fd;

  snprintf (path, sizeof path, "%s/name", folder);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  n = read (fd, text, sizeof text - 1);
  close (fd);
  if (n <= 0)
    return false;
  text[n] = '\0';
  text[strcspn (text, "\n")] = '\0';
  return strcmp (text, name) == 0;
}

/* Without udev: it starts later. Returns -1 if there is no such port, -2 if somebody else holds it. */
static int
try_ports (const char *name, char *folder, size_t size)
{
  DIR *dir = opendir (PORTS);
  struct dirent *entry;
  int fd = -1;

  while (dir != NULL && fd == -1 && (entry = readdir (dir)) != NULL)
    {
      char path[64];

      snprintf (folder, size, PORTS "/%.32s", entry->d_name);
      if (entry->d_name[0] == '.' || !has_name (folder, name))
        continue;
      snprintf (path, sizeof path, "/dev/%.32s", entry->d_name);
      fd = open (path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
      if (fd < 0 && errno == EBUSY)
        fd = -2;
    }
  if (dir != NULL)
    closedir (dir);
  return fd;
}

int
bj_serve_open_port (const char *name, char *folder, size_t size)
{
  const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK, .nl_groups = 1 };
  int events = socket (AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
  char message[4096];
  int fd;

  if (events < 0 || bind (events, (const struct sockaddr *) &kernel, sizeof kernel) < 0)
    return -1;
  /* An event that is lost because there were too many makes recv fail, and us look. */
  while ((fd = try_ports (name, folder, size)) == -1)
    do
      {
        ssize_t n = recv (events, message, sizeof message - 1, 0);

        message[n > 0 ? n : 0] = '\0';
        if (n <= 0)
          break;
      }
    while (strstr (message, "virtio-ports") == NULL);
  close (events);
  return fd;
}
