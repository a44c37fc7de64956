/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-overlay.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER_SIZE 32
#define SIZE_OFFSET 24

/* From the header of a qcow2 file: magic, version, …, at 24 the size as a big-endian number. */
static gboolean
read_virtual_size (const char *path, guint64 *size, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_CLOEXEC);
  guint8 header[HEADER_SIZE];

  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Opening the image's disk %s", path);
  if (read (fd, header, sizeof header) != (gssize) sizeof header || memcmp (header, "QFI\xfb", 4) != 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s is no qcow2 file: build the image again", path);
  memcpy (size, header + SIZE_OFFSET, sizeof *size);
  *size = GUINT64_FROM_BE (*size);
  return TRUE;
}

/* qemu-img would follow the chain by the names in the files (-u: it does not); machines are told the whole chain anyway, and a
 * state folder that is moved keeps working. */
gboolean
bj_overlay_create (const char *path, const char *base, uid_t uid, GCancellable *cancellable, GError **error)
{
  char size[24] = "";
  const char *argv[] = { "qemu-img", "create", "-q", "-u", "-f", "qcow2", "-F", "qcow2", "-b", base, path, size, NULL };
  guint64 bytes = 0;
  BjSpawn spawn = { .argv = argv, .timeout_s = 30 };
  g_auto(BjFd) fd = -1;

  if (!g_path_is_absolute (base) || !g_file_test (base, G_FILE_TEST_IS_REGULAR))
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "The image's disk %s is missing: build the image again", base);
  if (!read_virtual_size (base, &bytes, error))
    return FALSE;
  g_snprintf (size, sizeof size, "%" G_GUINT64_FORMAT, bytes);
  if (!bj_spawn_run (&spawn, NULL, cancellable, error))
    {
      g_prefix_error (error, "Making the overlay %s: ", path);
      return FALSE;
    }
  fd = open (path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fchmod (fd, 0600) < 0 || (geteuid () == 0 && fchown (fd, uid, uid) < 0))
    return bj_fd_set_io_error (error, errno, "Handing %s to the machine", path);
  return TRUE;
}
