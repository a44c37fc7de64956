/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-run-protocol.h"

/*
 * What belljard and `/usr/lib/belljar/run serve PORT` say to each other over a virtio-serial port (a "lane"): frames of a
 * BjLaneHead and at most BJ_LANE_PAYLOAD_MAX bytes, many calls at once. A frame fits into one write to the port, which the
 * guest's kernel takes whole or not at all, so that a server that dies leaves no half of one.
 *
 * The host starts with HELLO and a nonce and drops everything until OK with the same nonce. Whoever has lost the thread
 * drops what comes: the guest until the next HELLO, which ends all calls there were; it says so with RESTART.
 *
 * A call: CALL ("MODE\0" and the first bytes of the request), DATA (more), END; back come RESULT (the answer), OUT and ERR
 * (the command's output in mode stream) and at last DONE. Neither side sends more bytes of a call in one direction (RESULT
 * excepted, which has a greatest length) than BJ_LANE_WINDOW beyond what CREDIT gave back.
 */
#define BJ_LANE_CONTROL "org.belljar.control.0"
#define BJ_LANE_BULK "org.belljar.bulk.0"

#define BJ_LANE_MAGIC 0x314c4a42u /* "BJL1" */
#define BJ_LANE_FRAME_MAX (32u << 10)
#define BJ_LANE_PAYLOAD_MAX (BJ_LANE_FRAME_MAX - 12u)
#define BJ_LANE_NONCE_SIZE 16u
#define BJ_LANE_WINDOW (256u << 10)
#define BJ_LANE_CALLS 256u
#define BJ_LANE_MODE_MAX 15u
#define BJ_LANE_RESULT_MAX (sizeof (BjRunAnswer) + 2u * BJ_RUN_KEEP_MAX)

typedef enum
{
  /* from the host */
  BJ_LANE_HELLO = 1, /* the nonce */
  BJ_LANE_CALL,      /* mode, NUL, bytes */
  BJ_LANE_DATA,      /* bytes */
  BJ_LANE_END,
  BJ_LANE_STOP,  /* ends the command with its process tree; DONE still comes */
  BJ_LANE_CLOSE, /* BjLaneCredit: nobody reads this stream any more */
  BJ_LANE_PING,
  /* from the guest */
  BJ_LANE_OK = 65, /* the nonce */
  BJ_LANE_RESTART, /* there is no connection; say HELLO */
  BJ_LANE_RESULT,  /* bytes */
  BJ_LANE_OUT,     /* bytes */
  BJ_LANE_ERR,     /* bytes */
  BJ_LANE_DONE,    /* int32_t: exit code of the mode, -1: killed or never started */
  BJ_LANE_PONG,
  /* from both */
  BJ_LANE_CREDIT = 129, /* BjLaneCredit */
} BjLaneType;

typedef struct
{
  uint32_t magic;
  uint16_t type;
  uint16_t length; /* of what follows */
  uint32_t id;     /* of the call; 0 where there is none */
} BjLaneHead;

typedef struct
{
  uint32_t stream; /* BJ_LANE_DATA, BJ_LANE_OUT or BJ_LANE_ERR */
  uint32_t bytes;
} BjLaneCredit;

_Static_assert (sizeof (BjLaneHead) == 12, "a head has no padding");
_Static_assert (sizeof (BjLaneCredit) == 8, "nor has a credit");
