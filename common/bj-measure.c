/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-measure.h"

#include "bj-fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#define DEPTH_MAX 128
#define ENTRIES_MAX (5 * 1000 * 1000)
#define BLOCK 512 /* what st_blocks counts, whatever the file system's own blocks are */

struct _BjMeter
{
  gint64 until; /* monotonic */
  GCancellable *cancellable;
  GHashTable *seen; /* "device inode" of files with several names */
  guint64 entries;
  gboolean incomplete;
};

BjMeter *
bj_meter_new (guint deadline_s, GCancellable *cancellable)
{
  BjMeter *self = g_new0 (BjMeter, 1);

  self->until = g_get_monotonic_time () + (gint64) deadline_s * G_USEC_PER_SEC;
  self->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  self->seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

void
bj_meter_free (BjMeter *self)
{
  if (self == NULL)
    return;
  g_clear_object (&self->cancellable);
  g_hash_table_unref (self->seen);
  g_free (self);
}

gboolean
bj_meter_is_complete (BjMeter *self)
{
  return !self->incomplete;
}

static gboolean
may_go_on (BjMeter *self)
{
  if (self->entries >= ENTRIES_MAX || g_get_monotonic_time () > self->until
      || g_cancellable_is_cancelled (self->cancellable))
    self->incomplete = TRUE;
  return !self->incomplete;
}

static guint64
count_one (BjMeter *self, const struct stat *info)
{
  self->entries++;
  if (info->st_nlink > 1 && !S_ISDIR (info->st_mode)
      && !g_hash_table_add (self->seen, g_strdup_printf ("%ju %ju", (uintmax_t) info->st_dev, (uintmax_t) info->st_ino)))
    return 0;
  return (guint64) info->st_blocks * BLOCK;
}

/* What is gone meanwhile takes no room. */
static guint64
add_at (BjMeter *self, int parent, const char *name, dev_t device, guint depth)
{
  g_auto(BjFd) fd = -1;
  struct stat info;
  struct dirent *entry;
  guint64 bytes;
  DIR *folder;

  if (!may_go_on (self) || fstatat (parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0
      || (depth > 0 && info.st_dev != device))
    return 0;
  bytes = count_one (self, &info);
  if (!S_ISDIR (info.st_mode))
    return bytes;
  fd = depth < DEPTH_MAX ? openat (parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  folder = fd >= 0 ? fdopendir (fd) : NULL;
  if (folder == NULL)
    {
      self->incomplete = self->incomplete || depth >= DEPTH_MAX;
      return bytes;
    }
  fd = -1;
  while ((entry = readdir (folder)) != NULL)
    if (!g_str_equal (entry->d_name, ".") && !g_str_equal (entry->d_name, ".."))
      bytes += add_at (self, dirfd (folder), entry->d_name, info.st_dev, depth + 1);
  closedir (folder);
  return bytes;
}

guint64
bj_meter_add (BjMeter *self, const char *path)
{
  return add_at (self, AT_FDCWD, path, 0, 0);
}
