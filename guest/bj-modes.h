/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-request.h"
#include "bj-run-protocol.h"

/* An answer and the pieces that follow it; pieces may be NULL where their length is 0. */
typedef struct
{
  BjRunAnswer answer;
  const uint8_t *pieces[4];
} BjReply;

/* Each mode returns the program's exit code and prints its answer itself. */
int bj_mode_exec (const BjRequest *request);
int bj_mode_stream (const BjRequest *request);
int bj_mode_start (const BjRequest *request);
int bj_mode_poll (const BjRequest *request);
int bj_mode_send (const BjRequest *request);
int bj_mode_kill (const BjRequest *request);
int bj_mode_read (const BjRequest *request);
int bj_mode_write (const BjRequest *request);
int bj_mode_setup (const BjRequest *request);

/* Sets the clock to the host's, µs since 1970; 0 leaves it. */
void bj_set_clock (uint64_t host_us);

/* Reads a request from standard input and runs the mode of that name. Returns its exit code. */
int bj_mode_run (const char *name);

void bj_reply_init (BjReply *self);
/* Prints it to standard output. Returns 0, or 1 if that fails: an exit code. */
int bj_reply_print (BjReply *self);
