/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-dbus-session.h"
#include "bj-exec-line.h"
#include "bj-machine.h"
#include "bj-report.h"
#include "bj-session-plan.h"
#include "bj-transcript.h"

G_BEGIN_DECLS

/*
 * One session: what it is now, for the bus, for its worker and for its agent's verbs. Thread-safe where nothing else is said.
 * The work itself is in bj-session-run.c (one worker that goes through the steps), the bus methods in bj-session-bus.c.
 */
#define BJ_TYPE_SESSION (bj_session_get_type ())
G_DECLARE_FINAL_TYPE (BjSession, bj_session, BJ, SESSION, GObject)

/* Why the work in the machine ended; the first reason counts. */
typedef enum
{
  BJ_END_NONE,
  BJ_END_FINISHED,     /* the agent said finish */
  BJ_END_STOPPED,      /* a person, or the daemon's end */
  BJ_END_WALL_CLOCK,
  BJ_END_STEPS,
  BJ_END_AGENT_LIMIT,  /* the agent says that it reached a limit of its own */
  BJ_END_IDLE,         /* nobody did anything in a session without a sub-agent */
  BJ_END_TRANSCRIPT,   /* the transcript reached its cap */
  BJ_END_AGENT,        /* the agent gave up or died: error name and message say why */
  BJ_END_MACHINE,      /* the machine was gone */
} BjEnd;

/**
 * bj_session_new:
 * @plan: (transfer full): what it shall be
 * @key: (transfer none): signs the report; outlives the session
 */
BjSession *bj_session_new (BjContext *context, BjSessionPlan *plan, BjReportKey *key);
/** bj_session_new_from_row: One that an earlier daemon knew. */
BjSession *bj_session_new_from_row (BjContext *context, const BjSessionRow *row, BjReportKey *key);

BjContext *bj_session_get_context (BjSession *self);
const BjSessionPlan *bj_session_get_plan (BjSession *self);
BjReportKey *bj_session_get_key (BjSession *self);
const char *bj_session_get_id (BjSession *self);
const char *bj_session_get_path (BjSession *self);
/** bj_session_dup_dir: @name: (nullable): STATE/sessions/ID[/@name] */
char *bj_session_dup_dir (BjSession *self, const char *name);
char *bj_session_dup_transcript_path (BjSession *self);
char *bj_session_dup_report_path (BjSession *self);
/** bj_session_get_skeleton: (transfer none): main loop only */
BjDBusSession *bj_session_get_skeleton (BjSession *self);

void bj_session_set_state (BjSession *self, const char *state);
char *bj_session_dup_state (BjSession *self);
/** bj_session_state_is_final: finished, failed or cancelled */
gboolean bj_session_state_is_final (const char *state);
gboolean bj_session_is_over (BjSession *self); /* its state is final */
void bj_session_set_activity (BjSession *self, const char *format, ...) G_GNUC_PRINTF (2, 3);
char *bj_session_dup_activity (BjSession *self);
void bj_session_set_accelerator (BjSession *self, const char *accelerator);
gint64 bj_session_get_deadline (BjSession *self); /* seconds since 1970 */
void bj_session_set_deadline (BjSession *self, gint64 deadline);
/** bj_session_take_step: Counts a tool call. Returns: %FALSE when the limit is reached; the work then ends */
gboolean bj_session_take_step (BjSession *self, GError **error);
guint bj_session_get_steps (BjSession *self);

/** bj_session_touch: Something happens in it: it is not idle. */
void bj_session_touch (BjSession *self);
/** bj_session_get_idle_us: Since when nothing happened; 0 while a command runs or waits for its turn, however silent it is. */
gint64 bj_session_get_idle_us (BjSession *self);

/** bj_session_end_work: Says why the work ends; wakes the worker. @error_name, @message: (nullable) */
void bj_session_end_work (BjSession *self, BjEnd end, const char *error_name, const char *message);
BjEnd bj_session_get_end (BjSession *self);
/** bj_session_wait_end: Blocks until the work ends, or for @seconds at most. */
BjEnd bj_session_wait_end (BjSession *self, double seconds);
void bj_session_dup_error (BjSession *self, char **error_name, char **message);

/** bj_session_get_cancellable: (transfer none): cancelled when the work ends other than by finish */
GCancellable *bj_session_get_cancellable (BjSession *self);
/** bj_session_get_hurry: (transfer none): cancelled when even the wrapping up has to be short (Delete, the daemon's end) */
GCancellable *bj_session_get_hurry (BjSession *self);
/** bj_session_stop: In any state; while it is being verified, what is left of the verification is cancelled. */
void bj_session_stop (BjSession *self, const char *why);
gboolean bj_session_was_stopped_late (BjSession *self);

/** bj_session_set_paused: @error: when the machine refuses */
gboolean bj_session_set_paused (BjSession *self, gboolean paused, GError **error);
/** bj_session_set_stalled: Whether the machine waits for room on the host's disk. Returns: whether that is new */
gboolean bj_session_set_stalled (BjSession *self, gboolean stalled);
gboolean bj_session_is_stalled (BjSession *self);
/** bj_session_set_stall_error: Sets the BJ_ERROR_NO_SPACE that says so. Returns: always %FALSE */
gboolean bj_session_set_stall_error (BjSession *self, GError **error);
/** bj_session_set_over_error: Says why the work has ended, if it has (BJ_ERROR_CANCELLED). Returns: whether it has */
gboolean bj_session_set_over_error (BjSession *self, GError **error);
gboolean bj_session_is_paused (BjSession *self);
/** bj_session_wait_unpaused: For verbs: blocks while a person has paused the machine, or it waits for room on the host. */
gboolean bj_session_wait_unpaused (BjSession *self, GError **error);

/* bj-session-ask.c: what it wants of a person: the answer to a question of the agent's, or more time. */

/** bj_session_ask: The agent asks; wakes the worker. */
gboolean bj_session_ask (BjSession *self, const char *question, GBytes *memory, GError **error);
/** bj_session_ask_again: For one that asked under an earlier daemon. */
void bj_session_ask_again (BjSession *self, GBytes *memory);
/** bj_session_answer_again: Somebody answered it already. Blocks. */
void bj_session_answer_again (BjSession *self, const char *text, uid_t uid);
/** bj_session_is_asking: From the question until the work goes on. */
gboolean bj_session_is_asking (BjSession *self);
/** bj_session_answer: A person's answer, kept durably before this returns. Blocks. */
gboolean bj_session_answer (BjSession *self, const char *text, uid_t uid, GError **error);

typedef enum
{
  BJ_WAKE_TIME,     /* nothing happened in that time */
  BJ_WAKE_ANSWER,
  BJ_WAKE_END,      /* it was stopped, or its machine was gone */
  BJ_WAKE_SUSPEND,  /* the daemon ends */
} BjWake;

/** bj_session_wait_answer: For the worker: blocks for @seconds at most. */
BjWake bj_session_wait_answer (BjSession *self, double seconds);
/** bj_session_begin_wait: For the worker: from now on an answer is asked for; waiters are told. */
void bj_session_begin_wait (BjSession *self);
/** bj_session_refuse_answer: It could not be used now; another one is asked for. */
void bj_session_refuse_answer (BjSession *self);
/** bj_session_end_wait: The work goes on. */
void bj_session_end_wait (BjSession *self);
/** bj_session_dup_answer: @memory: (out) (transfer full) (nullable). Returns: (transfer full) (nullable) */
char *bj_session_dup_answer (BjSession *self, GBytes **memory);
void bj_session_set_parked (BjSession *self, gboolean parked);
gboolean bj_session_is_parked (BjSession *self);
/** bj_session_suspend: The daemon ends. Returns: whether the session stays, once its worker says so */
gboolean bj_session_suspend (BjSession *self);
/** bj_session_announce_suspended: from the worker */
void bj_session_announce_suspended (BjSession *self);
gboolean bj_session_is_suspended (BjSession *self);

/** bj_session_set_over_time: Its time is over; waiters are told. */
void bj_session_set_over_time (BjSession *self, gboolean over_time);
gboolean bj_session_is_over_time (BjSession *self);
/** bj_session_wants_person: Whether it waits for somebody to answer, extend or stop it. */
gboolean bj_session_wants_person (BjSession *self);

/* bj-session-keep.c: the machine of a task that did not turn out well, after the session's end. */

/** bj_session_want_keep: It shall be kept then. */
void bj_session_want_keep (BjSession *self);
gboolean bj_session_wants_keep (BjSession *self);
/** bj_session_turned_out_well: Whether its work passes its check in a fresh machine. */
gboolean bj_session_turned_out_well (BjSession *self);
/** bj_session_set_kept: @machine: (nullable) */
void bj_session_set_kept (BjSession *self, BjMachine *machine);
gboolean bj_session_has_kept (BjSession *self);
/** bj_session_get_kept_cancellable: (transfer none): cancelled when it shall go */
GCancellable *bj_session_get_kept_cancellable (BjSession *self);
/** bj_session_begin_kept_use: Lets it run. Blocks. Returns: (transfer full): it, until bj_session_end_kept_use() */
BjMachine *bj_session_begin_kept_use (BjSession *self, GError **error);
void bj_session_end_kept_use (BjSession *self);
/** bj_session_release_kept: It is not wanted any more. */
void bj_session_release_kept (BjSession *self);
/** bj_session_wait_kept: For the worker: until it is released, or nobody has used it for @unused_s. */
void bj_session_wait_kept (BjSession *self, guint unused_s);

/** bj_session_get_exec_line: (transfer none): the commands that people run in it */
BjExecLine *bj_session_get_exec_line (BjSession *self);

/** bj_session_set_machine: (nullable); kept with a reference */
void bj_session_set_machine (BjSession *self, BjMachine *machine);
/**
 * bj_session_dup_machine:
 * Returns: (transfer full): or BJ_ERROR_GUEST_UNREACHABLE when it has none yet, BJ_ERROR_CANCELLED when it has none any more
 */
BjMachine *bj_session_dup_machine (BjSession *self, GError **error);

/** bj_session_set_agent_check: The agent's proposal; counts only when nobody else gave a check. */
void bj_session_set_agent_check (BjSession *self, const char *command, const char *setup);
gboolean bj_session_dup_agent_check (BjSession *self, char **command, char **setup);

/** bj_session_open_transcript: Creates it, or continues one after a crash. */
gboolean bj_session_open_transcript (BjSession *self, GError **error);
/** bj_session_record: @data: (transfer full). Failing to record is an error that ends the session's work. */
void bj_session_record (BjSession *self, gboolean seen, const char *type, JsonObject *data);
void bj_session_warn (BjSession *self, const char *format, ...) G_GNUC_PRINTF (2, 3);
/** bj_session_note_time: Records a phase of the timing. */
void bj_session_note_time (BjSession *self, const char *phase, gint64 begun_us);
/** bj_session_note_queue: The worker begins: how long it waited. */
void bj_session_note_queue (BjSession *self);
/** bj_session_note_command: A command's result is there; the first one is a phase of the timing. */
void bj_session_note_command (BjSession *self);
/** bj_session_dup_records: Returns: (transfer full): all records so far */
JsonArray *bj_session_dup_records (BjSession *self, char **head, GError **error);
/** bj_session_dup_report: Returns: (transfer full): JSON text of the report, partial while it works. Blocks. */
char *bj_session_dup_report (BjSession *self, GError **error);
/**
 * bj_session_take_screenshot:
 *
 * Keeps it as evidence too. BJ_ERROR_LIMIT when the session has as many as it may have; the first time that is a limit of the report.
 *
 * Returns: (transfer full): a PNG file's bytes. Blocks.
 */
GBytes *bj_session_take_screenshot (BjSession *self, GError **error);
/** bj_session_open_evidence: @name: as a record of the transcript has it. Returns: fd to read, owned by the caller, or -1. Blocks. */
int bj_session_open_evidence (BjSession *self, const char *name, GError **error);
/** bj_session_list_plan: Returns: (transfer floating): aa{sv} of the sub-agent's plan, its texts escaped */
GVariant *bj_session_list_plan (BjSession *self, GError **error);
/** bj_session_seal: Writes the end record, the signed report and the final row. */
gboolean bj_session_seal (BjSession *self, const char *outcome, const char *error_name, const char *message,
                          GError **error);
/** bj_session_save: Puts the row into the store; a failure is logged. */
void bj_session_save (BjSession *self);

/** bj_session_erase: Removes folder and row of a session that is off the bus. Blocks. */
gboolean bj_session_erase (BjContext *context, const char *id, GError **error);

/* signal "waits": emitted on the main loop when it asks for an answer, went to disk or came back, or was suspended */
/* signal "over": emitted on the main loop when the session has ended and its report stands */
/** bj_session_announce_over: from the worker */
void bj_session_announce_over (BjSession *self);

G_END_DECLS
