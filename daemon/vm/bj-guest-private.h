/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-guest.h"
#include "bj-guest-answer.h"
#include "bj-guest-request.h"
#include "bj-lane.h"

#include <json-glib/json-glib.h>
#include <libvirt/libvirt.h>
#include <poll.h>

G_BEGIN_DECLS

/* Small calls, and everything else. */
enum
{
  BJ_GUEST_CONTROL,
  BJ_GUEST_BULK,
  BJ_GUEST_LANES,
};

struct _BjGuest
{
  gatomicrefcount ref_count;
  BjLane *lanes[BJ_GUEST_LANES]; /* (owned) */
  char *run_dir;       /* (owned): where the channels' sockets are */
  GMutex lock;         /* guards the six below */
  virDomainPtr domain; /* (owned) (nullable): %NULL before start and after the end */
  gint64 revived;      /* monotonic time of the last attempt */
  gboolean answered;   /* the agent ever did: it is not still booting */
  gint64 lanes_revived;
  gboolean lanes_known; /* a call went over one: this guest has them */
  gboolean agent_only; /* the agent answered and the lanes did not: nobody waits for them any more */
  GMutex calls;        /* one agent call at a time; none takes longer than its timeout */
};

BjGuest *bj_guest_new (const char *run_dir);
/** bj_guest_set_domain: @domain: (nullable): a reference is taken */
void bj_guest_set_domain (BjGuest *self, virDomainPtr domain);
/** bj_guest_hello: One round trip through agent and run, with a nonce. Sets the guest's clock. */
gboolean bj_guest_hello (BjGuest *self, GCancellable *cancellable, GError **error);

/** bj_guest_fill_result: @result: (out): gets copies */
void bj_guest_fill_result (BjExecResult *result, const BjGuestAnswer *answer);

/* The agent's own verbs (bj-guest-agent.c). Each is one call with a deadline of its own. */

/** bj_guest_agent_exec: Starts a program with captured output. @pid: (out): the agent's handle of it */
gboolean bj_guest_agent_exec (BjGuest *self, const char *const *argv, GBytes *input, gint64 *pid, GError **error);
/**
 * bj_guest_agent_exec_status:
 * @exited: (out): whether it has ended; the agent forgets it then
 * @output: (out) (transfer full) (nullable): what it printed
 */
gboolean bj_guest_agent_exec_status (BjGuest *self, gint64 pid, gboolean *exited, GBytes **output, GError **error);
gboolean bj_guest_agent_open (BjGuest *self, const char *path, const char *mode, gint64 *handle, GError **error);
/** bj_guest_agent_read: At most 1 MiB. Returns: (transfer full): maybe no bytes: nothing is there yet */
GBytes *bj_guest_agent_read (BjGuest *self, gint64 handle, gsize size, GError **error);
/** bj_guest_agent_write: At most 48 KiB: more hangs the agent. Flushes. */
gboolean bj_guest_agent_write (BjGuest *self, gint64 handle, gconstpointer data, gsize size, GError **error);
void bj_guest_agent_close (BjGuest *self, gint64 handle);

#define BJ_AGENT_WRITE_MAX (48u << 10)
#define BJ_AGENT_READ_MAX (1u << 20)

/** bj_guest_set_unreachable: Says which layer failed. @text: what was seen when the machine itself is well */
gboolean bj_guest_set_unreachable (BjGuest *self, const char *text, GError **error);
/** bj_guest_check_running: Fails as that does if the machine does not run. */
gboolean bj_guest_check_running (BjGuest *self, GError **error);
/** bj_guest_is_paused: whether a person or the session paused it (not: QEMU, because a disk is full) */
gboolean bj_guest_is_paused (BjGuest *self);
gboolean bj_guest_is_running (BjGuest *self);
/**
 * bj_guest_revive: Unplugs and plugs the channel of an agent that once answered, not more than once in 30 s.
 * Returns: whether it did
 */
gboolean bj_guest_revive (BjGuest *self);
/** bj_guest_revive_lanes: Likewise the lanes' channels, and through the agent the servers in the guest. */
gboolean bj_guest_revive_lanes (BjGuest *self);

#define BJ_GUEST_CALL_FDS 3 /* out, err, in */

/* One call over a lane (bj-guest-lane.c). */
typedef struct
{
  BjGuest *guest;   /* (owned) */
  BjLaneCall *call; /* (owned) */
  gint64 deadline;  /* monotonic; moved on while the machine is paused */
} BjGuestCall;

/**
 * bj_guest_call_begin:
 * @request: as bj_guest_request_finish() made it, any size
 * @flags: what flows while it runs
 * @budget_s: how long it may take altogether
 *
 * Waits a moment for a lane that ought to be there. Returns: %FALSE, and nothing was sent: ask the agent
 */
gboolean bj_guest_call_begin (BjGuestCall *self, BjGuest *guest, const char *mode, GBytes *request, BjLaneCallFlags flags,
                              guint budget_s, GCancellable *cancellable);
/**
 * bj_guest_call_wait:
 * @fds: what else to wait for; fd -1: nothing
 *
 * Waits until something happened. Fails when cancelled, lost, or over the deadline.
 */
gboolean bj_guest_call_wait (BjGuestCall *self, struct pollfd fds[BJ_GUEST_CALL_FDS], gboolean *done,
                             GCancellable *cancellable, GError **error);
/** bj_guest_call_finish: Once done. @answer: (out): points into @output, which is (transfer full) */
gboolean bj_guest_call_finish (BjGuestCall *self, BjGuestAnswer *answer, GBytes **output, GError **error);
/** bj_guest_call_clear: Ends the command in the guest if it still runs. Does not wait. */
void bj_guest_call_clear (BjGuestCall *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjGuestCall, bj_guest_call_clear)

/**
 * bj_guest_ask:
 * One call over a lane, or through the agent when there is none, to its end.
 *
 * @answer: (out): points into @output
 * @output: (out) (transfer full): keep it as long as @answer
 */
gboolean bj_guest_ask (BjGuest *self, const char *mode, BjGuestRequest *request, GBytes *input, guint budget_s,
                       BjGuestAnswer *answer, GBytes **output, GCancellable *cancellable, GError **error);
/** bj_guest_ask_agent: @bytes: @request as bj_guest_request_finish() made it (bj-guest-run.c) */
gboolean bj_guest_ask_agent (BjGuest *self, const char *mode, BjGuestRequest *request, GBytes *bytes, guint budget_s,
                             BjGuestAnswer *answer, GBytes **output, GCancellable *cancellable, GError **error);

G_END_DECLS
