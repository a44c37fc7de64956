/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-cable.h"

#define LOOK_S 2

struct _BjCable
{
  BjSession *session;   /* (not owned) */
  BjFirewall *firewall; /* (owned) */
  BjMachine *machine;   /* (owned) */
  GThread *thread;

  guint losses; /* the thread's own: those of the firewall that were told */

  GMutex lock; /* guards what follows */
  GCond changed;
  gboolean ending;
  gboolean wanted;
  gboolean safe; /* the firewall was there when it was last looked at */
};

/* Call with the lock held. */
static gboolean
plug (BjCable *self, GError **error)
{
  return bj_machine_set_link (self->machine, self->wanted && self->safe, error);
}

static void
set_safe (BjCable *self, gboolean safe)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  g_autoptr(GError) error = NULL;

  self->safe = safe;
  if (!plug (self, &error) && bj_machine_get_state (self->machine) != BJ_MACHINE_STATE_ABSENT)
    g_warning ("Session %s: the network cable: %s", bj_session_get_id (self->session), error->message);
}

gboolean
bj_cable_set (BjCable *self, gboolean plugged, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->wanted = plugged;
  return plug (self, error);
}

static void
put_back (BjCable *self, gboolean first)
{
  g_autoptr(GError) error = NULL;

  if (bj_firewall_prove (self->firewall, &error))
    {
      self->losses = bj_firewall_get_losses (self->firewall);
      set_safe (self, TRUE);
      bj_session_warn (self->session, "The firewall's table is installed and proven again; the machine %s has its network again",
                       bj_machine_get_id (self->machine));
    }
  else if (first)
    {
      bj_session_warn (self->session, "The machine %s stays without network: %s", bj_machine_get_id (self->machine),
                       error->message);
    }
}

/* Another one's table is not a loss: then the proof finds the same one and nothing was open. */
static void
look (BjCable *self)
{
  gboolean was_safe = self->safe; /* only this thread sets it */
  guint losses;

  if (was_safe && bj_firewall_is_intact (self->firewall))
    {
      losses = bj_firewall_get_losses (self->firewall);
      if (losses != self->losses)
        bj_session_warn (self->session, "Somebody removed or changed the firewall's table and it was put back: for up to %d seconds "
                         "the machine %s could reach this host and its networks", LOOK_S + 1, bj_machine_get_id (self->machine));
      self->losses = losses;
      return;
    }
  if (was_safe)
    {
      set_safe (self, FALSE);
      bj_session_warn (self->session, "The firewall's table is not as belljard installed it: for up to %d seconds the machine %s could "
                       "reach this host and its networks; its network cable is unplugged", LOOK_S + 1,
                       bj_machine_get_id (self->machine));
    }
  put_back (self, was_safe);
}

static gpointer
watch (gpointer data)
{
  BjCable *self = data;

  g_mutex_lock (&self->lock);
  while (!self->ending)
    {
      if (g_cond_wait_until (&self->changed, &self->lock, g_get_monotonic_time () + LOOK_S * G_USEC_PER_SEC))
        continue;
      g_mutex_unlock (&self->lock);
      look (self);
      g_mutex_lock (&self->lock);
    }
  g_mutex_unlock (&self->lock);
  return NULL;
}

BjCable *
bj_cable_new (BjSession *session, BjMachine *machine)
{
  BjCable *self = g_new0 (BjCable, 1);

  self->session = session;
  self->firewall = g_object_ref (bj_session_get_context (session)->firewall);
  self->machine = g_object_ref (machine);
  self->losses = bj_firewall_get_losses (self->firewall);
  self->wanted = self->safe = TRUE;
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->thread = g_thread_new ("cable", watch, self);
  return self;
}

void
bj_cable_free (BjCable *self)
{
  g_mutex_lock (&self->lock);
  self->ending = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_thread_join (self->thread);
  g_object_unref (self->firewall);
  g_object_unref (self->machine);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}
