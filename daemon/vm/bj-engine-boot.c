/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-engine"

#include "bj-engine-boot.h"

#include "bj-fd.h"
#include "bj-remove.h"

#include <errno.h>
#include <sys/stat.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* "BOOT DEVICE INODE": this boot, and this folder rather than a copy of it. Returns: (transfer full) */
static char *
describe (const char *root_dir, GError **error)
{
  g_autofree char *boot = NULL;
  struct stat info;

  if (!g_file_get_contents (BOOT_ID, &boot, NULL, error))
    return NULL;
  if (stat (root_dir, &info) < 0)
    {
      bj_fd_set_io_error (error, errno, "Looking at %s", root_dir);
      return NULL;
    }
  return g_strdup_printf ("%s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n", g_strstrip (boot), (guint64) info.st_dev,
                          (guint64) info.st_ino);
}

gboolean
bj_engine_forget_dead (const char *root_dir, GError **error)
{
  g_autofree char *path = g_build_filename (root_dir, "boot", NULL);
  g_autofree char *run = g_build_filename (root_dir, "run", NULL);
  g_autofree char *now = describe (root_dir, error);
  g_autofree char *then = NULL;

  if (now == NULL)
    return FALSE;
  if (g_file_get_contents (path, &then, NULL, NULL) && g_str_equal (then, now))
    return TRUE;
  if (g_file_test (run, G_FILE_TEST_EXISTS))
    g_message ("Forgetting which machines ran: %s is of another boot, or was copied", run);
  return bj_remove_tree (run, error)
         && g_file_set_contents_full (path, now, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0600, error);
}
