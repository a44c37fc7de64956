/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-progress.h"

/* Moves smaller than this are not sent. */
#define SMALLEST_MOVE 0.005

typedef struct
{
  char *phase;
  guint weight;
} BjStep;

struct _BjProgress
{
  GMutex lock; /* also held while func runs: it sees moves in order, and must not call back */
  BjProgressFunc func;
  gpointer user_data;
  GArray *steps; /* of BjStep */
  guint current;
  double part;     /* of the current step */
  char *sub_phase; /* (nullable): of the child that does the current step */
  double sent;     /* what func was last told; it never goes back */
  char *sent_phase;
};

static void
step_clear (gpointer data)
{
  g_free (((BjStep *) data)->phase);
}

BjProgress *
bj_progress_new (BjProgressFunc func, gpointer user_data)
{
  BjProgress *self = g_new0 (BjProgress, 1);

  g_mutex_init (&self->lock);
  self->func = func;
  self->user_data = user_data;
  self->steps = g_array_new (FALSE, FALSE, sizeof (BjStep));
  g_array_set_clear_func (self->steps, step_clear);
  return self;
}

void
bj_progress_free (BjProgress *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->steps);
  g_free (self->sub_phase);
  g_free (self->sent_phase);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static double
whole (BjProgress *self)
{
  double done = 0, all = 0;

  if (self->steps->len == 0)
    return self->part;
  for (guint i = 0; i < self->steps->len; i++)
    {
      double weight = g_array_index (self->steps, BjStep, i).weight;

      all += weight;
      if (i < self->current)
        done += weight;
      else if (i == self->current)
        done += weight * self->part;
    }
  return all > 0 ? done / all : 0;
}

static const char *
current_phase (BjProgress *self)
{
  if (self->current >= self->steps->len)
    return "";
  if (self->sub_phase != NULL)
    return self->sub_phase;
  return g_array_index (self->steps, BjStep, self->current).phase;
}

/* Caller holds the lock. */
static void
tell (BjProgress *self)
{
  double now = MAX (whole (self), self->sent);
  const char *phase = current_phase (self);
  gboolean ended = now >= 1 && self->sent < 1;

  if (!ended && now - self->sent < SMALLEST_MOVE && (*phase == '\0' || g_strcmp0 (phase, self->sent_phase) == 0))
    return;
  self->sent = now;
  g_free (self->sent_phase);
  self->sent_phase = g_strdup (phase);
  if (self->func != NULL)
    self->func (phase, now, self->user_data);
}

static void
on_child (const char *phase, double fraction, gpointer user_data)
{
  BjProgress *self = user_data;

  g_mutex_lock (&self->lock);
  self->part = fraction;
  if (*phase != '\0')
    {
      g_free (self->sub_phase);
      self->sub_phase = g_strdup (phase);
    }
  tell (self);
  g_mutex_unlock (&self->lock);
}

BjProgress *
bj_progress_new_child (BjProgress *parent)
{
  return parent != NULL ? bj_progress_new (on_child, parent) : NULL;
}

void
bj_progress_add_step (BjProgress *self, const char *phase, guint weight)
{
  BjStep step = { g_strdup (phase), weight };

  if (self == NULL)
    {
      step_clear (&step);
      return;
    }
  g_mutex_lock (&self->lock);
  g_array_append_val (self->steps, step);
  tell (self);
  g_mutex_unlock (&self->lock);
}

void
bj_progress_set (BjProgress *self, double fraction)
{
  if (self == NULL)
    return;
  g_mutex_lock (&self->lock);
  self->part = CLAMP (fraction, 0, 1);
  tell (self);
  g_mutex_unlock (&self->lock);
}

void
bj_progress_step_done (BjProgress *self)
{
  if (self == NULL)
    return;
  g_mutex_lock (&self->lock);
  if (self->current < self->steps->len)
    {
      self->current++;
      self->part = 0;
      g_clear_pointer (&self->sub_phase, g_free);
    }
  tell (self);
  g_mutex_unlock (&self->lock);
}
