/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-fd.h"

#include "bj-error.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

gboolean
bj_fd_set_io_error (GError **error, int saved_errno, const char *format, ...)
{
  va_list args;
  g_autofree char *what = NULL;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (saved_errno), "%s: %s", what, g_strerror (saved_errno));
  return FALSE;
}

gboolean
bj_fd_write_all (int fd, gconstpointer data, gsize length, GError **error)
{
  const guint8 *next = data;

  while (length > 0)
    {
      gssize n = write (fd, next, length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return bj_fd_set_io_error (error, errno, "Writing");
      next += n;
      length -= (gsize) n;
    }
  return TRUE;
}

GBytes *
bj_fd_read_to_end (int fd, gsize max, GError **error)
{
  g_autoptr(GByteArray) all = g_byte_array_new ();
  guint8 buffer[65536];

  for (;;)
    {
      gssize n = read (fd, buffer, sizeof buffer);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        {
          bj_fd_set_io_error (error, errno, "Reading");
          return NULL;
        }
      if (n == 0)
        return g_byte_array_free_to_bytes (g_steal_pointer (&all));
      if (all->len + (gsize) n > max)
        {
          bj_error_set (error, BJ_ERROR_LIMIT, "More than %" G_GSIZE_FORMAT " bytes", max);
          return NULL;
        }
      g_byte_array_append (all, buffer, (guint) n);
    }
}

int
bj_fd_seal_bytes (const char *name, GBytes *bytes, GError **error)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  g_auto(BjFd) fd = memfd_create (name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Making a memory file");
      return -1;
    }
  if (!bj_fd_write_all (fd, data, size, error))
    return -1;
  if (fcntl (fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0
      || lseek (fd, 0, SEEK_SET) < 0)
    {
      bj_fd_set_io_error (error, errno, "Sealing a memory file");
      return -1;
    }
  return g_steal_fd (&fd);
}

int
bj_fd_take (GUnixFDList *fds, gint32 handle, GError **error)
{
  int count = fds != NULL ? g_unix_fd_list_get_length (fds) : 0;

  if (handle >= 0 && handle < count)
    return g_unix_fd_list_get (fds, handle, error);
  bj_error_set (error, BJ_ERROR_INVALID, "There is no file descriptor %d: the message came with %d", handle, count);
  return -1;
}
