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
  BjCable *cable;     /* (owned) (nullable): its network */
  gboolean shared;    /* the project's folder is plugged in */
  gboolean slot_is_leased; /* the plan's slot goes back with the machine, not with the session */
  BjAgentPeer *agent; /* (owned) (nullable) */

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
} BjWork;

/* bj-work-project.c: the project's folder, before and after. */

/** bj_work_take_baseline: Records the folder as it is; reads belljar.ini from that tree; settles the check. */
gboolean bj_work_take_baseline (BjWork *work, GError **error);
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

/* bj-work-verify.c */

/** bj_work_check_same: The check in the session's own machine, on a copy of the folder, before the share is unplugged. */
void bj_work_check_same (BjWork *work);
/** bj_work_verify: The check in fresh machines. Everything is recorded; nothing is an error of the session. */
void bj_work_verify (BjWork *work);

/* bj-session-run.c */

/** bj_session_run_async: Goes through the whole session in a worker; the session emits "over" at the end. */
void bj_session_run_async (BjSession *session, BjGateway *gateway);
/** bj_session_adopt_async: Goes on with a session whose machine still lives after a restart of the daemon. Blocks shortly. */
gboolean bj_session_adopt_async (BjSession *session, BjGateway *gateway, GError **error);
/** bj_session_finish_after_crash: What is left to do for a session that an earlier daemon did not end. Blocks. */
void bj_session_finish_after_crash (BjSession *session, BjGateway *gateway);

G_END_DECLS
