/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-lane-private.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct
{
  GByteArray *data; /* (owned): not taken yet */
  guint32 window;   /* what the guest may still send */
  gboolean closed;
} BjLaneStream;

struct _BjLaneCall
{
  BjLane *lane;
  guint32 id;
  int event;
  BjLaneCallFlags flags;
  gboolean abandoned; /* its caller has gone: the table owns it */
  BjLaneCallState state;
  int status;
  const char *reason;
  GBytes *request; /* (owned) */
  gsize sent;      /* of it */
  guint32 credit;  /* for more of it */
  gboolean open;   /* more input may follow the request */
  gboolean ended;
  GByteArray *result; /* (owned) */
  BjLaneStream streams[2];
};

void
bj_lane_wake (int event)
{
  const guint64 one = 1;

  if (write (event, &one, sizeof one) < 0)
    g_debug ("Waking: %s", g_strerror (errno)); /* the counter is full: it is awake */
}

static void
destroy (BjLaneCall *self)
{
  close (self->event);
  g_bytes_unref (self->request);
  g_byte_array_unref (self->result);
  for (int i = 0; i < 2; i++)
    g_byte_array_unref (self->streams[i].data);
  g_free (self);
}

static BjLaneStream *
get_stream (BjLaneCall *self, BjLaneType type)
{
  return &self->streams[type == BJ_LANE_ERR];
}

static void
send_credit (BjLaneCall *self, BjLaneType type, BjLaneType stream, gsize bytes)
{
  const BjLaneCredit credit = { stream, (guint32) bytes };

  bj_lane_frame_append (self->lane->out, type, self->id, &credit, sizeof credit);
}

/* As much as there is credit for. Returns: bytes */
static gsize
send_data (BjLaneCall *self, const guint8 *data, gsize length)
{
  gsize sent = 0;

  while (sent < length && self->credit > 0)
    {
      gsize n = MIN (MIN (length - sent, self->credit), BJ_LANE_PAYLOAD_MAX);

      bj_lane_frame_append (self->lane->out, BJ_LANE_DATA, self->id, data + sent, n);
      sent += n;
      self->credit -= (guint32) n;
    }
  return sent;
}

static void
feed (BjLaneCall *self)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (self->request, &size);

  self->sent += send_data (self, data + self->sent, size - self->sent);
  if (self->sent == size && !self->open && !self->ended)
    {
      bj_lane_frame_append (self->lane->out, BJ_LANE_END, self->id, NULL, 0);
      self->ended = TRUE;
    }
}

static void
send_first (BjLaneCall *self, const char *mode)
{
  gsize length = strlen (mode) + 1;
  guint8 payload[BJ_LANE_PAYLOAD_MAX];
  gsize n = MIN (g_bytes_get_size (self->request), sizeof payload - length);

  memcpy (payload, mode, length);
  if (n > 0)
    memcpy (payload + length, g_bytes_get_data (self->request, NULL), n);
  bj_lane_frame_append (self->lane->out, BJ_LANE_CALL, self->id, payload, length + n);
  self->sent = n;
  self->credit -= (guint32) n;
  feed (self);
}

BjLaneCall *
bj_lane_begin (BjLane *self, const char *mode, GBytes *request, BjLaneCallFlags flags)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  BjLaneCall *call;
  int event;

  g_return_val_if_fail (strlen (mode) <= BJ_LANE_MODE_MAX, NULL);
  if (!self->open || g_hash_table_size (self->calls) >= BJ_LANE_CALLS
      || (event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
    return NULL;
  call = g_new0 (BjLaneCall, 1);
  call->lane = self;
  call->event = event;
  call->flags = flags;
  call->open = (flags & BJ_LANE_CALL_INPUT) != 0;
  call->request = g_bytes_ref (request);
  call->credit = BJ_LANE_WINDOW;
  call->result = g_byte_array_new ();
  for (int i = 0; i < 2; i++)
    call->streams[i] = (BjLaneStream) { .data = g_byte_array_new (), .window = BJ_LANE_WINDOW };
  do
    call->id = ++self->last_id;
  while (call->id == 0 || g_hash_table_contains (self->calls, GUINT_TO_POINTER (call->id)));
  if (g_hash_table_size (self->calls) == 0)
    self->heard = g_get_monotonic_time (); /* silence counts from now on */
  g_hash_table_insert (self->calls, GUINT_TO_POINTER (call->id), call);
  send_first (call, mode);
  bj_lane_wake (self->wake);
  return call;
}

void
bj_lane_call_free (BjLaneCall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);

  if (self->state != BJ_LANE_CALL_RUNNING)
    {
      destroy (self);
      return;
    }
  self->abandoned = TRUE;
  bj_lane_frame_append (self->lane->out, BJ_LANE_STOP, self->id, NULL, 0);
  for (int i = 0; (self->flags & BJ_LANE_CALL_OUTPUT) != 0 && i < 2; i++)
    if (!self->streams[i].closed)
      send_credit (self, BJ_LANE_CLOSE, i == 0 ? BJ_LANE_OUT : BJ_LANE_ERR, 0);
  bj_lane_wake (self->lane->wake);
}

int
bj_lane_call_get_event (BjLaneCall *self)
{
  return self->event;
}

BjLaneCallState
bj_lane_call_get_state (BjLaneCall *self, int *status, const char **reason)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);
  guint64 count;

  if (read (self->event, &count, sizeof count) < 0 && errno != EAGAIN)
    g_debug ("Looking at a call: %s", g_strerror (errno));
  *status = self->status;
  *reason = self->reason;
  return self->state;
}

GBytes *
bj_lane_call_steal_result (BjLaneCall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);
  GByteArray *result = self->result;

  self->result = g_byte_array_new ();
  return g_byte_array_free_to_bytes (result);
}

void
bj_lane_call_take (BjLaneCall *self, BjLaneType stream, GByteArray *into)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);
  GByteArray *data = get_stream (self, stream)->data;

  g_byte_array_append (into, data->data, data->len);
  g_byte_array_set_size (data, 0);
}

void
bj_lane_call_give (BjLaneCall *self, BjLaneType stream, gsize bytes)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);

  if (self->state != BJ_LANE_CALL_RUNNING || bytes == 0)
    return;
  get_stream (self, stream)->window += (guint32) bytes;
  send_credit (self, BJ_LANE_CREDIT, stream, bytes);
  bj_lane_wake (self->lane->wake);
}

void
bj_lane_call_close (BjLaneCall *self, BjLaneType stream)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);

  get_stream (self, stream)->closed = TRUE;
  if (self->state != BJ_LANE_CALL_RUNNING)
    return;
  send_credit (self, BJ_LANE_CLOSE, stream, 0);
  bj_lane_wake (self->lane->wake);
}

gsize
bj_lane_call_get_room (BjLaneCall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);

  if (self->state != BJ_LANE_CALL_RUNNING || !self->open || self->sent < g_bytes_get_size (self->request))
    return 0;
  return self->credit;
}

void
bj_lane_call_put (BjLaneCall *self, gconstpointer data, gsize length)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);

  if (self->state != BJ_LANE_CALL_RUNNING || !self->open)
    return; /* it has ended meanwhile */
  if (send_data (self, data, length) < length)
    g_critical ("More input for a call than there was room for");
  bj_lane_wake (self->lane->wake);
}

void
bj_lane_call_end_input (BjLaneCall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lane->lock);

  self->open = FALSE;
  if (self->state != BJ_LANE_CALL_RUNNING)
    return;
  feed (self);
  bj_lane_wake (self->lane->wake);
}

/* Takes it out of the table, whoever still holds it. */
static void
finish (BjLaneCall *self, BjLaneCallState state)
{
  self->state = state;
  if (self->abandoned)
    destroy (self);
  else
    bj_lane_wake (self->event);
}

void
bj_lane_calls_lose (BjLane *self, const char *reason)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->calls);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    {
      BjLaneCall *call = value;

      g_hash_table_iter_remove (&iter);
      call->reason = reason;
      finish (call, BJ_LANE_CALL_LOST);
    }
}

static gboolean
take_output (BjLaneCall *self, const BjLaneFrame *frame)
{
  BjLaneStream *stream = get_stream (self, frame->type);

  if ((self->flags & BJ_LANE_CALL_OUTPUT) == 0 || frame->length > stream->window)
    return FALSE;
  stream->window -= (guint32) frame->length;
  /* It was on its way when we said that nobody reads it. */
  if (self->abandoned || stream->closed)
    return TRUE;
  g_byte_array_append (stream->data, frame->data, (guint) frame->length);
  bj_lane_wake (self->event);
  return TRUE;
}

gboolean
bj_lane_calls_take (BjLane *self, const BjLaneFrame *frame)
{
  BjLaneCall *call = g_hash_table_lookup (self->calls, GUINT_TO_POINTER (frame->id));

  if (call == NULL)
    return FALSE;
  switch (frame->type)
    {
    case BJ_LANE_RESULT:
      if (frame->length > BJ_LANE_RESULT_MAX - call->result->len)
        return FALSE;
      if (!call->abandoned)
        g_byte_array_append (call->result, frame->data, (guint) frame->length);
      return TRUE;
    case BJ_LANE_OUT:
    case BJ_LANE_ERR:
      return take_output (call, frame);
    case BJ_LANE_CREDIT:
      if ((guint32) frame->number > BJ_LANE_WINDOW - call->credit)
        return FALSE;
      call->credit += (guint32) frame->number;
      feed (call);
      if (call->open && !call->abandoned)
        bj_lane_wake (call->event);
      return TRUE;
    case BJ_LANE_DONE:
      call->status = frame->number;
      g_hash_table_remove (self->calls, GUINT_TO_POINTER (frame->id));
      finish (call, BJ_LANE_CALL_DONE);
      return TRUE;
    default:
      return FALSE;
    }
}
