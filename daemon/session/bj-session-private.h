/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-session.h"

G_BEGIN_DECLS

/* Shared by bj-session.c and bj-session-evidence.c only. */
struct _BjSession
{
  GObject parent_instance;

  BjContext *context; /* (not owned) */
  BjReportKey *key;   /* (not owned) */
  BjSessionPlan *plan;
  char *path;
  BjDBusSession *skeleton;
  BjExecLine *exec_line;
  GCancellable *cancellable;
  GCancellable *hurry;

  GCancellable *kept_cancellable; /* of the commands in a machine that was kept */

  GMutex record_lock; /* one record at a time, none after the last */
  gboolean sealed;

  GMutex lock; /* guards what follows */
  GCond changed;
  char *state;
  char *outcome;
  char *verdict;
  char *activity;
  char *accelerator;
  char *error_name;
  char *error_message;
  char *agent_check;
  char *agent_setup;
  gint64 started, finished, deadline;
  guint steps;
  BjEnd end;
  gboolean stopped_late; /* a person stopped it after the work had ended */
  gint64 begun_us;       /* monotonic, when it was asked for */
  gint64 touched_us;     /* monotonic, when something last happened in it */
  gboolean had_command;
  gboolean paused;
  gboolean stalled; /* its machine waits for room on the host's disk */
  gboolean sync_pending;
  guint64 announced_length;
  gboolean over_time;  /* its time is over, and it can be extended */
  gboolean asking;     /* the agent asked a person; until the work goes on */
  gboolean suspending; /* the daemon ends: the machine goes to disk, the session stays */
  gboolean suspended;
  gboolean parked; /* its machine is on disk */
  GBytes *memory;  /* (nullable): of the agent that asked, for the one that goes on */
  char *answer;    /* (nullable): a person's */
  BjMachine *machine;
  gboolean keep;    /* the machine, if the work does not turn out well */
  BjMachine *kept;  /* (nullable) */
  guint kept_users; /* commands that run in it */
  gint64 kept_used_us; /* monotonic: when the last one ended */
  gboolean kept_released;
  BjTranscript *transcript;
  guint screenshots;        /* how many it has */
  guint64 screenshot_bytes; /* and what they take on the disk */
  gboolean screenshots_told; /* the report knows that one was refused */
};

/* Emits "waits" soon. */
void bj_session_emit_waits (BjSession *self);
/* Brings the bus's view up to date soon; call with the lock held. */
void bj_session_sync_later (BjSession *self);

G_END_DECLS
