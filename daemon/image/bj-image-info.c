/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-image-info.h"

#include "bj-digest.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define GROUP "image"

void
bj_image_seal_clear (BjImageSeal *seal)
{
  g_clear_pointer (&seal->digest, g_free);
}

void
bj_image_info_free (BjImageInfo *info)
{
  if (info == NULL)
    return;
  g_free (info->name);
  g_free (info->os);
  g_free (info->recipe);
  g_free (info->cmdline);
  bj_image_seal_clear (&info->kernel);
  bj_image_seal_clear (&info->initrd);
  g_free (info);
}

static gboolean
read_seal (GKeyFile *file, const char *group, BjImageSeal *seal, GError **error)
{
  g_autoptr(GError) local = NULL;

  if (!g_key_file_has_group (file, group))
    return TRUE;
  seal->digest = g_key_file_get_string (file, group, "digest", &local);
  if (local == NULL)
    seal->size = g_key_file_get_uint64 (file, group, "size", &local);
  if (local == NULL)
    seal->mtime_ns = g_key_file_get_int64 (file, group, "mtime-ns", &local);
  if (local == NULL)
    seal->inode = g_key_file_get_uint64 (file, group, "inode", &local);
  return local == NULL || bj_error_set (error, BJ_ERROR_INVALID, "%s", local->message);
}

static gboolean
read_texts (GKeyFile *file, BjImageInfo *info, GError **error)
{
  const struct { const char *key; char **value; } texts[] = {
    { "name", &info->name }, { "os", &info->os }, { "recipe", &info->recipe }, { "cmdline", &info->cmdline },
  };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr(GError) wrong = NULL;

      *texts[i].value = g_key_file_get_string (file, GROUP, texts[i].key, &wrong);
      if (wrong != NULL) /* with some there is a text nevertheless */
        return bj_error_set (error, BJ_ERROR_INVALID, "%s", wrong->message);
    }
  return TRUE;
}

static gboolean
read_numbers (GKeyFile *file, BjImageInfo *info, GError **error)
{
  g_autoptr(GError) local = NULL;

  info->version = (guint) g_key_file_get_uint64 (file, GROUP, "version", &local);
  if (local == NULL)
    info->api = (guint) g_key_file_get_uint64 (file, GROUP, "api", &local);
  if (local == NULL)
    info->built_at = g_key_file_get_int64 (file, GROUP, "built-at", &local);
  if (local == NULL)
    info->build_seconds = g_key_file_get_double (file, GROUP, "build-seconds", &local);
  if (local == NULL && g_key_file_has_key (file, GROUP, "desktop", NULL)) /* not in older ones */
    info->desktop = g_key_file_get_boolean (file, GROUP, "desktop", &local);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

BjImageInfo *
bj_image_info_read (const char *dir, GError **error)
{
  g_autofree char *path = g_build_filename (dir, "image.ini", NULL);
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autoptr(BjImageInfo) info = g_new0 (BjImageInfo, 1);
  g_autoptr(GError) local = NULL;

  if (g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, &local) && read_texts (file, info, &local)
      && read_numbers (file, info, &local) && read_seal (file, "kernel", &info->kernel, &local)
      && read_seal (file, "initrd", &info->initrd, &local))
    return g_steal_pointer (&info);
  bj_error_set (error, BJ_ERROR_INVALID, "%s: %s", path, local->message);
  return NULL;
}

static void
write_seal (GKeyFile *file, const char *group, const BjImageSeal *seal)
{
  if (seal->digest == NULL)
    return;
  g_key_file_set_string (file, group, "digest", seal->digest);
  g_key_file_set_uint64 (file, group, "size", seal->size);
  g_key_file_set_int64 (file, group, "mtime-ns", seal->mtime_ns);
  g_key_file_set_uint64 (file, group, "inode", seal->inode);
}

gboolean
bj_image_info_write (const char *dir, const BjImageInfo *info, GError **error)
{
  g_autofree char *path = g_build_filename (dir, "image.ini", NULL);
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *data = NULL;
  gsize length;

  g_key_file_set_string (file, GROUP, "name", info->name);
  g_key_file_set_uint64 (file, GROUP, "version", info->version);
  g_key_file_set_string (file, GROUP, "os", info->os);
  g_key_file_set_string (file, GROUP, "recipe", info->recipe);
  g_key_file_set_uint64 (file, GROUP, "api", info->api);
  g_key_file_set_string (file, GROUP, "cmdline", info->cmdline);
  g_key_file_set_int64 (file, GROUP, "built-at", info->built_at);
  g_key_file_set_double (file, GROUP, "build-seconds", info->build_seconds);
  g_key_file_set_boolean (file, GROUP, "desktop", info->desktop);
  write_seal (file, "kernel", &info->kernel);
  write_seal (file, "initrd", &info->initrd);
  data = g_key_file_to_data (file, &length, NULL);
  return g_file_set_contents_full (path, data, (gssize) length,
                                   G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0444, error);
}

static int
compare_versions (gconstpointer a, gconstpointer b)
{
  guint left = *(const guint *) a, right = *(const guint *) b;

  return left < right ? -1 : left > right;
}

GArray *
bj_image_scan_versions (const char *dir)
{
  g_autoptr(GDir) open = g_dir_open (dir, 0, NULL);
  GArray *versions = g_array_new (FALSE, FALSE, sizeof (guint));
  const char *name;

  while (open != NULL && (name = g_dir_read_name (open)) != NULL)
    {
      g_autofree char *path = g_build_filename (dir, name, NULL);
      guint64 number = 0;
      guint version;
      struct stat st;

      if (*name == '0' || !g_ascii_string_to_unsigned (name, 10, 1, G_MAXINT32, &number, NULL)
          || lstat (path, &st) < 0 || !S_ISDIR (st.st_mode))
        continue;
      version = (guint) number;
      g_array_append_val (versions, version);
    }
  g_array_sort (versions, compare_versions);
  return versions;
}

gboolean
bj_image_seal_read_facts (BjImageSeal *seal, const char *path, GError **error)
{
  struct stat st;

  if (lstat (path, &st) < 0)
    return bj_fd_set_io_error (error, errno, "Looking at %s", path);
  if (!S_ISREG (st.st_mode))
    return bj_error_set (error, BJ_ERROR_FAILED, "%s is not a regular file", path);
  seal->size = (guint64) st.st_size;
  seal->mtime_ns = (gint64) st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
  seal->inode = (guint64) st.st_ino;
  return TRUE;
}

const char *
bj_image_seal_differs (const BjImageSeal *seal, const char *path)
{
  BjImageSeal now = { 0 };

  if (!bj_image_seal_read_facts (&now, path, NULL))
    return "is not there";
  if (now.size != seal->size)
    return "has another size";
  if (now.inode != seal->inode)
    return "was replaced by another file";
  if (now.mtime_ns != seal->mtime_ns)
    return "was written to";
  return NULL;
}

gboolean
bj_image_seal_make (BjImageSeal *seal, const char *path, BjProgress *progress, GCancellable *cancellable,
                    GError **error)
{
  g_autofree char *digest = NULL;

  if (!bj_image_sync (path, error))
    return FALSE;
  if (chmod (path, 0444) < 0)
    return bj_fd_set_io_error (error, errno, "Making %s read-only", path);
  digest = bj_image_digest (path, progress, cancellable, error);
  if (digest == NULL || !bj_image_seal_read_facts (seal, path, error))
    return FALSE;
  g_free (seal->digest);
  seal->digest = g_steal_pointer (&digest);
  return TRUE;
}

static void
on_digest (double fraction, gpointer progress)
{
  bj_progress_set (progress, fraction);
}

char *
bj_image_digest (const char *path, BjProgress *progress, GCancellable *cancellable, GError **error)
{
  return bj_digest_file (path, on_digest, progress, cancellable, error);
}

gboolean
bj_image_sync (const char *path, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

  if (fd < 0 || fsync (fd) < 0)
    return bj_fd_set_io_error (error, errno, "Writing %s to disk", path);
  return TRUE;
}
