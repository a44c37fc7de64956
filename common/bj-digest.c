/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-digest.h"

#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

char *
bj_digest_file (const char *path, BjDigestProgress progress, gpointer user_data, GCancellable *cancellable, GError **error)
{
  const gsize chunk = 1024 * 1024;
  g_autoptr(GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guint8 *buffer = g_malloc (chunk);
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  struct stat st;
  guint64 total = 0;
  gssize n;

  if (fd < 0 || fstat (fd, &st) < 0)
    return bj_fd_set_io_error (error, errno, "Opening %s", path), NULL;
  while ((n = read (fd, buffer, chunk)) != 0)
    {
      if (n < 0)
        return bj_fd_set_io_error (error, errno, "Reading %s", path), NULL;
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return NULL;
      g_checksum_update (checksum, buffer, n);
      total += (guint64) n;
      if (progress != NULL)
        progress (st.st_size > 0 ? MIN (1.0, (double) total / (double) st.st_size) : 1.0, user_data);
    }
  return g_strconcat ("sha256:", g_checksum_get_string (checksum), NULL);
}
