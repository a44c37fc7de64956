/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-exec-line.h"

#include "bj-error.h"

typedef struct
{
  BjExecLineStart start;
  gpointer call;
  GCancellable *cancellable; /* (owned) */
} BjWaiting;

struct _BjExecLine
{
  GMutex lock; /* guards what follows */
  guint running;
  GQueue waiting; /* of BjWaiting (owned) */
};

BjExecLine *
bj_exec_line_new (void)
{
  BjExecLine *self = g_new0 (BjExecLine, 1);

  g_mutex_init (&self->lock);
  g_queue_init (&self->waiting);
  return self;
}

void
bj_exec_line_free (BjExecLine *self)
{
  g_warn_if_fail (self->running == 0 && self->waiting.length == 0);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
begin (BjWaiting *waiting)
{
  waiting->start (waiting->call);
  g_object_unref (waiting->cancellable);
  g_free (waiting);
}

/* Those whose caller has gone: they only have to be told so. Call with the lock held. */
static GList *
take_cancelled (BjExecLine *self)
{
  GList *taken = NULL;
  GList *next;

  for (GList *l = self->waiting.head; l != NULL; l = next)
    {
      next = l->next;
      if (!g_cancellable_is_cancelled (((BjWaiting *) l->data)->cancellable))
        continue;
      g_queue_unlink (&self->waiting, l);
      taken = g_list_concat (l, taken);
      self->running++;
    }
  return taken;
}

gboolean
bj_exec_line_enter (BjExecLine *self, BjExecLineStart start, gpointer call, GCancellable *cancellable, GError **error)
{
  BjWaiting *waiting = g_new0 (BjWaiting, 1);
  GList *ready = NULL;
  gboolean full;

  *waiting = (BjWaiting) { start, call, g_object_ref (cancellable) };
  g_mutex_lock (&self->lock);
  if (self->waiting.length >= BJ_EXEC_LINE_WAITING)
    ready = take_cancelled (self);
  full = self->waiting.length >= BJ_EXEC_LINE_WAITING;
  if (self->running < BJ_EXEC_LINE_AT_ONCE)
    {
      self->running++;
      ready = g_list_append (ready, waiting);
    }
  else if (!full)
    g_queue_push_tail (&self->waiting, waiting);
  else
    {
      g_object_unref (waiting->cancellable);
      g_free (waiting);
    }
  full = full && ready == NULL;
  g_mutex_unlock (&self->lock);

  for (GList *l = ready; l != NULL; l = l->next)
    begin (l->data);
  g_list_free (ready);
  return !full || bj_error_set (error, BJ_ERROR_LIMIT, "%d commands wait in this session already: wait until some have ended",
                                BJ_EXEC_LINE_WAITING);
}

gboolean
bj_exec_line_is_empty (BjExecLine *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->running == 0 && self->waiting.length == 0;
}

void
bj_exec_line_leave (BjExecLine *self)
{
  BjWaiting *next = NULL;

  g_mutex_lock (&self->lock);
  if (self->running <= BJ_EXEC_LINE_AT_ONCE)
    next = g_queue_pop_head (&self->waiting);
  if (next == NULL)
    self->running--;
  g_mutex_unlock (&self->lock);
  if (next != NULL)
    begin (next);
}
