/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-modes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files for the host. The agent's own file verbs would hang on a FIFO, and the agent with them. */

static int
finish_errno (int saved_errno)
{
  BjReply reply;

  bj_reply_init (&reply);
  reply.answer.exit = saved_errno;
  return bj_reply_print (&reply);
}

/* Returns an fd of a regular file, or -1 with errno; EISDIR and ENXIO mean that it is something else. */
static int
open_regular (const char *path, int flags, mode_t mode, struct stat *info)
{
  int fd;

  if (path == NULL)
    {
      errno = EINVAL;
      return -1;
    }
  fd = open (path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  if (fd < 0)
    return -1;
  if (fstat (fd, info) == 0 && S_ISREG (info->st_mode))
    return fd;
  close (fd);
  errno = S_ISDIR (info->st_mode) ? EISDIR : ENXIO;
  return -1;
}

int
bj_mode_read (const BjRequest *request)
{
  static uint8_t data[BJ_RUN_KEEP_MAX];
  struct stat info;
  BjReply reply;
  ssize_t n = 0;
  uint32_t done = 0;
  int fd = open_regular (request->path, O_RDONLY, 0, &info);

  if (fd < 0)
    return finish_errno (errno);
  while (done < request->cap && (n = pread (fd, data + done, request->cap - done, (off_t) (request->offset + done))) > 0)
    done += (uint32_t) n;
  if (n < 0)
    return finish_errno (errno);
  bj_reply_init (&reply);
  reply.answer.exit = 0;
  reply.answer.out_head = done;
  reply.answer.out_total = (uint64_t) info.st_size;
  reply.pieces[0] = data;
  return bj_reply_print (&reply);
}

/* Copies standard input. Returns 0 or an errno. */
static int
copy_input (int fd)
{
  static uint8_t buffer[64 << 10];
  ssize_t n;

  while ((n = read (0, buffer, sizeof buffer)) != 0)
    {
      if (n < 0 && errno != EINTR)
        return errno;
      for (ssize_t done = 0; done < n;)
        {
          ssize_t written = write (fd, buffer + done, (size_t) (n - done));

          if (written < 0 && errno != EINTR)
            return errno;
          if (written > 0)
            done += written;
        }
    }
  return 0;
}

int
bj_mode_write (const BjRequest *request)
{
  struct stat info;
  int result;
  int fd;

  umask (0);
  fd = open_regular (request->path, O_WRONLY | O_CREAT | (request->append ? O_APPEND : 0), (mode_t) request->mode & 07777,
                     &info);
  if (fd < 0)
    return finish_errno (errno);
  if (!request->append && ftruncate (fd, 0) < 0)
    return finish_errno (errno);
  if ((request->mode & MODE_FORCE) != 0 && fchmod (fd, (mode_t) request->mode & 07777) < 0)
    return finish_errno (errno);
  result = copy_input (fd);
  if (close (fd) < 0 && result == 0)
    result = errno;
  return finish_errno (result);
}
