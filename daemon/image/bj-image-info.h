/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-progress.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* What is recorded of a file when it is frozen, to see at once whether somebody touched it. */
typedef struct
{
  char *digest; /* "sha256:HEX", %NULL until frozen */
  guint64 size;
  gint64 mtime_ns;
  guint64 inode;
} BjImageSeal;

/* image.ini in a version's folder. */
typedef struct
{
  char *name;
  guint version;
  char *os;
  char *recipe;
  guint api;
  char *cmdline;
  gboolean desktop;
  gint64 built_at;      /* seconds since 1970 */
  double build_seconds;
  BjImageSeal kernel;   /* the disk's is in the store */
  BjImageSeal initrd;
} BjImageInfo;

void bj_image_seal_clear (BjImageSeal *seal);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjImageSeal, bj_image_seal_clear)
void bj_image_info_free (BjImageInfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjImageInfo, bj_image_info_free)

/** bj_image_info_read: @dir: a version's folder. BJ_ERROR_INVALID names file and key */
BjImageInfo *bj_image_info_read (const char *dir, GError **error);
/** bj_image_info_write: replaces image.ini, durably */
gboolean bj_image_info_write (const char *dir, const BjImageInfo *info, GError **error);

/** bj_image_scan_versions: Returns: (transfer full) (element-type guint): the version folders in @dir, oldest first */
GArray *bj_image_scan_versions (const char *dir);

/** bj_image_seal_read_facts: size, time and inode of a regular file; the digest stays */
gboolean bj_image_seal_read_facts (BjImageSeal *seal, const char *path, GError **error);
/** bj_image_seal_differs: Returns: (nullable): which fact of @path is not as recorded, for people */
const char *bj_image_seal_differs (const BjImageSeal *seal, const char *path);
/** bj_image_seal_make: makes the file durable and read-only, reads every byte, records digest and facts */
gboolean bj_image_seal_make (BjImageSeal *seal, const char *path, BjProgress *progress, GCancellable *cancellable,
                             GError **error);
/** bj_image_digest: Returns: (transfer full): "sha256:HEX" of a file's bytes */
char *bj_image_digest (const char *path, BjProgress *progress, GCancellable *cancellable, GError **error);

/** bj_image_sync: fsync of a file or folder */
gboolean bj_image_sync (const char *path, GError **error);

G_END_DECLS
