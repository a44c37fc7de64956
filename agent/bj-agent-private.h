/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-agent.h"

G_BEGIN_DECLS

/* What GetTask said. */
typedef struct
{
  char *task;
  char *project;
  char *folder;
  char *os;
  char *model;
  char *check;
  char *network;
  char *memory; /* (nullable): what an earlier loop left when it asked, JSON */
  char *answer; /* (nullable): a person's, to what it asked */
  guint steps;
  guint seconds;
  guint context;
  gboolean vision;
  gboolean think;
  gboolean textual_tools;
} BjTask;

typedef struct
{
  guint id;
  char *text;
  char *status;
} BjPlanItem;

struct _BjAgent
{
  BjAgentConfig config;
  BjToolbox *toolbox;
  char *system;  /* templates */
  char *textual;
  char *nudge;
  BjDBusAgent *verbs;
  BjModelClient *client;
  BjConversation *conversation;
  BjTask task;
  GPtrArray *plan; /* (element-type BjPlanItem) */
  char *question;  /* (nullable): what a person shall answer; ends the loop */
  char *image;     /* (nullable): base64 of a screenshot that the model gets with the results */
  guint turn;
  guint steps;       /* tool calls so far */
  guint guest_errors;
  guint nudges;      /* answers without a call, one after the other */
  guint context; /* tokens */
  gsize result_bytes;
  gsize message_bytes;
  gboolean finished;
  gboolean ended; /* the daemon ended it; there is nothing to tell it */
};

/* A tool: @arguments have the types of its definition. Returns: (transfer full): the result, or NULL */
typedef JsonObject *(*BjToolFunc) (BjAgent *self, JsonObject *arguments, GError **error);

/* bj-tools.c */
/** bj_tools_get_names: Returns: (transfer container): what there is code for */
const char **bj_tools_get_names (void);
BjToolFunc bj_tools_find (const char *name);

/* bj-verbs.c: the daemon's verbs, each with a deadline; errors are ours, without D-Bus wrapping */
typedef struct
{
  const char *tool;
  const char *label;
  const char *const *argv;
  const char *cwd;   /* (nullable): default the project folder */
  const char *input; /* (nullable) */
  guint timeout_s;
} BjVerbExec;

GVariant *bj_verbs_get_task (BjAgent *self, GError **error);
/** bj_verbs_exec: Returns: (transfer full): the result's a{sv} */
GVariant *bj_verbs_exec (BjAgent *self, const BjVerbExec *exec, GError **error);
gboolean bj_verbs_start (BjAgent *self, const char *label, const char *const *argv, const char *cwd, guint *id,
                         GError **error);
GVariant *bj_verbs_poll (BjAgent *self, guint id, guint wait_s, GError **error);
gboolean bj_verbs_send (BjAgent *self, guint id, const char *text, GError **error);
gboolean bj_verbs_kill (BjAgent *self, guint id, GError **error);
GVariant *bj_verbs_list_background (BjAgent *self, GError **error);
GBytes *bj_verbs_read_file (BjAgent *self, const char *path, guint64 offset, guint64 limit, guint64 *size,
                            GError **error);
/** bj_verbs_write_file: @mode: -1 leaves it to the daemon */
gboolean bj_verbs_write_file (BjAgent *self, const char *tool, const char *path, const char *data, gsize length,
                              int mode, gboolean append, GError **error);
GBytes *bj_verbs_screenshot (BjAgent *self, GError **error);
gboolean bj_verbs_mouse_move (BjAgent *self, guint x, guint y, GError **error);
gboolean bj_verbs_mouse_click (BjAgent *self, guint x, guint y, const char *button, gboolean twice, GError **error);
/** bj_verbs_mouse_drag: @places: x and y of both ends */
gboolean bj_verbs_mouse_drag (BjAgent *self, const guint places[4], const char *button, GError **error);
gboolean bj_verbs_scroll (BjAgent *self, guint x, guint y, int amount, GError **error);
gboolean bj_verbs_type_text (BjAgent *self, const char *text, GError **error);
gboolean bj_verbs_press_keys (BjAgent *self, const char *keys, GError **error);
gboolean bj_verbs_wait (BjAgent *self, guint seconds, GError **error);
gboolean bj_verbs_git_status (BjAgent *self, GVariant **changes, guint64 *total, GStrv *warnings, GError **error);
GBytes *bj_verbs_git_diff (BjAgent *self, const char *path, gboolean *cut, GError **error);
GVariant *bj_verbs_git_log (BjAgent *self, guint count, GError **error);
gboolean bj_verbs_plan_add (BjAgent *self, const char *text, guint *id, GError **error);
gboolean bj_verbs_plan_update (BjAgent *self, guint id, const char *status, GError **error);
GVariant *bj_verbs_plan_list (BjAgent *self, GError **error);
gboolean bj_verbs_note (BjAgent *self, const char *text, GError **error);
gboolean bj_verbs_set_check (BjAgent *self, const char *command, const char *setup, GError **error);
/** bj_verbs_record: @data: (transfer full) */
gboolean bj_verbs_record (BjAgent *self, const char *type, JsonObject *data, GError **error);
/** bj_verbs_ask: @memory: for the loop that goes on with the answer */
gboolean bj_verbs_ask (BjAgent *self, const char *question, const char *memory, GError **error);
gboolean bj_verbs_finish (BjAgent *self, const char *summary, GError **error);
void bj_verbs_fail (BjAgent *self, const GError *why);

/* bj-result.c: what the model gets to read */
/** bj_result_set_bytes: A guest's bytes as valid text, shortened to what a result may have. Returns: whether it was */
gboolean bj_result_set_bytes (BjAgent *self, JsonObject *result, const char *name, const char *bytes, gsize length);
/** bj_result_from_exec: @exec: an a{sv} of Exec */
JsonObject *bj_result_from_exec (BjAgent *self, GVariant *exec, guint timeout_s);
/** bj_result_ok: Returns: (transfer full): for a tool that has nothing else to say */
JsonObject *bj_result_ok (void);
/** bj_path_resolve: Returns: (transfer full): absolute; relative paths are the project folder's */
char *bj_path_resolve (BjAgent *self, const char *path);

/* bj-prompt.c */
/**
 * bj_prompt_fill:
 * @template: text with {{NAME}}; a line "?NAME: text" stays only when NAME is not empty
 * @names: NULL-terminated, name and value in turn; a value may be NULL
 *
 * Returns: (transfer full): the text, or %NULL when the template has a name that is none of these
 */
char *bj_prompt_fill (const char *template, const char *const *names, GError **error);

/* bj-task.c */
/** bj_task_begin: Asks the daemon for the task and makes the conversation. */
gboolean bj_task_begin (BjAgent *self, GError **error);
/** bj_task_check_texts: Fills in the texts once with nothing, to see that they name no unknown parameter. */
gboolean bj_task_check_texts (BjAgent *self, GError **error);
void bj_task_clear (BjTask *task);
/** bj_task_make_textual: From now on the model is told about the tools in words. */
gboolean bj_task_make_textual (BjAgent *self, GError **error);

/* bj-memory.c */
/** bj_memory_dup: @calls: of the turn that asks; those from @at on have no result. Returns: (transfer full): JSON */
char *bj_memory_dup (BjAgent *self, GPtrArray *calls, guint at, gboolean textual);
/** bj_memory_restore: When the task comes with an answer: makes the conversation what it was, and adds the answer. */
void bj_memory_restore (BjAgent *self, gsize budget);

/* bj-ask.c */
/** bj_ask_model: One answer, with retries. Returns: (transfer full): or %NULL with BJ_ERROR_MODEL_UNREACHABLE */
BjAnswer *bj_ask_model (BjAgent *self, GError **error);

/* bj-carry-out.c */
/** bj_carry_out: @textual: the calls stood in the prose. Returns: whether the loop can go on */
gboolean bj_carry_out (BjAgent *self, GPtrArray *calls, gboolean textual, GError **error);

/* tools */
JsonObject *bj_tool_run (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_run_script (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_start (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_poll (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_send (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_kill (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_list_background (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_write_file (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_append_file (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_read_file (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_edit_file (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_list_dir (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_find_files (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_search_text (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_stat_path (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_make_dir (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_move_path (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_copy_path (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_remove_path (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_system_info (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_screenshot (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_download (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_install_packages (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_list_processes (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_service (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_read_log (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_mouse_move (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_mouse_click (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_mouse_drag (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_scroll (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_type_text (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_press_keys (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_wait (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_read_clipboard (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_write_clipboard (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_git_status (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_git_diff (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_git_log (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_plan_add (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_plan_update (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_plan_list (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_note (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_set_check (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_ask (BjAgent *self, JsonObject *arguments, GError **error);
JsonObject *bj_tool_finish (BjAgent *self, JsonObject *arguments, GError **error);

G_END_DECLS
