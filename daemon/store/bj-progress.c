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
  double sent;     /* what func was last told; it never goes back */
  guint sent_step; /* the step func was last told of, from 1 */
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

/* Caller holds the lock. */
static void
tell (BjProgress *self)
{
  double now = MAX (whole (self), self->sent);
  gboolean in_step = self->current < self->steps->len;
  gboolean new_step = in_step && self->current + 1 != self->sent_step;
  gboolean ended = now >= 1 && self->sent < 1;

  if (!new_step && !ended && now - self->sent < SMALLEST_MOVE)
    return;
  self->sent = now;
  self->sent_step = in_step ? self->current + 1 : self->sent_step;
  if (self->func != NULL)
    self->func (in_step ? g_array_index (self->steps, BjStep, self->current).phase : "", now, self->user_data);
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
    }
  tell (self);
  g_mutex_unlock (&self->lock);
}
