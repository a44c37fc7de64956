/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-overlay.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

gboolean
bj_overlay_create (const char *path, const char *base, uid_t uid, GCancellable *cancellable, GError **error)
{
  const char *argv[] = { "qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, path, NULL };
  BjSpawn spawn = { .argv = argv, .timeout_s = 30 };
  g_auto(BjFd) fd = -1;

  if (!g_path_is_absolute (base) || !g_file_test (base, G_FILE_TEST_IS_REGULAR))
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "The image's disk %s is missing: build the image again", base);
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
