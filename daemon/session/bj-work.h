/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-agent-peer.h"
#include "bj-cable.h"
#include "bj-gateway.h"
#include "bj-session.h"

G_BEGIN_DECLS

/* What a session's worker knows while it goes through its steps; nobody else touches it. */
typedef struct
{
  BjSession *session;        /* (owned) */
  BjContext *context;        /* (not owned) */
  const BjSessionPlan *plan; /* (not owned) */
  BjGateway *gateway;        /* (not owned) */

  BjMachine *machine; /* (owned) (nullable): the session's own */
  BjMachine *kept;    /* (owned) (nullable): the same after the work, if it may be wanted */
  BjCable *cable;     /* (owned) (nullable): its network */
  gboolean shared;    /* the project's folder is plugged in */
  gboolean slot_is_leased; /* the plan's slot goes back with the machine, not with the session */
  BjAgentPeer *agent; /* (owned) (nullable) */
  GVariant *model;    /* (owned) (nullable): what the gateway found out about the model */

  char *baseline;      /* (owned) (nullable): commit id */
  char *baseline_tree; /* (owned) (nullable) */
  char *tree;          /* (owned) (nullable): what the session left */
  char *protected_tree; /* (owned) (nullable): the same with the baseline's versions of protected files */
  BjProjectSettings settings;

  char *check;  /* (owned) (nullable): the command that decides */
  char *setup;  /* (owned) (nullable) */
  const char *check_source; /* caller, project or agent */
  GStrv protect; /* (owned) (nullable): patterns */
  BjRun same;  /* how the check went in the session's own machine */
  gboolean network;
  guint memory_mib;

  gint64 clock_offset_us; /* of the wall clock from the monotonic one, when somebody last looked */
  gint64 asked_at;   /* seconds since 1970: since when it waits for an answer */
  gint64 park_at_us; /* monotonic: when a machine that waits goes to disk */
} BjWork;

/* bj-work-project.c: the project's folder, before and after. */

/** bj_work_take_baseline: Records the folder as it is; reads belljar.ini from that tree; settles the check. */
gboolean bj_work_take_baseline (BjWork *work, GError **error);
/** bj_work_recall_baseline: For a session of an earlier daemon: work->baseline_tree is known; the rest follows from it. */
gboolean bj_work_recall_baseline (BjWork *work, GError **error);
/** bj_work_write_tree: Writes what the session left, records what changed. */
gboolean bj_work_write_tree (BjWork *work, GError **error);
/** bj_work_commit: Commits exactly that tree, with the verdict in the trailers. */
gboolean bj_work_commit (BjWork *work, GError **error);

/* bj-work-machine.c: the session's own machine. */

/** bj_work_settle_network: Internet only when a layer of isolation is proved. */
void bj_work_settle_network (BjWork *work);
/** bj_work_record_begin: The transcript's first record. */
void bj_work_record_begin (BjWork *work);
gboolean bj_work_start_machine (BjWork *work, GError **error);
/** bj_work_watch_machine: Gone? Out of disk space? Called now and then while the agent works. */
void bj_work_watch_machine (BjWork *work);
/** bj_work_end_machine: Stops it and leaves its end to the teardown. Safe to repeat. */
void bj_work_end_machine (BjWork *work);
/** bj_work_make_spec: What every machine of this session has in common; @suffix: "" for its own machine, else of one of its checks. */
BjMachineSpec *bj_work_make_spec (BjWork *work, const char *suffix, guint slot);

/** bj_work_lease_adopted: Slot and memory of a machine that went on while nobody counted. @mib: 0 for one on disk */
gboolean bj_work_lease_adopted (BjWork *work, const BjMachineSpec *spec, guint mib, GError **error);

/* bj-work-agent.c */

/** bj_work_probe_model: Whether the model is there; for an open session there is none. */
gboolean bj_work_probe_model (BjWork *work, GError **error);
/** bj_work_start_agent: One that goes on with an answer, if there is one. */
gboolean bj_work_start_agent (BjWork *work, GError **error);

/* bj-work-time.c */

/**
 * bj_work_clock_step:
 * @offset_us: (inout): how far the wall clock was from the monotonic one, and is now
 * @now_us: how far it is
 *
 * Returns: by how many seconds the wall clock was set since (or the host slept); 0 when it only ran on
 */
gint64 bj_work_clock_step (gint64 *offset_us, gint64 now_us);
/** bj_work_get_clock_offset: how far it is now */
gint64 bj_work_get_clock_offset (void);
/** bj_work_move_deadline: Returns: the deadline of a session that stood still since @asked_at, so that it has as long as it had then */
gint64 bj_work_move_deadline (gint64 deadline, gint64 asked_at, gint64 now);

/**
 * bj_work_watch_time:
 *
 * When a task's time is over, its machine is paused and whoever waits for the report gets a partial one. It can be extended for
 * as long as a machine that waits stays in memory ([limits] park-after); then its work ends. Blocks meanwhile. A session
 * without a task ends at once, and earlier when it is idle. A deadline is a wall clock's time, so that it moves with a clock that is
 * set: an hour forward ends no session, and an hour back gives none an hour more.
 */
void bj_work_watch_time (BjWork *work);

/* bj-work-ask.c */

/**
 * bj_work_wait_answer:
 *
 * The agent asked: its machine is paused until the answer is there, and goes to disk after a while. Blocks for as long as it takes.
 *
 * Returns: whether the work goes on; else it has ended, or the session was suspended because the daemon ends
 */
gboolean bj_work_wait_answer (BjWork *work);
/** bj_work_go_on_waiting: Likewise, for a session that waits since an earlier daemon. */
gboolean bj_work_go_on_waiting (BjWork *work);
/** bj_work_forget_wait: At the end: removes what was kept for a return. */
void bj_work_forget_wait (BjWork *work);
/** bj_work_recall_wait: For a session that waits since an earlier daemon: finds its machine. */
gboolean bj_work_recall_wait (BjWork *work, GError **error);

/* bj-work-keep.c */

/** bj_work_hold_machine: Instead of ending the session's machine. Returns: whether it is held */
gboolean bj_work_hold_machine (BjWork *work);
/** bj_work_keep_failed: After the end: keeps what is held for as long as somebody wants it. Blocks for as long. */
void bj_work_keep_failed (BjWork *work);

/* bj-work-verify.c */

/** bj_work_check_same: The check in the session's own machine, on a copy of the folder, before the share is unplugged. */
void bj_work_check_same (BjWork *work);
/** bj_work_verify: The check in fresh machines. Everything is recorded; nothing is an error of the session. */
void bj_work_verify (BjWork *work);

/* bj-session-run.c */

typedef gboolean (*BjStep) (BjWork *work, GError **error);

/** bj_work_journaled: Runs @step with its intent written down before and its outcome after. */
gboolean bj_work_journaled (BjWork *work, const char *action, BjStep step, GError **error);

/** bj_session_run_async: Goes through the whole session in a worker; the session emits "over" at the end. */
void bj_session_run_async (BjSession *session, BjGateway *gateway);
/** bj_session_adopt_async: Goes on with a session whose machine still lives after a restart of the daemon. Blocks shortly. */
gboolean bj_session_adopt_async (BjSession *session, BjGateway *gateway, GError **error);
/** bj_session_wait_on_async: Goes on with a session that waits for an answer since an earlier daemon. Blocks shortly. */
gboolean bj_session_wait_on_async (BjSession *session, BjGateway *gateway, GError **error);
/** bj_session_finish_after_crash: What is left to do for a session that an earlier daemon did not end. @why: (nullable): it could not
 * go on. Blocks. */
void bj_session_finish_after_crash (BjSession *session, BjGateway *gateway, const char *why);

G_END_DECLS
