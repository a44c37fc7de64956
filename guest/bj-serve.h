/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-lane-protocol.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum
{
  BJ_SERVE_RESULT,
  BJ_SERVE_OUT,
  BJ_SERVE_ERR,
  BJ_SERVE_STREAMS,
};

/* What comes out of a call, on its way to the host. */
typedef struct
{
  int fd;     /* reading end, non-blocking; -1 after its end */
  bool ready; /* there may be something to read */
  uint32_t credit;
} BjServeStream;

/* One call: a child that runs a mode, and the pipes to it. */
typedef struct
{
  uint32_t id; /* 0: free */
  pid_t pid;   /* 0: has ended */
  int status;  /* then: exit code, -1 if it had none */
  int in;      /* writing end of its standard input; -1 */
  bool ended;  /* END came */
  uint8_t *pending; /* BJ_LANE_WINDOW bytes, made when they are needed */
  size_t pending_start;
  size_t pending_length;
  uint32_t owed; /* bytes taken off the host that it got no credit for yet */
  BjServeStream streams[BJ_SERVE_STREAMS];
} BjServeCall;

/* Starts a call in a free slot. It may have failed already: then DONE says so. */
void bj_serve_call_start (BjServeCall *self, uint32_t id, const char *mode);
/* More of the request. False: more than there was credit for. */
bool bj_serve_call_put (BjServeCall *self, const uint8_t *data, size_t length);
void bj_serve_call_end (BjServeCall *self);
/* Writes what is pending, as far as the child takes it. */
void bj_serve_call_flush (BjServeCall *self);
/* Whether it should be polled for writing. */
bool bj_serve_call_is_waiting (const BjServeCall *self);
void bj_serve_call_stop (const BjServeCall *self);
void bj_serve_call_close (BjServeCall *self, unsigned stream);
/* Stops it and frees the slot. */
void bj_serve_call_drop (BjServeCall *self);
/* The next frame this call has to send, payload behind the head. False: none now. After DONE the slot is free. */
bool bj_serve_call_next (BjServeCall *self, BjLaneHead *head, uint8_t *payload);

/*
 * Finds and opens a port by its name, waiting for the kernel to announce it. Fills folder (its place in /sys). Negative: it
 * cannot be had now; nothing announces when it can.
 */
int bj_serve_open_port (const char *name, char *folder, size_t size);

/* Serves the port of that name, for ever; "-": standard input, until its end. */
int bj_serve (const char *name);
