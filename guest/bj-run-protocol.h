/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdint.h>

/*
 * What belljard and /usr/lib/belljar/run say to each other: over a lane (bj-lane-protocol.h), or, when that does not answer,
 * the guest agent calls the program through guest-exec as `run MODE [FILE]`. Its standard input (or FILE, which it removes)
 * starts with a request: magic, length, then that many bytes of "key=value\0" records; whatever follows is the command's
 * standard input. On standard output it prints one answer: BjRunAnswer and the four pieces of output it announces. Both
 * sides are little-endian x86-64 or say so by failing.
 *
 * Modes: hello (echoes "nonce", sets the clock to "clock" µs), exec, stream, start, poll, send, kill, read and write a
 * regular file ("exit" is an errno), stop ("pid": ends a run that is still going on), setup (makes the machine its own;
 * "exit" is 0 and the output "fact=value\n" lines, or the error output says what failed). In mode stream, which needs a lane,
 * the command's output goes to the file descriptors below as it comes.
 * Keys: argv env (repeated), cwd user timeout cap nnp input dir id wait nonce clock pid path offset mode append; of setup:
 * hostname machine-id resolv entropy nic device mount tag unmount. `run network` sets up the network card, without a request.
 */
#define BJ_RUN_PROGRAM "/usr/lib/belljar/run"
#define BJ_RUN_DIR "/run/belljar"

#define BJ_RUN_REQUEST_MAGIC "BJRQ0001"
#define BJ_RUN_ANSWER_MAGIC "BJRA0001"
#define BJ_RUN_MAGIC_SIZE 8u

#define BJ_RUN_REQUEST_MAX (8u << 20) /* bytes of records */
#define BJ_RUN_KEEP_MAX (1u << 20)    /* bytes kept of a stream, head and tail together */
#define BJ_RUN_RING (1u << 20)        /* output of a background command that waits for poll */
#define BJ_RUN_POLL_MAX (256u << 10)  /* bytes that one poll returns */
#define BJ_RUN_DAY 86400u             /* the longest timeout, seconds */
#define BJ_RUN_STREAM_OUT 3           /* mode stream: where the command's output goes */
#define BJ_RUN_STREAM_ERR 4
#define BJ_RUN_IDS 1024u              /* background commands of one guest */

enum
{
  BJ_RUN_TIMED_OUT = 1u << 0,
  BJ_RUN_RUNNING = 1u << 1, /* poll: the command still runs */
  BJ_RUN_UNKNOWN = 1u << 2, /* no such background command (or no room for another) */
  BJ_RUN_STOPPED = 1u << 3, /* ended because the host said so */
};

typedef struct
{
  char magic[BJ_RUN_MAGIC_SIZE];
  uint32_t flags;
  int32_t exit;   /* -1: did not exit */
  int32_t signal; /* 0: no signal */
  uint32_t id;    /* start: of the new background command */
  uint64_t duration_us;
  uint64_t out_total;
  uint64_t err_total;
  uint64_t dropped; /* poll: bytes lost since the last one */
  uint8_t out_sha256[32];
  uint32_t out_head; /* lengths of what follows, in this order */
  uint32_t out_tail;
  uint32_t err_head;
  uint32_t err_tail;
} BjRunAnswer;

_Static_assert (sizeof (BjRunAnswer) == 104, "the answer has no padding");
_Static_assert (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");
