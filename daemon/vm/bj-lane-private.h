/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-lane-frame.h"
#include "bj-lane.h"

G_BEGIN_DECLS

struct _BjLane
{
  char *path;
  BjLaneIsPaused is_paused;
  gpointer data;
  GThread *thread; /* (nullable) */
  int wake;        /* eventfd: there is something for the thread to do */

  GMutex lock;  /* guards what follows, and all of every call */
  GCond opened;
  gboolean stopping;
  gboolean open;      /* greeted */
  GByteArray *out;    /* bytes on their way to the socket; the calls' credit bounds it */
  GHashTable *calls;  /* id → BjLaneCall (owned if abandoned) */
  guint32 last_id;
  gint64 heard; /* when the guest last said something */

  /* The thread's own. */
  int fd;             /* -1: not connected */
  gint64 greeted;     /* when HELLO was said */
  gint64 patience;    /* until it is said again */
  gint64 pinged;      /* 0: not */
  gint64 quiet_until; /* nothing is read before: the guest sends rubbish */
  gsize rubbish;
  BjLaneParser parser;
};

/* Both: with the lock held. */

/** bj_lane_calls_lose: Ends all of them. @reason: static */
void bj_lane_calls_lose (BjLane *self, const char *reason);
/** bj_lane_calls_take: A frame for a call. Returns: %FALSE if it is against the rules */
gboolean bj_lane_calls_take (BjLane *self, const BjLaneFrame *frame);

void bj_lane_wake (int event);

G_END_DECLS
