/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-guest.h"
#include "bj-guest-answer.h"
#include "bj-guest-request.h"

#include <json-glib/json-glib.h>
#include <libvirt/libvirt.h>

G_BEGIN_DECLS

struct _BjGuest
{
  gatomicrefcount ref_count;
  char *channel_xml;   /* (owned): the agent's channel, to unplug and plug it */
  GMutex lock;         /* guards the three below */
  virDomainPtr domain; /* (owned) (nullable): %NULL before start and after the end */
  gint64 revived;      /* monotonic time of the last attempt */
  gboolean answered;   /* the agent ever did: it is not still booting */
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

/** bj_guest_is_paused: whether a person or the session paused it (not: QEMU, because a disk is full) */
gboolean bj_guest_is_paused (BjGuest *self);
gboolean bj_guest_is_running (BjGuest *self);
/**
 * bj_guest_revive: Unplugs and plugs the channel of an agent that once answered, not more than once in 30 s.
 * Returns: whether it did
 */
gboolean bj_guest_revive (BjGuest *self);

/* One call of /usr/lib/belljar/run (bj-guest-run.c). */
typedef struct
{
  BjGuest *guest;
  gint64 pid;
  gint64 deadline; /* monotonic; moved on while the machine is paused */
  gint64 silent;   /* since when the agent does not answer; 0: it does */
  guint pause_us;  /* between two looks */
  GBytes *output;  /* (owned) (nullable): set once it ended */
} BjGuestRun;

/**
 * bj_guest_run_begin:
 * @request: (transfer none): as bj_guest_request_finish() made it, any size
 * @budget_s: how long it may take altogether
 */
gboolean bj_guest_run_begin (BjGuestRun *self, BjGuest *guest, const char *mode, GBytes *request, guint budget_s,
                             GCancellable *cancellable, GError **error);
/** bj_guest_run_check: Looks once. @done: (out). Survives a paused machine and an agent that comes back. */
gboolean bj_guest_run_check (BjGuestRun *self, gboolean *done, GError **error);
/** bj_guest_run_wait: Waits a little, or to the end of the run; longer each time. Fails when cancelled. */
gboolean bj_guest_run_pause (BjGuestRun *self, GCancellable *cancellable, GError **error);
/** bj_guest_run_stop: Ends the command in the guest; for cancellation. Does not wait. */
void bj_guest_run_stop (BjGuestRun *self);
void bj_guest_run_clear (BjGuestRun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjGuestRun, bj_guest_run_clear)

/**
 * bj_guest_ask:
 * Begin, wait, parse.
 *
 * @answer: (out): points into @output
 * @output: (out) (transfer full): keep it as long as @answer
 */
gboolean bj_guest_ask (BjGuest *self, const char *mode, BjGuestRequest *request, GBytes *input, guint budget_s,
                       BjGuestAnswer *answer, GBytes **output, GCancellable *cancellable, GError **error);

G_END_DECLS
