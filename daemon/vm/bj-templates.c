/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-template"

#include "bj-templates.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-name.h"
#include "bj-remove.h"
#include "bj-template-capture.h"
#include "bj-template-key.h"

#include <errno.h>
#include <glib/gstdio.h>

#define NEW_PREFIX ".new-"
#define RETRY_AFTER (600 * G_USEC_PER_SEC)
#define LOOK_US 100000 /* between two looks at the cancellable */
/* Each takes some hundred MiB: of memory while it is loaded, of disk while it is kept. */
#define MAX_LOADED 2
#define MAX_KEPT 8

typedef struct
{
  BjTemplate *template; /* (owned) (nullable) */
  gboolean busy;        /* somebody reads or makes it */
  GError *failure;      /* (owned) (nullable) */
  gint64 failed_at;     /* monotonic */
  gint64 used_at;       /* monotonic */
} BjEntry;

struct _BjTemplates
{
  BjEngine *engine;
  BjSlots *slots;
  char *dir;
  GMutex lock; /* guards the rest */
  GCond changed;
  GHashTable *entries; /* (element-type utf8 BjEntry) */
  char *last_failure;
};

static void
entry_free (gpointer data)
{
  BjEntry *entry = data;

  g_clear_pointer (&entry->template, bj_template_unref);
  g_clear_error (&entry->failure);
  g_free (entry);
}

BjTemplates *
bj_templates_new (BjEngine *engine, BjSlots *slots, const char *dir)
{
  BjTemplates *self = g_new0 (BjTemplates, 1);

  self->engine = engine;
  self->slots = slots;
  self->dir = g_strdup (dir);
  self->entries = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  return self;
}

void
bj_templates_free (BjTemplates *self)
{
  g_hash_table_unref (self->entries);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->last_failure);
  g_free (self->dir);
  g_free (self);
}

char *
bj_templates_dup_failure (BjTemplates *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return g_strdup (self->last_failure);
}

static void
remove_obsolete (BjTemplates *self, const BjTemplateFacts *facts)
{
  g_autoptr(GDir) dir = g_dir_open (self->dir, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (self->dir, name, NULL);

      if (g_str_has_prefix (name, NEW_PREFIX) || g_str_equal (name, facts->key) || !bj_template_is_obsolete (path, facts))
        continue;
      g_message ("Removing the template %s: there is a newer one", name);
      bj_remove_tree (path, NULL);
    }
}

static gint64
get_age (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "template.ini", NULL);
  GStatBuf info;

  return g_stat (path, &info) == 0 ? info.st_mtime : 0;
}

/* Machines of many different sizes were wanted: the oldest template goes. Clones that live have its files open. */
static void
remove_surplus (BjTemplates *self, const char *key)
{
  g_autoptr(GDir) dir = g_dir_open (self->dir, 0, NULL);
  g_autofree char *oldest = NULL;
  guint kept = 0;
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (self->dir, name, NULL);

      if (g_str_has_prefix (name, NEW_PREFIX))
        continue;
      kept++;
      if (g_str_equal (name, key) || (oldest != NULL && get_age (oldest) <= get_age (path)))
        continue;
      g_free (oldest);
      oldest = g_steal_pointer (&path);
    }
  if (kept <= MAX_KEPT || oldest == NULL)
    return;
  g_message ("Removing the template %s: there are more than %d", oldest, MAX_KEPT);
  bj_remove_tree (oldest, NULL);
}

static gboolean
capture (BjTemplates *self, const char *key, const char *image_digest, const BjMachineSpec *spec,
         GCancellable *cancellable, GError **error)
{
  g_autofree char *id = bj_name_new_id ();
  g_autofree char *name = g_strconcat (NEW_PREFIX, id, NULL);
  g_autofree char *fresh = g_build_filename (self->dir, name, NULL);
  g_autofree char *final = g_build_filename (self->dir, key, NULL);
  const BjTemplateFacts facts = { .key = key, .image_digest = image_digest, .memory_mib = spec->memory_mib,
                                  .cpus = spec->cpus };
  int slot = bj_slots_take (self->slots);
  gboolean ok;

  if (slot < 0)
    return bj_error_set (error, BJ_ERROR_LIMIT, "There is no free slot for the machine of a template");
  if (g_mkdir_with_parents (self->dir, 0711) < 0)
    bj_fd_set_io_error (error, errno, "Making %s", self->dir);
  ok = g_file_test (self->dir, G_FILE_TEST_IS_DIR)
       && bj_template_capture (self->engine, spec, (guint) slot, fresh, key, image_digest, cancellable, error);
  bj_slots_release (self->slots, (guint) slot);
  if (!ok)
    return FALSE;
  if (g_rename (fresh, final) < 0)
    {
      bj_fd_set_io_error (error, errno, "Moving %s", fresh);
      bj_remove_tree (fresh, NULL);
      return FALSE;
    }
  remove_obsolete (self, &facts);
  remove_surplus (self, key);
  return TRUE;
}

/* Whatever is wrong with one that is there, a new one is right. */
static BjTemplate *
load_or_capture (BjTemplates *self, const char *key, const char *image_digest, const BjMachineSpec *spec,
                 BjTemplatesMakes makes, gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = g_build_filename (self->dir, key, NULL);
  g_autoptr(GError) local = NULL;
  BjTemplate *template = bj_template_load (path, key, cancellable, &local);

  if (template != NULL || g_error_matches (local, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    {
      if (local != NULL)
        g_propagate_error (error, g_steal_pointer (&local));
      return template;
    }
  if (!g_error_matches (local, BJ_ERROR, BJ_ERROR_NOT_FOUND))
    g_warning ("%s; it is made anew", local->message);
  bj_remove_tree (path, NULL);
  if (makes != NULL)
    makes (user_data);
  if (!capture (self, key, image_digest, spec, cancellable, error))
    return NULL;
  return bj_template_load (path, key, cancellable, error);
}

static BjEntry *
get_entry (BjTemplates *self, const char *key)
{
  BjEntry *entry = g_hash_table_lookup (self->entries, key);

  if (entry == NULL)
    {
      entry = g_new0 (BjEntry, 1);
      g_hash_table_insert (self->entries, g_strdup (key), entry);
    }
  return entry;
}

static gboolean
is_recent_failure (const BjEntry *entry)
{
  return entry->failure != NULL && g_get_monotonic_time () - entry->failed_at < RETRY_AFTER;
}

/* With the lock. Returns whether there is nothing more to do: *template, or @error, is set. */
static gboolean
look (BjEntry *entry, BjTemplate **template, GError **error)
{
  g_autoptr(GError) changed = NULL;

  if (entry->template != NULL && !bj_template_is_unchanged (entry->template, &changed))
    {
      g_warning ("%s; it is made anew", changed->message);
      g_clear_pointer (&entry->template, bj_template_unref);
    }
  if (entry->template != NULL)
    {
      entry->used_at = g_get_monotonic_time ();
      *template = bj_template_ref (entry->template);
    }
  else if (is_recent_failure (entry))
    g_propagate_error (error, g_error_copy (entry->failure));
  else
    return FALSE;
  return TRUE;
}

/* With the lock. What is not loaded any more lies on disk, and clones of it keep their own reference. */
static void
unload_surplus (BjTemplates *self)
{
  GHashTableIter iter;
  gpointer value;
  BjEntry *oldest = NULL;
  guint loaded = 0;

  g_hash_table_iter_init (&iter, self->entries);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      BjEntry *entry = value;

      if (entry->template == NULL)
        continue;
      loaded++;
      if (oldest == NULL || entry->used_at < oldest->used_at)
        oldest = entry;
    }
  if (loaded > MAX_LOADED)
    g_clear_pointer (&oldest->template, bj_template_unref);
}

static void
settle (BjTemplates *self, BjEntry *entry, BjTemplate *template, const GError *failure)
{
  entry->busy = FALSE;
  g_clear_error (&entry->failure);
  g_clear_pointer (&self->last_failure, g_free);
  if (template != NULL)
    {
      entry->template = bj_template_ref (template);
      entry->used_at = g_get_monotonic_time ();
      unload_surplus (self);
    }
  else if (!g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)
           && !g_error_matches (failure, BJ_ERROR, BJ_ERROR_CANCELLED))
    {
      entry->failure = g_error_copy (failure);
      entry->failed_at = g_get_monotonic_time ();
      self->last_failure = g_strdup (failure->message);
    }
  g_cond_broadcast (&self->changed);
}

BjTemplate *
bj_templates_get (BjTemplates *self, const char *image_digest, const BjMachineSpec *spec, BjTemplatesMakes makes,
                  gpointer user_data, GCancellable *cancellable, GError **error)
{
  g_autofree char *key = bj_template_key_compute (self->engine, image_digest, spec, error);
  g_autoptr(GMutexLocker) locker = NULL;
  g_autoptr(GError) failure = NULL;
  BjTemplate *template = NULL;
  BjEntry *entry;

  if (key == NULL)
    return NULL;
  locker = g_mutex_locker_new (&self->lock);
  entry = get_entry (self, key);
  while (entry->busy)
    {
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return NULL;
      g_cond_wait_until (&self->changed, &self->lock, g_get_monotonic_time () + LOOK_US);
    }
  if (look (entry, &template, error))
    return template;
  entry->busy = TRUE;
  g_mutex_unlock (&self->lock);
  template = load_or_capture (self, key, image_digest, spec, makes, user_data, cancellable, &failure);
  g_mutex_lock (&self->lock);
  settle (self, entry, template, failure);
  if (template == NULL)
    g_propagate_error (error, g_steal_pointer (&failure));
  return template;
}

void
bj_templates_clean (BjTemplates *self, const char *const *image_digests)
{
  g_autoptr(GDir) dir = g_dir_open (self->dir, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (self->dir, name, NULL);

      if (bj_template_is_of (path, image_digests) && !g_str_has_prefix (name, NEW_PREFIX))
        continue;
      g_message ("Removing the template %s: it is not complete, or its image is gone", name);
      bj_remove_tree (path, NULL);
    }
}

GStrv
bj_templates_list_obsolete (BjTemplates *self, const char *const *image_digests)
{
  g_autoptr(GDir) dir = g_dir_open (self->dir, 0, NULL);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (self->dir, name, NULL);

      if (!g_str_has_prefix (name, NEW_PREFIX) && !bj_template_is_of (path, image_digests))
        g_strv_builder_add (builder, name);
    }
  return g_strv_builder_end (builder);
}

gboolean
bj_templates_forget (BjTemplates *self, const char *key)
{
  g_autofree char *path = g_build_filename (self->dir, key, NULL);
  g_autoptr(GError) error = NULL;
  BjEntry *entry;

  g_mutex_lock (&self->lock);
  entry = get_entry (self, key);
  if (entry->busy)
    {
      g_mutex_unlock (&self->lock);
      return FALSE;
    }
  entry->busy = TRUE; /* who comes meanwhile waits */
  g_clear_pointer (&entry->template, bj_template_unref);
  g_mutex_unlock (&self->lock);
  if (!bj_remove_tree (path, &error))
    g_warning ("The template %s is not quite gone: %s", key, error->message);
  g_mutex_lock (&self->lock);
  entry->busy = FALSE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return error == NULL;
}
