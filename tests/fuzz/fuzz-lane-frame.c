/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-lane-frame.h"
#include "fuzz.h"

#include <string.h>

/* The first byte says how large the pieces are that the rest comes in; the nonce is "nonce nonce none". */
int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static BjLaneParser parser;
  BjLaneParse parse = BJ_LANE_PARSE_MORE;
  BjLaneFrame frame;
  size_t piece = size > 0 ? data[0] * 64u + 1u : 1;
  size_t at = 1;

  bj_lane_parser_reset (&parser, (const guint8 *) "nonce nonce none");
  while (at < size && parse != BJ_LANE_PARSE_BAD)
    {
      gsize room;
      guint8 *into = bj_lane_parser_get_room (&parser, &room);
      gsize n = MIN (MIN (piece, size - at), room);

      g_assert_cmpuint (room, >=, BJ_LANE_FRAME_MAX);
      memcpy (into, data + at, n);
      bj_lane_parser_add (&parser, n);
      at += n;
      while ((parse = bj_lane_parser_next (&parser, &frame)) == BJ_LANE_PARSE_FRAME)
        {
          g_assert_true (parser.greeted);
          g_assert_cmpuint (frame.length, <=, BJ_LANE_PAYLOAD_MAX);
          for (gsize i = 0; i < frame.length; i++)
            g_assert_true (frame.data + i >= parser.data && frame.data + i < parser.data + sizeof parser.data);
          if (frame.type == BJ_LANE_CREDIT)
            g_assert_true (frame.number > 0 && frame.number <= (gint32) BJ_LANE_WINDOW);
        }
    }
  return 0;
}
