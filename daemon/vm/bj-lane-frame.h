/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-lane-protocol.h"

#include <glib.h>

G_BEGIN_DECLS

/* One frame from the guest: type, sizes and numbers are possible ones; what a call may send now is not looked at here. */
typedef struct
{
  BjLaneType type;
  guint32 id;
  const guint8 *data; /* valid until more is put in */
  gsize length;
  gint32 number; /* DONE: the status; CREDIT: the bytes */
} BjLaneFrame;

/* Cuts what a hostile guest sends into frames. Pure; its memory is this struct. */
typedef struct
{
  gboolean greeted; /* OK with our nonce came; before it everything is dropped */
  guint8 nonce[BJ_LANE_NONCE_SIZE];
  gsize start;
  gsize length;
  guint8 data[2 * BJ_LANE_FRAME_MAX];
} BjLaneParser;

typedef enum
{
  BJ_LANE_PARSE_MORE, /* needs more bytes */
  BJ_LANE_PARSE_FRAME,
  BJ_LANE_PARSE_BAD, /* no frame: nothing after it can be understood */
} BjLaneParse;

/** bj_lane_parser_reset: Drops everything until an OK with @nonce (BJ_LANE_NONCE_SIZE bytes). */
void bj_lane_parser_reset (BjLaneParser *self, const guint8 *nonce);
/** bj_lane_parser_get_room: Returns: (transfer none): where the next bytes go; @room: (out): at least a frame's size */
guint8 *bj_lane_parser_get_room (BjLaneParser *self, gsize *room);
void bj_lane_parser_add (BjLaneParser *self, gsize length);
/** bj_lane_parser_next: The OK that ends a handshake is a frame too. @frame: (out) */
BjLaneParse bj_lane_parser_next (BjLaneParser *self, BjLaneFrame *frame);

/** bj_lane_frame_append: Adds one for the guest. @length: at most BJ_LANE_PAYLOAD_MAX */
void bj_lane_frame_append (GByteArray *out, BjLaneType type, guint32 id, gconstpointer data, gsize length);

G_END_DECLS
