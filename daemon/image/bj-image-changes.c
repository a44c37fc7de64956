/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building, freezing, verifying, deleting: what changes an image and takes its time. */
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-image-build.h"
#include "bj-image-store-private.h"
#include "bj-name.h"
#include "bj-remove.h"

#include <errno.h>
#include <sys/stat.h>
#include <glib/gstdio.h>
#include <string.h>

#define BUILD_PREFIX ".build-"
#define DELETED_PREFIX ".deleted-"

/* Processes that a cancelled build left to the kernel need a moment to be gone. */
#define REMOVE_TRIES 20
#define REMOVE_PAUSE_US 100000

static gint64
begin (BjImageStore *self, const char *name, const char *action, const char *data, GError **error)
{
  g_autofree char *subject = g_strdup_printf ("image/%s", name);

  return bj_journal_begin (self->store, subject, action, data, error);
}

static void
end (BjImageStore *self, gint64 entry, const GError *failure)
{
  g_autoptr(GError) local = NULL;

  if (!bj_journal_end (self->store, entry, failure, &local))
    g_warning ("Closing an entry of the journal: %s", local->message);
}

static void
remove_leftover (const char *path)
{
  g_autoptr(GError) local = NULL;

  for (guint i = 0; i < REMOVE_TRIES; i++)
    {
      g_clear_error (&local);
      if (bj_remove_tree (path, &local))
        return;
      g_usleep (REMOVE_PAUSE_US);
    }
  g_warning ("Removing %s: %s", path, local->message);
}

static guint
choose_version (BjImageStore *self, const char *name)
{
  g_autofree char *dir = g_build_filename (self->dir, name, NULL);
  g_autoptr(GArray) versions = bj_image_scan_versions (dir);
  g_autoptr(BjImageRow) newest = bj_image_store_dup_row (self, name, 0, NULL);
  guint last = versions->len > 0 ? g_array_index (versions, guint, versions->len - 1) : 0;

  return MAX (last, newest ? newest->version : 0) + 1;
}

static BjImageRow *
row_from_info (const BjImageInfo *info, const BjImageSeal *disk)
{
  BjImageRow *row = g_new0 (BjImageRow, 1);

  row->name = g_strdup (info->name);
  row->version = info->version;
  row->os = g_strdup (info->os);
  row->recipe = g_strdup (info->recipe);
  row->state = g_strdup ("unfrozen");
  row->digest = g_strdup ("");
  row->size = disk->size;
  row->mtime_ns = disk->mtime_ns;
  row->inode = disk->inode;
  row->built_at = info->built_at;
  row->api_version = info->api;
  return row;
}

/* Takes a finished version folder into the store. */
static gboolean
adopt_version (BjImageStore *self, const char *name, guint version, GError **error)
{
  g_autofree char *dir = bj_image_store_get_version_dir (self, name, version);
  g_autofree char *path = g_build_filename (dir, "disk.qcow2", NULL);
  g_autoptr(BjImageInfo) info = bj_image_info_read (dir, error);
  g_autoptr(BjImageRow) row = NULL;
  g_auto(BjImageSeal) disk = { 0 };

  if (info == NULL || !bj_image_seal_read_facts (&disk, path, error))
    return FALSE;
  if (!g_str_equal (info->name, name) || info->version != version)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s/image.ini speaks of another image", dir);
  row = row_from_info (info, &disk);
  return bj_store_put_image (self->store, row, error);
}

static gboolean
write_info (const BjImageBuild *build, gint64 start, GError **error)
{
  const BjRecipe *recipe = build->recipe;
  const BjImageInfo info = {
    .name = recipe->name,
    .version = build->version,
    .os = recipe->os,
    .recipe = recipe->name,
    .api = recipe->api,
    .cmdline = recipe->cmdline,
    .desktop = recipe->desktop,
    .built_at = g_get_real_time () / G_USEC_PER_SEC,
    .build_seconds = (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC,
  };

  return bj_image_info_write (build->dir, &info, error);
}

/* The finished folder gets its number: from here on the version exists. */
static gboolean
publish (BjImageStore *self, const BjImageBuild *build, GError **error)
{
  static const char *const names[] = { "disk.qcow2", "vmlinuz", "initrd", "build.log" };
  g_autofree char *final = bj_image_store_get_version_dir (self, build->recipe->name, build->version);
  g_autofree char *parent = g_path_get_dirname (final);

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_build_filename (build->dir, names[i], NULL);

      if (!bj_image_sync (path, error))
        return FALSE;
    }
  if (!bj_image_sync (build->dir, error))
    return FALSE;
  if (g_rename (build->dir, final) < 0)
    return bj_fd_set_io_error (error, errno, "Renaming %s to %s", build->dir, final);
  if (bj_image_sync (parent, error) && adopt_version (self, build->recipe->name, build->version, error))
    return TRUE;
  remove_leftover (final);
  return FALSE;
}

static gboolean
build_in (BjImageStore *self, const BjImageBuild *build, BjProgress *progress, GCancellable *cancellable,
          GError **error)
{
  gint64 start = g_get_monotonic_time ();

  return bj_image_build_run (build, progress, cancellable, error)
         && !g_cancellable_set_error_if_cancelled (cancellable, error) && write_info (build, start, error)
         && publish (self, build, error);
}

static gboolean
build_claimed (BjImageStore *self, const BjRecipe *recipe, const char *mirror, guint slot, BjProgress *progress,
               GCancellable *cancellable, GError **error)
{
  g_autofree char *parent = g_build_filename (self->dir, recipe->name, NULL);
  g_autofree char *id = bj_name_new_id ();
  g_autofree char *dir = g_strconcat (parent, "/" BUILD_PREFIX, id, NULL);
  g_autofree char *data = g_strdup_printf ("{\"folder\":\"%s%s\"}", BUILD_PREFIX, id);
  g_autoptr(GError) local = NULL;
  const BjImageBuild build = { .recipe = recipe, .version = choose_version (self, recipe->name), .mirror = mirror,
                               .guest_dir = self->guest_dir, .apt_dir = self->apt_dir, .dir = dir,
                               .engine = self->engine, .slot = slot };
  gint64 entry = begin (self, recipe->name, "image-build", data, error);

  if (entry == 0)
    return FALSE;
  /* Machines' uids must get through to the files, whatever the daemon's umask. */
  if (g_mkdir_with_parents (parent, 0755) < 0 || g_chmod (parent, 0755) < 0 || g_mkdir (dir, 0700) < 0)
    bj_fd_set_io_error (&local, errno, "Making %s", dir);
  else if (!build_in (self, &build, progress, cancellable, &local))
    remove_leftover (dir);
  if (local != NULL)
    /* Only goes if it is empty: no version was built before. */
    (void) g_rmdir (parent);
  end (self, entry, local);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

BjImage *
bj_image_store_build (BjImageStore *self, const char *recipe_name, const char *mirror, guint slot,
                      BjProgress *progress, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjRecipe) recipe = bj_recipe_load ((const char *const *) self->recipe_dirs, recipe_name, error);
  gboolean ok;

  if (recipe == NULL || !bj_image_store_claim (self, recipe->name, "built", error))
    return NULL;
  ok = build_claimed (self, recipe, mirror, slot, progress, cancellable, error);
  bj_image_store_release (self, recipe->name);
  bj_image_store_emit_changed (self, recipe->name);
  return ok ? bj_image_store_lookup (self, recipe->name, error) : NULL;
}

static gboolean
freeze_files (const char *dir, BjImageInfo *info, BjImageSeal *disk, BjProgress *progress, GCancellable *cancellable,
              GError **error)
{
  g_autofree char *disk_path = g_build_filename (dir, "disk.qcow2", NULL);
  g_autofree char *kernel_path = g_build_filename (dir, "vmlinuz", NULL);
  g_autofree char *initrd_path = g_build_filename (dir, "initrd", NULL);

  return bj_image_seal_make (&info->kernel, kernel_path, NULL, cancellable, error)
         && bj_image_seal_make (&info->initrd, initrd_path, NULL, cancellable, error)
         && bj_image_seal_make (disk, disk_path, progress, cancellable, error)
         && bj_image_info_write (dir, info, error) && bj_image_sync (dir, error);
}

static void
take_disk_facts (BjImageRow *row, BjImageSeal *disk)
{
  row->size = disk->size;
  row->mtime_ns = disk->mtime_ns;
  row->inode = disk->inode;
  g_free (row->digest);
  row->digest = g_steal_pointer (&disk->digest);
}

static gboolean
freeze_claimed (BjImageStore *self, const char *name, BjProgress *progress, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, name, 0, error);
  g_autofree char *dir = row ? bj_image_store_get_version_dir (self, name, row->version) : NULL;
  g_autoptr(BjImageInfo) info = NULL;
  g_auto(BjImageSeal) disk = { 0 };

  if (row == NULL)
    return FALSE;
  if (g_str_equal (row->state, "frozen"))
    return TRUE;
  if (!g_str_equal (row->state, "unfrozen"))
    return bj_error_set (error, BJ_ERROR_FAILED, "The image %s is broken and cannot be frozen; build it anew with: "
                         "belljar image build %s", name, row->recipe);
  info = bj_image_info_read (dir, error);
  if (info == NULL)
    return FALSE;
  bj_progress_add_step (progress, "freeze", 1);
  if (!freeze_files (dir, info, &disk, progress, cancellable, error))
    return FALSE;
  bj_progress_step_done (progress);
  take_disk_facts (row, &disk);
  return bj_image_store_put_state (self, row, "frozen", error);
}

gboolean
bj_image_store_freeze (BjImageStore *self, const char *name, BjProgress *progress, GCancellable *cancellable,
                       GError **error)
{
  gboolean ok;

  if (!bj_image_store_claim (self, name, "frozen", error))
    return FALSE;
  ok = freeze_claimed (self, name, progress, cancellable, error);
  bj_image_store_release (self, name);
  return ok;
}

/* @match says whether the bytes have that digest, an error only that it could not be found out. */
static gboolean
compare_bytes (const char *path, const char *digest, gboolean *match, BjProgress *progress, GCancellable *cancellable,
               GError **error)
{
  g_autofree char *now = bj_image_digest (path, progress, cancellable, error);

  if (now == NULL)
    return FALSE;
  *match = g_strcmp0 (now, digest) == 0;
  return TRUE;
}

static gboolean
verify_files (const char *dir, BjImageInfo *info, BjImageSeal *disk, const char **wrong, BjProgress *progress,
              GCancellable *cancellable, GError **error)
{
  const struct { const char *name; BjImageSeal *seal; BjProgress *progress; } files[] = {
    { "vmlinuz", &info->kernel, NULL }, { "initrd", &info->initrd, NULL }, { "disk.qcow2", disk, progress },
  };

  for (guint i = 0; i < G_N_ELEMENTS (files) && *wrong == NULL; i++)
    {
      g_autofree char *path = g_build_filename (dir, files[i].name, NULL);
      gboolean match = FALSE;

      /* Absent, a link or a folder: no match, and no error. */
      if (bj_image_seal_read_facts (files[i].seal, path, NULL)
          && !compare_bytes (path, files[i].seal->digest, &match, files[i].progress, cancellable, error))
        return FALSE;
      if (!match)
        *wrong = files[i].name;
    }
  return TRUE;
}

static gboolean
verify_claimed (BjImageStore *self, const char *name, BjProgress *progress, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, name, 0, error);
  g_autofree char *dir = row ? bj_image_store_get_version_dir (self, name, row->version) : NULL;
  g_autoptr(BjImageInfo) info = dir ? bj_image_info_read (dir, NULL) : NULL;
  g_auto(BjImageSeal) disk = { 0 };
  const char *wrong = NULL;

  if (row == NULL)
    return FALSE;
  if (g_str_equal (row->state, "unfrozen"))
    return bj_error_set (error, BJ_ERROR_NOT_FROZEN, "The image %s is not frozen, so there is nothing to compare it "
                         "with; freeze it with: belljar image freeze %s", name, name);
  disk.digest = g_strdup (row->digest);
  bj_progress_add_step (progress, "verify", 1);
  if (info == NULL)
    wrong = "image.ini";
  else if (!verify_files (dir, info, &disk, &wrong, progress, cancellable, error))
    return FALSE;
  bj_progress_step_done (progress);
  if (wrong != NULL && !bj_image_store_put_state (self, row, "broken", error))
    return FALSE;
  if (wrong != NULL)
    return bj_error_set (error, BJ_ERROR_FAILED, "The image %s is broken: %s is not as it was frozen; build it anew "
                         "with: belljar image build %s", name, wrong, row->recipe);
  /* Every byte is right. A copy that was restored has other times and inodes: those count from now on. */
  if (!bj_image_info_write (dir, info, error))
    return FALSE;
  take_disk_facts (row, &disk);
  return bj_image_store_put_state (self, row, "frozen", error);
}

gboolean
bj_image_store_verify (BjImageStore *self, const char *name, BjProgress *progress, GCancellable *cancellable,
                       GError **error)
{
  gboolean ok;

  if (!bj_image_store_claim (self, name, "verified", error))
    return FALSE;
  ok = verify_claimed (self, name, progress, cancellable, error);
  bj_image_store_release (self, name);
  return ok;
}

/* Renamed first: from then on it is nobody's version, and a start after a crash finishes the job. */
static gboolean
delete_version (BjImageStore *self, const char *name, guint version, GError **error)
{
  g_autofree char *dir = bj_image_store_get_version_dir (self, name, version);
  g_autofree char *away = g_strdup_printf ("%s/%s/" DELETED_PREFIX "%u", self->dir, name, version);

  if (g_rename (dir, away) < 0 && errno != ENOENT)
    return bj_fd_set_io_error (error, errno, "Renaming %s to %s", dir, away);
  if (!bj_store_delete_image (self->store, name, version, error))
    return FALSE;
  remove_leftover (away);
  return TRUE;
}

static gboolean
delete_versions (BjImageStore *self, const char *name, GError **error)
{
  g_autoptr(GPtrArray) rows = bj_store_list_images (self->store, error);
  g_autofree char *parent = g_build_filename (self->dir, name, NULL);

  if (rows == NULL)
    return FALSE;
  for (guint i = 0; i < rows->len; i++)
    {
      const BjImageRow *row = g_ptr_array_index (rows, i);

      if (g_str_equal (row->name, name) && !delete_version (self, name, row->version, error))
        return FALSE;
    }
  if (g_rmdir (parent) < 0 && errno != ENOENT)
    return bj_fd_set_io_error (error, errno, "Removing %s", parent);
  return TRUE;
}

static gboolean
delete_claimed (BjImageStore *self, const char *name, GError **error)
{
  g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, name, 0, error);
  g_autoptr(GError) local = NULL;
  gint64 entry = row ? begin (self, name, "image-delete", "{}", error) : 0;

  if (entry == 0)
    return FALSE;
  (void) delete_versions (self, name, &local);
  end (self, entry, local);
  bj_image_store_emit_changed (self, name);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

gboolean
bj_image_store_delete (BjImageStore *self, const char *name, GError **error)
{
  gboolean ok;

  if (!bj_image_store_claim (self, name, "deleted", error))
    return FALSE;
  ok = delete_claimed (self, name, error);
  bj_image_store_release (self, name);
  return ok;
}

/* One name in an image's folder: something unfinished, or a version that the store does not know. */
static void
clean_entry (BjImageStore *self, const char *name, const char *entry, GStrvBuilder *removed)
{
  g_autofree char *path = g_build_filename (self->dir, name, entry, NULL);
  guint64 version = 0;

  if (!g_str_has_prefix (entry, BUILD_PREFIX) && !g_str_has_prefix (entry, DELETED_PREFIX))
    return;
  if (g_str_has_prefix (entry, DELETED_PREFIX)
      && g_ascii_string_to_unsigned (entry + strlen (DELETED_PREFIX), 10, 1, G_MAXINT32, &version, NULL))
    (void) bj_store_delete_image (self->store, name, (guint) version, NULL);
  remove_leftover (path);
  g_strv_builder_add (removed, path);
}

static void
clean_image (BjImageStore *self, const char *name, GStrvBuilder *removed)
{
  g_autofree char *path = g_build_filename (self->dir, name, NULL);
  g_autoptr(GDir) dir = g_dir_open (path, 0, NULL);
  g_autoptr(GArray) versions = NULL;
  const char *entry;

  while (dir != NULL && (entry = g_dir_read_name (dir)) != NULL)
    clean_entry (self, name, entry, removed);
  versions = bj_image_scan_versions (path);
  for (guint i = 0; i < versions->len; i++)
    {
      guint version = g_array_index (versions, guint, i);
      g_autoptr(BjImageRow) row = bj_image_store_dup_row (self, name, version, NULL);
      g_autoptr(GError) local = NULL;

      /* Finished on disk, but the daemon died before the store knew: it can be frozen like any other. */
      if (row == NULL && !adopt_version (self, name, version, &local))
        g_warning ("The folder %s/%u is no image: %s", path, version, local->message);
    }
  (void) g_rmdir (path);
}

static void
close_journal (BjImageStore *self)
{
  g_autoptr(GPtrArray) entries = bj_journal_list_open (self->store, NULL);
  g_autoptr(GError) reason = g_error_new_literal (BJ_ERROR, BJ_ERROR_CANCELLED, "The daemon ended meanwhile");

  for (guint i = 0; entries != NULL && i < entries->len; i++)
    {
      const BjJournalEntry *entry = g_ptr_array_index (entries, i);

      if (g_str_has_prefix (entry->subject, "image/"))
        end (self, entry->id, reason);
    }
}

GStrv
bj_image_store_clean (BjImageStore *self)
{
  g_autoptr(GStrvBuilder) removed = g_strv_builder_new ();
  g_autoptr(GDir) dir = g_dir_open (self->dir, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    if (bj_name_is_valid (name))
      clean_image (self, name, removed);
  close_journal (self);
  return g_strv_builder_end (removed);
}
