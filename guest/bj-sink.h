/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-run-protocol.h"
#include "bj-sha256.h"

#include <stdbool.h>
#include <stddef.h>

/* Where a command's output goes. One of the three kinds below starts with this. */
typedef struct BjSink BjSink;
struct BjSink
{
  size_t (*room) (BjSink *self); /* how many bytes it takes now; 0 makes the command wait */
  void (*put) (BjSink *self, const uint8_t *data, size_t length); /* never more than room */
  /* Both NULL, and fd -1, for a sink that always takes everything at once. */
  bool (*closed) (BjSink *self);  /* whether nobody wants the output any more */
  bool (*pending) (BjSink *self); /* whether it must be polled for writing before it takes more */
  int fd;
};

/* Keeps the beginning and the end. */
typedef struct
{
  BjSink sink;
  uint8_t *head;
  uint8_t *tail; /* a ring of tail_size */
  size_t head_size;
  size_t tail_size;
  size_t head_used;
  uint64_t tail_total;
} BjKeep;

bool bj_keep_init (BjKeep *self, size_t cap);
size_t bj_keep_get_tail_length (const BjKeep *self);
/* Puts the ring into order, after which nothing may be added. */
const uint8_t *bj_keep_finish_tail (BjKeep *self);

/* A pipe to whoever reads the output as it comes. */
typedef struct
{
  BjSink sink;
  bool broken;
  size_t start; /* of what waits in data */
  size_t length;
  uint8_t data[64 << 10];
} BjPipe;

/* False: there is no such pipe. */
bool bj_pipe_init (BjPipe *self, int fd);

/* The file that a background command's supervisor and later polls share. The oldest output is dropped. */
typedef struct
{
  uint64_t total; /* bytes ever put */
  uint64_t taken; /* bytes that polls have returned or reported as dropped */
  int32_t pid;    /* of the supervisor */
  int32_t running;
  int32_t exit;
  int32_t signal;
  uint32_t flags; /* BJ_RUN_TIMED_OUT, BJ_RUN_STOPPED */
  uint64_t duration_us;
  uint8_t data[BJ_RUN_RING];
} BjRing;

typedef struct
{
  BjSink sink;
  BjRing *ring; /* shared memory */
} BjRingSink;

void bj_ring_sink_init (BjRingSink *self, BjRing *ring);
/* Copies at most max bytes of what was not taken yet. */
size_t bj_ring_take (BjRing *ring, uint8_t *data, size_t max, uint64_t *dropped);
