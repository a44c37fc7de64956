/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-image-store-private.h"

#include "bj-error.h"
#include "bj-name.h"

G_DEFINE_TYPE (BjImageStore, bj_image_store, G_TYPE_OBJECT)

enum
{
  SIGNAL_CHANGED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

static void
bj_image_store_finalize (GObject *object)
{
  BjImageStore *self = BJ_IMAGE_STORE (object);

  g_clear_object (&self->store);
  g_clear_object (&self->engine);
  g_free (self->dir);
  g_strfreev (self->recipe_dirs);
  g_free (self->guest_dir);
  g_free (self->apt_dir);
  g_hash_table_unref (self->busy);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (bj_image_store_parent_class)->finalize (object);
}

static void
bj_image_store_class_init (BjImageStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_image_store_finalize;
  signals[SIGNAL_CHANGED] = g_signal_new ("changed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
bj_image_store_init (BjImageStore *self)
{
  g_mutex_init (&self->lock);
  self->busy = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
}

BjImageStore *
bj_image_store_new (BjStore *store, BjEngine *engine, const char *dir, const char *const *recipe_dirs,
                    const char *guest_dir)
{
  BjImageStore *self = g_object_new (BJ_TYPE_IMAGE_STORE, NULL);

  self->store = g_object_ref (store);
  self->engine = engine ? g_object_ref (engine) : NULL;
  self->dir = g_canonicalize_filename (dir, NULL);
  self->recipe_dirs = g_strdupv ((GStrv) recipe_dirs);
  self->guest_dir = g_canonicalize_filename (guest_dir, NULL);
  self->apt_dir = g_strdup ("/etc/apt");
  return self;
}

void
bj_image_free (BjImage *image)
{
  if (image == NULL)
    return;
  g_free (image->name);
  g_free (image->os);
  g_free (image->recipe);
  g_free (image->state);
  g_free (image->digest);
  g_free (image->dir);
  g_free (image->disk);
  g_free (image->kernel);
  g_free (image->initrd);
  g_free (image->cmdline);
  g_free (image);
}

gboolean
bj_image_store_claim (BjImageStore *self, const char *name, const char *what, GError **error)
{
  G_GNUC_UNUSED g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  const char *now = g_hash_table_lookup (self->busy, name);

  if (now != NULL)
    return bj_error_set (error, BJ_ERROR_BUSY, "The image %s is just being %s; wait for that job or cancel it", name,
                         now);
  g_hash_table_insert (self->busy, g_strdup (name), g_strdup (what));
  return TRUE;
}

void
bj_image_store_release (BjImageStore *self, const char *name)
{
  G_GNUC_UNUSED g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  g_hash_table_remove (self->busy, name);
}

void
bj_image_store_emit_changed (BjImageStore *self, const char *name)
{
  g_signal_emit (self, signals[SIGNAL_CHANGED], 0, name);
}

char *
bj_image_store_get_version_dir (BjImageStore *self, const char *name, guint version)
{
  g_autofree char *number = g_strdup_printf ("%u", version);

  return g_build_filename (self->dir, name, number, NULL);
}

static BjImageRow *
row_copy (const BjImageRow *row)
{
  BjImageRow *copy = g_new0 (BjImageRow, 1);

  *copy = *row;
  copy->name = g_strdup (row->name);
  copy->os = g_strdup (row->os);
  copy->recipe = g_strdup (row->recipe);
  copy->state = g_strdup (row->state);
  copy->digest = g_strdup (row->digest);
  return copy;
}

/* Newest version of each image. */
static GPtrArray *
list_newest (BjImageStore *self, GError **error)
{
  g_autoptr(GPtrArray) rows = bj_store_list_images (self->store, error);
  g_autoptr(GPtrArray) newest = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_image_row_free);

  if (rows == NULL)
    return NULL;
  for (guint i = 0; i < rows->len; i++)
    {
      const BjImageRow *row = g_ptr_array_index (rows, i);
      gboolean older = FALSE;

      for (guint j = 0; j < rows->len && !older; j++)
        {
          const BjImageRow *other = g_ptr_array_index (rows, j);

          older = g_str_equal (other->name, row->name) && other->version > row->version;
        }
      if (!older)
        g_ptr_array_add (newest, row_copy (row));
    }
  return g_steal_pointer (&newest);
}

BjImageRow *
bj_image_store_dup_row (BjImageStore *self, const char *name, guint version, GError **error)
{
  g_autoptr(GPtrArray) rows = bj_store_list_images (self->store, error);
  const BjImageRow *found = NULL;

  if (rows == NULL)
    return NULL;
  for (guint i = 0; i < rows->len; i++)
    {
      const BjImageRow *row = g_ptr_array_index (rows, i);

      if (g_strcmp0 (row->name, name) == 0 && (version == 0 || row->version == version)
          && (found == NULL || row->version > found->version))
        found = row;
    }
  if (found != NULL)
    return row_copy (found);
  if (bj_name_is_valid (name))
    bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no image \"%s\": build one with: belljar image build %s", name,
                  name);
  else
    bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no image of that name; list them with: belljar images");
  return NULL;
}

static BjImage *
image_from_row (BjImageStore *self, const BjImageRow *row)
{
  BjImage *image = g_new0 (BjImage, 1);
  g_autoptr(BjImageInfo) info = NULL;

  image->name = g_strdup (row->name);
  image->version = row->version;
  image->os = g_strdup (row->os);
  image->recipe = g_strdup (row->recipe);
  image->digest = g_strdup (row->digest ? row->digest : "");
  image->size = row->size;
  image->built_at = row->built_at;
  image->api_version = row->api_version;
  image->dir = bj_image_store_get_version_dir (self, row->name, row->version);
  image->disk = g_build_filename (image->dir, "disk.qcow2", NULL);
  image->kernel = g_build_filename (image->dir, "vmlinuz", NULL);
  image->initrd = g_build_filename (image->dir, "initrd", NULL);
  info = bj_image_info_read (image->dir, NULL);
  image->cmdline = g_strdup (info ? info->cmdline : "");
  image->desktop = info != NULL && info->desktop;
  image->state = g_strdup (info ? row->state : "broken");
  return image;
}

static int
compare_images (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 ((*(BjImage *const *) a)->name, (*(BjImage *const *) b)->name);
}

GPtrArray *
bj_image_store_list (BjImageStore *self)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) rows = list_newest (self, &error);
  GPtrArray *images = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_image_free);

  if (rows == NULL)
    g_warning ("Listing the images: %s", error->message);
  for (guint i = 0; rows != NULL && i < rows->len; i++)
    g_ptr_array_add (images, image_from_row (self, g_ptr_array_index (rows, i)));
  g_ptr_array_sort (images, compare_images);
  return images;
}

BjImage *
bj_image_store_lookup (BjImageStore *self, const char *name, GError **error)
{
  g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, name, 0, error);

  return row ? image_from_row (self, row) : NULL;
}

char *
bj_image_store_get_default (BjImageStore *self)
{
  g_autoptr(GPtrArray) images = bj_image_store_list (self);
  g_autofree char *chosen = bj_store_dup_setting (self->store, "default-image");
  const BjImage *first = NULL;

  for (guint i = 0; i < images->len; i++)
    {
      const BjImage *image = g_ptr_array_index (images, i);

      if (g_strcmp0 (image->name, chosen) == 0)
        return g_steal_pointer (&chosen);
      if (first == NULL || image->built_at < first->built_at)
        first = image;
    }
  return first ? g_strdup (first->name) : NULL;
}

gboolean
bj_image_store_set_default (BjImageStore *self, const char *name, GError **error)
{
  g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, name, 0, error);
  g_autofree char *before = bj_image_store_get_default (self);

  if (row == NULL || !bj_store_set_setting (self->store, "default-image", name, error))
    return FALSE;
  bj_image_store_emit_changed (self, name);
  if (before != NULL && !g_str_equal (before, name))
    bj_image_store_emit_changed (self, before);
  return TRUE;
}

gboolean
bj_image_store_put_state (BjImageStore *self, BjImageRow *row, const char *state, GError **error)
{
  g_free (row->state);
  row->state = g_strdup (state);
  if (!bj_store_put_image (self->store, row, error))
    return FALSE;
  bj_image_store_emit_changed (self, row->name);
  return TRUE;
}

/* Which file of a frozen image is not as it was recorded, and how; NULL if all are. */
static char *
find_difference (BjImageStore *self, const BjImageRow *row)
{
  g_autofree char *dir = bj_image_store_get_version_dir (self, row->name, row->version);
  g_autoptr(BjImageInfo) info = bj_image_info_read (dir, NULL);
  const BjImageSeal disk = { NULL, row->size, row->mtime_ns, row->inode };
  const struct { const char *name; const BjImageSeal *seal; } files[] = {
    { "disk.qcow2", &disk }, { "vmlinuz", info ? &info->kernel : NULL }, { "initrd", info ? &info->initrd : NULL },
  };

  if (info == NULL)
    return g_strdup ("image.ini cannot be read");
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (dir, files[i].name, NULL);
      const char *how = bj_image_seal_differs (files[i].seal, path);

      if (how != NULL)
        return g_strdup_printf ("%s %s", files[i].name, how);
    }
  return NULL;
}

static gboolean
check_api (const BjImageRow *row, GError **error)
{
  if (row->api_version < BJ_IMAGE_API_OLDEST)
    return bj_error_set (error, BJ_ERROR_IMAGE_TOO_OLD, "The image %s speaks version %u of the contract and this "
                         "Belljar needs %u: build it anew with: belljar image build %s", row->name, row->api_version,
                         BJ_IMAGE_API_OLDEST, row->recipe);
  if (row->api_version > BJ_IMAGE_API)
    return bj_error_set (error, BJ_ERROR_IMAGE_TOO_NEW, "The image %s speaks version %u of the contract and this "
                         "Belljar knows only %u: update Belljar, or build the image anew with: belljar image build %s",
                         row->name, row->api_version, BJ_IMAGE_API, row->recipe);
  return TRUE;
}

gboolean
bj_image_store_check_start (BjImageStore *self, BjImage *image, GError **error)
{
  g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, image->name, image->version, error);
  g_autofree char *difference = NULL;

  if (row == NULL || !check_api (row, error))
    return FALSE;
  if (g_str_equal (row->state, "unfrozen"))
    return bj_error_set (error, BJ_ERROR_NOT_FROZEN, "The image %s is not frozen; freeze it with: "
                         "belljar image freeze %s", row->name, row->name);
  difference = find_difference (self, row);
  if (difference == NULL && g_str_equal (row->state, "frozen"))
    return TRUE;
  if (!g_str_equal (row->state, "broken") && !bj_image_store_put_state (self, row, "broken", error))
    return FALSE;
  return bj_error_set (error, BJ_ERROR_FAILED, "The image %s is broken (%s): check its bytes with: "
                       "belljar image verify %s, or build it anew with: belljar image build %s", row->name,
                       difference ? difference : "its bytes are not those that were frozen", row->name, row->recipe);
}
