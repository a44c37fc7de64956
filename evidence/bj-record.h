/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * The data of each kind of record. Every string parameter that a guest, a model or a person chose is untrusted: it is
 * escaped here, once. All return (transfer full) objects.
 */

typedef struct
{
  const char *session;
  const char *kind; /* task or open */
  const char *project;
  const char *image_name;
  guint image_version;
  const char *image_digest;
  const char *baseline;      /* (nullable): commit id */
  const char *baseline_tree; /* (nullable) */
  const char *task;
  const char *check_command; /* (nullable): the caller's or the project's */
  const char *check_setup;   /* (nullable) */
  const char *check_source;  /* (nullable): caller or project */
  const char *const *protect;
  gboolean check_network;
  const char *model;
  const char *accelerator;
  const char *network; /* internet or none */
  JsonObject *isolation; /* (transfer none): one entry a layer: active, proven, reason */
  guint32 owner_uid;
  guint steps_limit;
  guint wall_clock_s;
} BjSessionFacts;

JsonObject *bj_record_session (const BjSessionFacts *facts);
JsonObject *bj_record_state (const char *state);
/** bj_record_timing: @phase: queue, overlay, clone, ready, setup, first_command, verify, commit */
JsonObject *bj_record_timing (const char *phase, double seconds);

/* One machine of the session, ready for its first command; the guest said what is in it, and the daemon compared. */
typedef struct
{
  const char *id;
  const char *start;      /* cold, template or pool; parked or paused: the same machine again, after a wait */
  double clock_offset_s;  /* at most */
  const char *hostname;
  const char *machine_id;
  const char *mac;        /* "" without a network card */
  const char *random;     /* a sample of its random numbers */
  const char *uuid;       /* what its kernel made of such */
  gboolean reseeded;      /* its kernel says that it noticed being a clone */
} BjMachineRecord;

JsonObject *bj_record_machine (const BjMachineRecord *facts);

typedef struct
{
  const char *tool;
  GBytes *command; /* the whole of what was run, as text */
  int exit;          /* -1 if it did not exit */
  int signal;
  gboolean timed_out;
  double duration_s;
  GBytes *out; /* (nullable) */
  GBytes *err; /* (nullable) */
  guint64 out_total;
  guint64 err_total;
  const char *out_sha256; /* (nullable) */
  gboolean truncated;
  const char *failure; /* (nullable): why there is no result, for example that the guest is unreachable */
  gboolean lost; /* with a failure: it was given to the guest and no answer came; duration_s is how long it was waited for */
} BjCommandFacts;

JsonObject *bj_record_command (const BjCommandFacts *facts);
/** bj_record_background: @event: start, poll, send, kill or end; @command: (nullable): the whole of it; @exit: -1 if it did not exit */
JsonObject *bj_record_background (const char *event, guint id, const char *command, int exit, int signal);
/** bj_record_start_failure: A background command that has no id. @lost: it was given to the guest and no answer came */
JsonObject *bj_record_start_failure (const char *command, gboolean lost, const char *failure);
/** bj_record_file: @op: read, write, append; @path: bytes */
JsonObject *bj_record_file (const char *op, const char *tool, const char *path, guint64 bytes);
/** bj_record_input: @what: which keys, where the pointer went, how long it was waited; @failure: (nullable): not all of it happened */
JsonObject *bj_record_input (const char *tool, const char *what, const char *failure);
JsonObject *bj_record_screenshot (const char *file, const char *sha256, guint64 bytes);
/** bj_record_model: one turn as the gateway saw it */
JsonObject *bj_record_model (guint turn, const char *path, guint status, guint64 request_bytes,
                             const char *request_sha256, guint64 response_bytes, const char *response_sha256,
                             double duration_s, const char *error);
/**
 * bj_record_tree:
 * @protected_tree: (nullable): @tree with the baseline's versions of protected files put back, from
 *   bj_project_store_restore_protected(); the same as @tree when nothing differs; %NULL when it is not known (no baseline), which
 *   proves nothing
 * @files_changed: (transfer none): from bj_project_store_diff()
 * @files_total: how many there are, also those that @files_changed had no room for
 *
 * The tree that the checks run on: it has to come before their records, and their tree has to be this one (fresh) or
 * @protected_tree (protected) to count.
 */
JsonObject *bj_record_tree (const char *tree, const char *protected_tree, JsonArray *files_changed,
                            guint64 files_total, const char *const *warnings);

typedef struct
{
  const char *where; /* same, fresh, baseline or protected */
  const char *tree;
  int exit;
  int signal;
  gboolean timed_out;
  gboolean setup_failed;  /* the setup before it failed: exit is the setup's */
  const char *failure;    /* (nullable): the machine was gone, …: it could not be run or not be watched to its end */
  gboolean lost;          /* with a failure: it was begun */
  gboolean stopped;       /* with a failure: because a person stopped the session */
  double duration_s;
  GBytes *output;         /* (nullable): end of both streams */
  gboolean network;
  const char *command;    /* what was run */
  const char *source;     /* caller, project or agent */
  const char *setup;
} BjCheckRunFacts;

JsonObject *bj_record_check_run (const BjCheckRunFacts *facts);
JsonObject *bj_record_commit (const char *commit, const char *tree, gboolean is_baseline);
JsonObject *bj_record_warning (const char *text);
/** bj_record_limit: @limit: steps, wall-clock, idle, transcript, screenshots, screenshot-bytes, or agent (it said so itself) */
JsonObject *bj_record_limit (const char *limit, guint64 value);
JsonObject *bj_record_error (const char *error_name, const char *message);
/** bj_record_end: @outcome: DONE, FAILED or CANCELLED */
JsonObject *bj_record_end (const char *outcome, const char *error_name, const char *message);
/** bj_record_answer: @text: a person's, to the question before it; @uid: who it was */
JsonObject *bj_record_answer (const char *text, guint32 uid);
/** bj_record_park: The machine went to disk. @users: processes that lost files of the share that they had open */
JsonObject *bj_record_park (guint64 bytes, double seconds, guint users);
/* claimed */
JsonObject *bj_record_text (const char *text);                                  /* note, ask, finish */
JsonObject *bj_record_plan (guint id, const char *text, const char *status);    /* plan */
JsonObject *bj_record_set_check (const char *command, const char *setup);       /* set-check */
/** bj_record_from_agent: what the agent sent with Record, made harmless: depth, sizes and strings capped and escaped */
JsonObject *bj_record_from_agent (const char *json, GError **error);

G_END_DECLS
