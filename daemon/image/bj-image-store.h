/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-engine.h"
#include "bj-progress.h"
#include "bj-store.h"

G_BEGIN_DECLS

/*
 * Base images: STATE/images/NAME/VERSION/{disk.qcow2,vmlinuz,initrd,image.ini,build.log}.
 * Functions that build, freeze, verify or delete block (worker threads only).
 */
#define BJ_TYPE_IMAGE_STORE (bj_image_store_get_type ())
G_DECLARE_FINAL_TYPE (BjImageStore, bj_image_store, BJ, IMAGE_STORE, GObject)

/* The API version of the contract between image and daemon, /etc/belljar-image "api=N". */
#define BJ_IMAGE_API 1u
#define BJ_IMAGE_API_OLDEST 1u

/* One version of an image, a copy. */
typedef struct
{
  char *name;
  guint version;
  char *os;     /* for example "Debian 12" */
  char *recipe;
  char *state;  /* unfrozen, frozen or broken */
  char *digest; /* "sha256:HEX", "" until frozen */
  guint64 size;
  gint64 built_at; /* seconds since 1970 */
  guint api_version;
  char *dir;
  char *disk;
  char *kernel;
  char *initrd;
  char *cmdline;
  gboolean desktop; /* its machines have a tablet */
} BjImage;

void bj_image_free (BjImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjImage, bj_image_free)

/**
 * bj_image_store_new:
 * @dir: STATE/images
 * @recipe_dirs: folders that hold recipe folders, searched in order
 * @guest_dir: folder with the programs that go into an image (belljar-guest-run, belljar-guest-init)
 */
BjImageStore *bj_image_store_new (BjStore *store, BjEngine *engine, const char *dir, const char *const *recipe_dirs,
                                  const char *guest_dir);

/** bj_image_store_list: Returns: (transfer container) (element-type BjImage): newest version of each image, by name */
GPtrArray *bj_image_store_list (BjImageStore *self);
/** bj_image_store_lookup: Returns: (transfer full): newest version, or %NULL with BJ_ERROR_NOT_FOUND and what to do */
BjImage *bj_image_store_lookup (BjImageStore *self, const char *name, GError **error);
/** bj_image_store_get_default: Returns: (transfer full) (nullable): the default image's name */
char *bj_image_store_get_default (BjImageStore *self);
gboolean bj_image_store_set_default (BjImageStore *self, const char *name, GError **error);

/**
 * bj_image_store_check_start:
 * Whether a session may start on it now: frozen (BJ_ERROR_NOT_FROZEN), size, mtime and inode as recorded (else it becomes broken:
 * BJ_ERROR_FAILED), API version (BJ_ERROR_IMAGE_TOO_OLD, BJ_ERROR_IMAGE_TOO_NEW). Every message says what to do.
 */
gboolean bj_image_store_check_start (BjImageStore *self, BjImage *image, GError **error);

/**
 * bj_image_store_build:
 * @mirror: (nullable): a Debian mirror; %NULL takes the host's from its apt configuration
 * @slot: a machine slot for the smoke boot
 *
 * Builds the next version, boots it once for the recipe's smoke test. Leaves nothing when it fails or is cancelled.
 *
 * Returns: (transfer full): the new version, unfrozen
 */
BjImage *bj_image_store_build (BjImageStore *self, const char *recipe, const char *mirror, guint slot,
                               BjProgress *progress, GCancellable *cancellable, GError **error);
gboolean bj_image_store_freeze (BjImageStore *self, const char *name, BjProgress *progress, GCancellable *cancellable,
                                GError **error);
gboolean bj_image_store_verify (BjImageStore *self, const char *name, BjProgress *progress, GCancellable *cancellable,
                                GError **error);
gboolean bj_image_store_delete (BjImageStore *self, const char *name, GError **error);
/** bj_image_store_clean: Removes what an interrupted build left. Returns: (transfer full): what was removed, for the log */
GStrv bj_image_store_clean (BjImageStore *self);

/* signal "changed" (const char *name): emitted in the thread that changed it */

G_END_DECLS
