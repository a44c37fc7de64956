/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-screenshot.h"

#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <json-glib/json-glib.h>
#include <libvirt/libvirt-qemu.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_PNG (64u << 20)
#define SHOT_SET 77

/*
 * libvirt's own virDomainScreenshot() gives QEMU a path to open, which QEMU under its session's uid may not. So QEMU gets
 * an open memory file.
 */
static gboolean
tell_qemu (virDomainPtr domain, const char *command, unsigned int n_fds, int *fds, GError **error)
{
  char *reply = NULL;
  gboolean ok;

  if (virDomainQemuMonitorCommandWithFiles (domain, command, n_fds, fds, NULL, NULL, &reply, 0) < 0)
    return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Taking a screenshot");
  ok = strstr (reply, "\"error\"") == NULL;
  free (reply);
  return ok || bj_error_set (error, BJ_ERROR_FAILED, "QEMU took no screenshot");
}

GBytes *
bj_screenshot_take (virDomainPtr domain, GError **error)
{
  g_autofree char *add = g_strdup_printf ("{\"execute\":\"add-fd\",\"arguments\":{\"fdset-id\":%d}}", SHOT_SET);
  g_autofree char *dump = g_strdup_printf ("{\"execute\":\"screendump\",\"arguments\":"
                                           "{\"filename\":\"/dev/fdset/%d\",\"format\":\"png\"}}", SHOT_SET);
  g_autofree char *drop = g_strdup_printf ("{\"execute\":\"remove-fd\",\"arguments\":{\"fdset-id\":%d}}", SHOT_SET);
  g_auto(BjFd) fd = memfd_create ("screenshot", MFD_CLOEXEC);
  g_autofree char *again = g_strdup_printf ("/proc/self/fd/%d", fd);
  /* QEMU opens it for writing only, and takes none from a set that can do more. */
  g_auto(BjFd) writing = open (again, O_WRONLY | O_CLOEXEC);
  g_autoptr(GBytes) png = NULL;
  gboolean ok;

  if (fd < 0 || writing < 0)
    {
      bj_fd_set_io_error (error, errno, "Making a memory file");
      return NULL;
    }
  if (!tell_qemu (domain, add, 1, &writing, error))
    return NULL;
  ok = tell_qemu (domain, dump, 0, NULL, error);
  tell_qemu (domain, drop, 0, NULL, NULL);
  if (!ok || lseek (fd, 0, SEEK_SET) < 0 || (png = bj_fd_read_to_end (fd, MAX_PNG, error)) == NULL)
    return NULL;
  if (g_bytes_get_size (png) > 8 && memcmp (g_bytes_get_data (png, NULL), "\x89PNG\r\n\x1a\n", 8) == 0)
    return g_steal_pointer (&png);
  bj_error_set (error, BJ_ERROR_FAILED, "QEMU's screenshot is not a PNG file");
  return NULL;
}
