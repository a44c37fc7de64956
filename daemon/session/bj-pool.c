/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-pool"

#include "bj-pool.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-lease.h"
#include "bj-name.h"
#include "bj-remove.h"

#include <errno.h>
#include <glib/gstdio.h>

/* Whoever just got a machine has work to do with it: filling up waits that long. */
#define LEISURE (2 * G_USEC_PER_SEC)
#define RETRY_AFTER (60 * G_USEC_PER_SEC)

typedef struct
{
  BjMachine *machine; /* (owned) */
  char *digest;       /* (owned): of its image */
} BjStocked;

struct _BjPool
{
  BjContext *context;
  GThread *thread; /* (nullable) */
  GCancellable *cancellable;
  gulong changed_id;
  GMutex lock; /* guards the rest */
  GCond changed;
  GQueue stock; /* (element-type BjStocked), oldest first */
  gint64 not_before;
  guint image_changes; /* how often an image was built, frozen or deleted */
  gboolean ends;
};

static void
stocked_free (BjStocked *stocked)
{
  g_clear_object (&stocked->machine);
  g_free (stocked->digest);
  g_free (stocked);
}

static void
discard (BjPool *self, BjStocked *stocked)
{
  bj_teardown_add (self->context->teardown, g_steal_pointer (&stocked->machine));
  stocked_free (stocked);
}

static BjMachineSpec *
make_spec (BjContext *context, const BjImage *image, guint slot)
{
  BjMachineSpec *spec = g_new0 (BjMachineSpec, 1);
  g_autofree char *id = bj_name_new_id ();

  spec->id = g_strconcat (BJ_POOL_PREFIX, id, NULL);
  spec->slot = slot;
  spec->run_dir = g_build_filename (context->state_dir, "pool", spec->id, NULL);
  spec->base = g_strdup (image->disk);
  spec->kernel = g_strdup (image->kernel);
  spec->initrd = g_strdup (image->initrd);
  spec->cmdline = g_strdup (image->cmdline);
  spec->tablet = image->desktop;
  spec->hostname = g_strdup ("pool");
  spec->memory_mib = context->config->memory_mib;
  spec->cpus = context->config->cpus;
  spec->share = TRUE; /* fits both: who has none simply never plugs it */
  return spec;
}

static BjImage *
find_image (BjPool *self)
{
  BjImageStore *images = self->context->images;
  g_autofree char *name = bj_image_store_get_default (images);
  g_autoptr(BjImage) image = name != NULL ? bj_image_store_lookup (images, name, NULL) : NULL;

  return image != NULL && bj_image_store_check_start (images, image, NULL) ? g_steal_pointer (&image) : NULL;
}

/* Returns: (transfer full) (nullable): %NULL without an error: there is nothing to do now */
static BjStocked *
make_one (BjPool *self, GError **error)
{
  BjContext *context = self->context;
  g_autoptr(BjImage) image = find_image (self);
  g_autoptr(BjMachineSpec) spec = NULL;
  g_autoptr(BjMachine) machine = NULL;
  BjStocked *stocked;
  BjLease *lease;

  if (image == NULL || (lease = bj_lease_try (context, context->config->memory_mib)) == NULL)
    return NULL;
  spec = make_spec (context, image, bj_lease_get_slot (lease));
  spec->template = bj_templates_get (context->templates, image->digest, spec, NULL, NULL, self->cancellable, error);
  if (spec->template == NULL)
    {
      bj_lease_free (lease);
      return NULL;
    }
  machine = bj_machine_new (context->engine, spec);
  bj_machine_on_gone (machine, (GDestroyNotify) bj_lease_free, lease);
  if (!bj_machine_prepare (machine, self->cancellable, error) || !bj_machine_create (machine, self->cancellable, error))
    {
      bj_teardown_add (context->teardown, g_steal_pointer (&machine));
      return NULL;
    }
  stocked = g_new0 (BjStocked, 1);
  stocked->machine = g_steal_pointer (&machine);
  stocked->digest = g_strdup (image->digest);
  return stocked;
}

/* With the lock. */
static void
wait_for_want (BjPool *self)
{
  while (!self->ends
         && (self->stock.length >= self->context->config->pool_size || g_get_monotonic_time () < self->not_before))
    {
      if (self->stock.length >= self->context->config->pool_size)
        g_cond_wait (&self->changed, &self->lock);
      else
        g_cond_wait_until (&self->changed, &self->lock, self->not_before);
    }
}

static gpointer
fill_thread (gpointer data)
{
  BjPool *self = data;

  g_mutex_lock (&self->lock);
  for (;;)
    {
      g_autoptr(GError) error = NULL;
      BjStocked *stocked;
      guint changes;

      wait_for_want (self);
      if (self->ends)
        break;
      changes = self->image_changes;
      g_mutex_unlock (&self->lock);
      stocked = make_one (self, &error);
      g_mutex_lock (&self->lock);
      if (error != NULL && !self->ends)
        g_warning ("A machine for the pool could not be made: %s", error->message);
      if (stocked != NULL && changes == self->image_changes)
        g_queue_push_tail (&self->stock, stocked);
      else if (stocked != NULL)
        discard (self, stocked); /* its image may be gone meanwhile */
      else
        self->not_before = g_get_monotonic_time () + RETRY_AFTER;
    }
  g_mutex_unlock (&self->lock);
  return NULL;
}

static BjStocked *
pop (BjPool *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return g_queue_pop_head (&self->stock);
}

/* Somebody needs the memory more. */
static gboolean
give_back (gpointer user_data)
{
  BjPool *self = user_data;
  BjStocked *stocked = pop (self);

  if (stocked == NULL)
    return FALSE;
  g_message ("Memory is short: a machine of the pool goes");
  discard (self, stocked);
  return TRUE;
}

/* In the thread that changed an image: what is in stock may be of an old one; take checks that too. */
static void
on_images_changed (BjImageStore *images, const char *name, gpointer user_data)
{
  BjPool *self = user_data;
  g_autoptr(BjImage) image = find_image (self);
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  for (guint i = self->stock.length; i > 0; i--)
    {
      BjStocked *stocked = g_queue_pop_head (&self->stock);

      if (image != NULL && g_str_equal (stocked->digest, image->digest))
        g_queue_push_tail (&self->stock, stocked);
      else
        discard (self, stocked);
    }
  self->not_before = 0;
  self->image_changes++;
  g_cond_broadcast (&self->changed);
}

BjPool *
bj_pool_new (BjContext *context)
{
  BjPool *self = g_new0 (BjPool, 1);

  self->context = context;
  self->cancellable = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->stock);
  if (context->config->pool_size == 0 || !context->config->templates)
    return self;
  bj_budget_set_stock (context->budget, give_back, self);
  self->changed_id = g_signal_connect (context->images, "changed", G_CALLBACK (on_images_changed), self);
  self->thread = g_thread_new ("pool", fill_thread, self);
  return self;
}

void
bj_pool_free (BjPool *self)
{
  BjStocked *stocked;

  g_clear_signal_handler (&self->changed_id, self->context->images);
  bj_budget_set_stock (self->context->budget, NULL, NULL);
  g_mutex_lock (&self->lock);
  self->ends = TRUE;
  g_cancellable_cancel (self->cancellable);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&self->thread, g_thread_join);
  while ((stocked = pop (self)) != NULL)
    discard (self, stocked);
  g_object_unref (self->cancellable);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

static gboolean
is_fit (const BjStocked *stocked, const char *image_digest, const BjMachineSpec *spec)
{
  const BjMachineSpec *own = bj_machine_get_spec (stocked->machine);

  return g_str_equal (stocked->digest, image_digest) && own->memory_mib == spec->memory_mib && own->cpus == spec->cpus;
}

BjMachine *
bj_pool_take (BjPool *self, const char *image_digest, const BjMachineSpec *spec)
{
  BjStocked *stocked;
  BjMachine *machine = NULL;

  while (machine == NULL && (stocked = pop (self)) != NULL)
    {
      if (!is_fit (stocked, image_digest, spec))
        {
          g_mutex_lock (&self->lock);
          g_queue_push_head (&self->stock, stocked);
          g_mutex_unlock (&self->lock);
          return NULL;
        }
      if (bj_machine_get_state (stocked->machine) != BJ_MACHINE_STATE_PAUSED
          || !bj_template_is_unchanged (bj_machine_get_spec (stocked->machine)->template, NULL))
        {
          g_warning ("The machine %s in the pool is not well any more", bj_machine_get_id (stocked->machine));
          discard (self, stocked);
          continue;
        }
      machine = g_steal_pointer (&stocked->machine);
      bj_machine_adapt (machine, spec);
      stocked_free (stocked);
    }
  g_mutex_lock (&self->lock);
  self->not_before = g_get_monotonic_time () + LEISURE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return machine;
}

guint
bj_pool_get_count (BjPool *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->stock.length;
}

void
bj_pool_clean (BjContext *context)
{
  g_autofree char *path = g_build_filename (context->state_dir, "pool", NULL);
  g_auto(GStrv) machines = bj_engine_list_machines (context->engine, NULL);
  g_autoptr(GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *below = g_build_filename (path, name, NULL);

      /* A session that lives on may have got its machine from here. */
      if (machines == NULL || !g_strv_contains ((const char *const *) machines, name))
        bj_remove_tree (below, NULL);
    }
  if (g_mkdir_with_parents (path, 0711) < 0)
    g_warning ("Making %s: %s", path, g_strerror (errno));
}
