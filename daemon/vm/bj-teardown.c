/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-teardown"

#include "bj-teardown.h"

/* libvirt takes a second or two for each; more at once would only slow down the machines that live. */
#define AT_ONCE 3

struct _BjTeardown
{
  GThreadPool *pool;
  GMutex lock; /* guards the rest */
  GCond changed;
  guint left;
};

static void
destroy (gpointer data, gpointer user_data)
{
  g_autoptr(BjMachine) machine = data;
  BjTeardown *self = user_data;
  g_autoptr(GError) error = NULL;

  if (!bj_machine_destroy (machine, &error))
    g_warning ("The machine %s is not quite gone: %s", bj_machine_get_id (machine), error->message);
  g_clear_object (&machine);
  g_mutex_lock (&self->lock);
  self->left--;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

BjTeardown *
bj_teardown_new (void)
{
  BjTeardown *self = g_new0 (BjTeardown, 1);

  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  /* Threads that are not exclusive cannot fail to start here. */
  self->pool = g_thread_pool_new (destroy, self, AT_ONCE, FALSE, NULL);
  return self;
}

void
bj_teardown_free (BjTeardown *self)
{
  g_thread_pool_free (self->pool, FALSE, TRUE);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

void
bj_teardown_add (BjTeardown *self, BjMachine *machine)
{
  g_mutex_lock (&self->lock);
  self->left++;
  g_mutex_unlock (&self->lock);
  g_thread_pool_push (self->pool, machine, NULL);
}

void
bj_teardown_wait (BjTeardown *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  while (self->left > 0)
    g_cond_wait (&self->changed, &self->lock);
}
