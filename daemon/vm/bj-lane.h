/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-lane-protocol.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * One lane (guest/bj-lane-protocol.h) from the host: the connection to the socket of a virtio-serial port, kept by a thread
 * of its own, which greets, reconnects, and notices a guest that went silent. Many calls at once, from any thread; none
 * holds up another. What the guest sends is checked; a guest that breaks the rules is greeted anew, and its calls are lost.
 */
typedef struct _BjLane BjLane;
typedef struct _BjLaneCall BjLaneCall;

/* Whether silence is no wonder, because the machine is paused. Called in the lane's thread. */
typedef gboolean (*BjLaneIsPaused) (gpointer data);

/** bj_lane_new: @path: of the unix socket */
BjLane *bj_lane_new (const char *path, BjLaneIsPaused is_paused, gpointer data);
/** bj_lane_free: There are no calls any more. */
void bj_lane_free (BjLane *self);
/** bj_lane_start: There is a machine now. Does nothing when it is started already. */
void bj_lane_start (BjLane *self);
/** bj_lane_stop: There is none any more: calls are lost. Waits for the thread; not from within it. */
void bj_lane_stop (BjLane *self);

gboolean bj_lane_is_open (BjLane *self);
/** bj_lane_wait_open: Waits until the guest has answered, or @deadline (monotonic) or cancellation. */
gboolean bj_lane_wait_open (BjLane *self, gint64 deadline, GCancellable *cancellable);

/* What has become of a call. */
typedef enum
{
  BJ_LANE_CALL_RUNNING,
  BJ_LANE_CALL_DONE,
  BJ_LANE_CALL_LOST,
} BjLaneCallState;

/* What flows while a call runs. */
typedef enum
{
  BJ_LANE_CALL_PLAIN = 0,
  BJ_LANE_CALL_OUTPUT = 1 << 0,
  BJ_LANE_CALL_INPUT = 1 << 1, /* more than the request: bj_lane_call_put(), then bj_lane_call_end_input() */
} BjLaneCallFlags;

/**
 * bj_lane_begin:
 * @mode: one of the program's
 * @request: any size
 *
 * Returns: (transfer full) (nullable): %NULL, and nothing was sent, if the lane is not open or has no room for a call
 */
BjLaneCall *bj_lane_begin (BjLane *self, const char *mode, GBytes *request, BjLaneCallFlags flags);
/** bj_lane_call_free: A call that still runs is stopped. */
void bj_lane_call_free (BjLaneCall *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjLaneCall, bj_lane_call_free)

/** bj_lane_call_get_event: An eventfd, readable when anything changed since bj_lane_call_get_state(). */
int bj_lane_call_get_event (BjLaneCall *self);
/**
 * bj_lane_call_get_state:
 * @status: (out): once done: the mode's exit code, -1 if it was killed
 * @reason: (out): once lost: why; static
 */
BjLaneCallState bj_lane_call_get_state (BjLaneCall *self, int *status, const char **reason);
/** bj_lane_call_steal_result: Once done. Returns: (transfer full): the answer's bytes */
GBytes *bj_lane_call_steal_result (BjLaneCall *self);

/**
 * bj_lane_call_take:
 * @stream: BJ_LANE_OUT or BJ_LANE_ERR
 * @into: empty; gets what is there, at most BJ_LANE_WINDOW bytes
 */
void bj_lane_call_take (BjLaneCall *self, BjLaneType stream, GByteArray *into);
/** bj_lane_call_give: Lets the guest send that many more bytes: those that were taken have gone on. */
void bj_lane_call_give (BjLaneCall *self, BjLaneType stream, gsize bytes);
/** bj_lane_call_close: Nobody wants this stream any more; the command gets SIGPIPE. */
void bj_lane_call_close (BjLaneCall *self, BjLaneType stream);

/**
 * bj_lane_call_get_room: How many bytes of input the guest takes now; 0 also when the call does not run. The event says when it
 * has become more.
 */
gsize bj_lane_call_get_room (BjLaneCall *self);
/** bj_lane_call_put: @length: not more than there is room for */
void bj_lane_call_put (BjLaneCall *self, gconstpointer data, gsize length);
/** bj_lane_call_end_input: That was all of it. */
void bj_lane_call_end_input (BjLaneCall *self);

G_END_DECLS
