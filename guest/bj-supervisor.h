/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-request.h"
#include "bj-sink.h"

#include <sys/types.h>

typedef struct
{
  int fd; /* reading end of the pipe, -1 after its end */
  BjSink *sink;
  BjSha256 *sha256; /* or NULL */
  uint64_t total;
  uint64_t owed; /* bytes that stood in the pipe when the command ended */
} BjStream;

typedef enum
{
  BJ_STAGE_RUNNING,
  BJ_STAGE_ASKED,  /* SIGTERM was sent */
  BJ_STAGE_KILLED, /* SIGKILL is being sent */
} BjStage;

/* One command from its start to its end. */
typedef struct
{
  const BjRequest *request;
  BjStream out;
  BjStream err; /* fd -1 if both go to out */
  pid_t pid;
  int cgroup; /* as bj_cgroup_take() gives it */
  int signals; /* signalfd */
  int64_t started; /* monotonic microseconds, as all times here */
  int64_t deadline;
  int64_t ended; /* 0: still running */
  int64_t stage_since;
  BjStage stage;
  uint32_t flags; /* BJ_RUN_TIMED_OUT, BJ_RUN_STOPPED */
  int32_t exit;
  int32_t signal;
} BjSupervisor;

int64_t bj_now (void);
/* Starts the command with in as its standard input. merged: both streams go to out. */
bool bj_supervisor_start (BjSupervisor *self, const BjRequest *request, int in, bool merged);
/* Returns when the command has ended and its output was taken, or nobody of its tree is left. */
void bj_supervisor_run (BjSupervisor *self);
/* If something in the background still holds the pipes: leaves a small process that reads them for it. */
void bj_supervisor_leave_drainer (BjSupervisor *self);
