/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-modes.h"
#include "bj-supervisor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int
open_input (const BjRequest *request)
{
  return request->input ? 0 : open ("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
fill (BjReply *reply, BjSupervisor *supervisor, BjSha256 *sha256)
{
  BjRunAnswer *answer = &reply->answer;

  answer->flags |= supervisor->flags;
  answer->exit = supervisor->exit;
  answer->signal = supervisor->signal;
  answer->duration_us = (uint64_t) ((supervisor->ended ? supervisor->ended : bj_now ()) - supervisor->started);
  answer->out_total = supervisor->out.total;
  answer->err_total = supervisor->err.total;
  bj_sha256_finish (sha256, answer->out_sha256);
}

/* Starts and watches the command; in is not needed any more once it runs. */
static bool
run (BjSupervisor *supervisor, const BjRequest *request)
{
  int in = open_input (request);

  if (in < 0 || !bj_supervisor_start (supervisor, request, in, false))
    return false;
  close (in);
  bj_supervisor_run (supervisor);
  bj_supervisor_leave_drainer (supervisor);
  return true;
}

int
bj_mode_exec (const BjRequest *request)
{
  BjKeep out;
  BjKeep err;
  BjSha256 sha256;
  BjReply reply;
  BjSupervisor supervisor = { .out = { .sink = &out.sink, .sha256 = &sha256 }, .err = { .sink = &err.sink } };

  bj_sha256_init (&sha256);
  if (!bj_keep_init (&out, request->cap) || !bj_keep_init (&err, request->cap) || !run (&supervisor, request))
    return 1;
  bj_reply_init (&reply);
  fill (&reply, &supervisor, &sha256);
  reply.answer.out_head = (uint32_t) out.head_used;
  reply.answer.out_tail = (uint32_t) bj_keep_get_tail_length (&out);
  reply.answer.err_head = (uint32_t) err.head_used;
  reply.answer.err_tail = (uint32_t) bj_keep_get_tail_length (&err);
  reply.pieces[0] = out.head;
  reply.pieces[1] = bj_keep_finish_tail (&out);
  reply.pieces[2] = err.head;
  reply.pieces[3] = bj_keep_finish_tail (&err);
  return bj_reply_print (&reply);
}

int
bj_mode_stream (const BjRequest *request)
{
  BjPipe out;
  BjPipe err;
  BjSha256 sha256;
  BjReply reply;
  BjSupervisor supervisor = { .out = { .sink = &out.sink, .sha256 = &sha256 }, .err = { .sink = &err.sink } };

  bj_sha256_init (&sha256);
  if (!bj_pipe_init (&out, BJ_RUN_STREAM_OUT) || !bj_pipe_init (&err, BJ_RUN_STREAM_ERR) || !run (&supervisor, request))
    return 1;
  close (BJ_RUN_STREAM_OUT);
  close (BJ_RUN_STREAM_ERR);
  bj_reply_init (&reply);
  fill (&reply, &supervisor, &sha256);
  return bj_reply_print (&reply);
}
