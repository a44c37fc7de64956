/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-lane-frame.h"

#include <string.h>

void
bj_lane_parser_reset (BjLaneParser *self, const guint8 *nonce)
{
  memcpy (self->nonce, nonce, BJ_LANE_NONCE_SIZE);
  self->greeted = FALSE;
  self->start = 0;
  self->length = 0;
}

guint8 *
bj_lane_parser_get_room (BjLaneParser *self, gsize *room)
{
  memmove (self->data, self->data + self->start, self->length);
  self->start = 0;
  *room = sizeof self->data - self->length;
  return self->data + self->length;
}

void
bj_lane_parser_add (BjLaneParser *self, gsize length)
{
  self->length += length;
}

static void
drop (BjLaneParser *self, gsize length)
{
  self->start += length;
  self->length -= length;
}

static BjLaneParse
find_ok (BjLaneParser *self, BjLaneFrame *frame)
{
  const BjLaneHead head = { BJ_LANE_MAGIC, BJ_LANE_OK, BJ_LANE_NONCE_SIZE, 0 };
  guint8 wanted[sizeof head + BJ_LANE_NONCE_SIZE];
  const guint8 *data = self->data + self->start;
  const guint8 *found;

  memcpy (wanted, &head, sizeof head);
  memcpy (wanted + sizeof head, self->nonce, BJ_LANE_NONCE_SIZE);
  found = memmem (data, self->length, wanted, sizeof wanted);
  if (found == NULL)
    {
      if (self->length >= sizeof wanted)
        drop (self, self->length - (sizeof wanted - 1));
      return BJ_LANE_PARSE_MORE;
    }
  drop (self, (gsize) (found - data) + sizeof wanted);
  self->greeted = TRUE;
  *frame = (BjLaneFrame) { .type = BJ_LANE_OK };
  return BJ_LANE_PARSE_FRAME;
}

/* Whether the guest may say this at all, with such a length and for a call or for none. */
static gboolean
is_possible (const BjLaneHead *head)
{
  switch (head->type)
    {
    case BJ_LANE_RESTART:
    case BJ_LANE_PONG:
      return head->length == 0 && head->id == 0;
    case BJ_LANE_RESULT:
    case BJ_LANE_OUT:
    case BJ_LANE_ERR:
      return head->length > 0 && head->length <= BJ_LANE_PAYLOAD_MAX && head->id != 0;
    case BJ_LANE_DONE:
      return head->length == sizeof (gint32) && head->id != 0;
    case BJ_LANE_CREDIT:
      return head->length == sizeof (BjLaneCredit) && head->id != 0;
    default:
      return FALSE;
    }
}

static gboolean
take_numbers (BjLaneFrame *frame)
{
  BjLaneCredit credit;

  if (frame->type == BJ_LANE_DONE)
    {
      memcpy (&frame->number, frame->data, sizeof frame->number);
      return frame->number >= -1 && frame->number <= 255;
    }
  if (frame->type != BJ_LANE_CREDIT)
    return TRUE;
  memcpy (&credit, frame->data, sizeof credit);
  frame->number = (gint32) credit.bytes;
  return credit.stream == BJ_LANE_DATA && credit.bytes > 0 && credit.bytes <= BJ_LANE_WINDOW;
}

BjLaneParse
bj_lane_parser_next (BjLaneParser *self, BjLaneFrame *frame)
{
  const guint8 *data = self->data + self->start;
  BjLaneHead head;

  if (!self->greeted)
    return find_ok (self, frame);
  if (self->length < sizeof head)
    return BJ_LANE_PARSE_MORE;
  memcpy (&head, data, sizeof head);
  if (head.magic != BJ_LANE_MAGIC || !is_possible (&head))
    return BJ_LANE_PARSE_BAD;
  if (self->length < sizeof head + head.length)
    return BJ_LANE_PARSE_MORE;
  *frame = (BjLaneFrame) { .type = (BjLaneType) head.type, .id = head.id, .data = data + sizeof head,
                           .length = head.length };
  drop (self, sizeof head + head.length);
  return take_numbers (frame) ? BJ_LANE_PARSE_FRAME : BJ_LANE_PARSE_BAD;
}

void
bj_lane_frame_append (GByteArray *out, BjLaneType type, guint32 id, gconstpointer data, gsize length)
{
  const BjLaneHead head = { BJ_LANE_MAGIC, (guint16) type, (guint16) length, id };

  g_byte_array_append (out, (const guint8 *) &head, sizeof head);
  if (length > 0)
    g_byte_array_append (out, data, (guint) length);
}
