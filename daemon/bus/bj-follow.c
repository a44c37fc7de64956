/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-follow.h"

struct _BjFollow
{
  gatomicrefcount refs;
  GMutex lock; /* from listing to handing over, so that lists stay in order */
  GObject *store; /* (owned) */
  gulong handler;
  BjFollowList list;
  BjFollowFunc func; /* NULL once it is freed */
  gpointer user_data;
};

typedef struct
{
  BjFollow *follow;
  GPtrArray *rows;
} BjHandover;

static void
follow_unref (gpointer data)
{
  BjFollow *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->store);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
handover_free (gpointer data)
{
  BjHandover *handover = data;

  g_ptr_array_unref (handover->rows);
  follow_unref (handover->follow);
  g_free (handover);
}

static gboolean
hand_over (gpointer data)
{
  BjHandover *handover = data;

  if (handover->follow->func != NULL)
    handover->follow->func (handover->rows, handover->follow->user_data);
  return G_SOURCE_REMOVE;
}

static void
on_changed (BjFollow *self)
{
  BjHandover *handover = g_new0 (BjHandover, 1);

  g_atomic_ref_count_inc (&self->refs);
  handover->follow = self;
  g_mutex_lock (&self->lock);
  handover->rows = self->list (self->store);
  g_idle_add_full (G_PRIORITY_DEFAULT, hand_over, handover, handover_free);
  g_mutex_unlock (&self->lock);
}

static void
closure_unref (gpointer data, GClosure *closure)
{
  follow_unref (data);
}

BjFollow *
bj_follow_new (gpointer store, BjFollowList list, BjFollowFunc func, gpointer user_data)
{
  BjFollow *self = g_new0 (BjFollow, 1);
  g_autoptr(GPtrArray) rows = NULL;

  g_atomic_ref_count_init (&self->refs);
  g_atomic_ref_count_inc (&self->refs); /* the closure's */
  g_mutex_init (&self->lock);
  self->store = g_object_ref (store);
  self->list = list;
  self->func = func;
  self->user_data = user_data;
  self->handler
      = g_signal_connect_data (store, "changed", G_CALLBACK (on_changed), self, closure_unref, G_CONNECT_SWAPPED);
  rows = list (store);
  func (rows, user_data);
  return self;
}

void
bj_follow_free (BjFollow *self)
{
  if (self == NULL)
    return;
  self->func = NULL;
  g_signal_handler_disconnect (self->store, self->handler);
  follow_unref (self);
}
