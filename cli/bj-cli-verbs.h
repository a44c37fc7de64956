/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli.h"

G_BEGIN_DECLS

/** bj_verbs_get: Returns: (transfer none): every verb, in the order of the help; the last one has no name */
const BjCliVerb *bj_verbs_get (void);

/**
 * bj_verbs_find:
 * @args: what stands after "belljar"
 * @used: (out): how many words of it are the verb's name
 * @error: return location; names what is close by
 *
 * Returns: (transfer none): the verb, or %NULL
 */
const BjCliVerb *bj_verbs_find (char **args, guint *used, GError **error);

/** bj_verbs_format_help: @group: (nullable): only verbs that begin with this word. Returns: (transfer full): text */
char *bj_verbs_format_help (const char *group);

/** bj_verbs_main: The whole program after the locale was set. Returns: the exit code */
int bj_verbs_main (char **args);

/* One function a verb; each in the file of its group. */
int bj_verb_task (BjCli *cli, char **args, GError **error);
int bj_verb_answer (BjCli *cli, char **args, GError **error);
int bj_verb_report (BjCli *cli, char **args, GError **error);
int bj_verb_sessions (BjCli *cli, char **args, GError **error);
int bj_verb_show (BjCli *cli, char **args, GError **error);
int bj_verb_stop (BjCli *cli, char **args, GError **error);
int bj_verb_pause (BjCli *cli, char **args, GError **error);
int bj_verb_resume (BjCli *cli, char **args, GError **error);
int bj_verb_extend (BjCli *cli, char **args, GError **error);
int bj_verb_transcript (BjCli *cli, char **args, GError **error);
int bj_verb_bundle (BjCli *cli, char **args, GError **error);
int bj_verb_screenshot (BjCli *cli, char **args, GError **error);
int bj_verb_shell (BjCli *cli, char **args, GError **error);
int bj_verb_exec (BjCli *cli, char **args, GError **error);
int bj_verb_copy (BjCli *cli, char **args, GError **error);
int bj_verb_images (BjCli *cli, char **args, GError **error);
int bj_verb_image_build (BjCli *cli, char **args, GError **error);
int bj_verb_image_freeze (BjCli *cli, char **args, GError **error);
int bj_verb_image_verify (BjCli *cli, char **args, GError **error);
int bj_verb_image_delete (BjCli *cli, char **args, GError **error);
int bj_verb_image_default (BjCli *cli, char **args, GError **error);
int bj_verb_projects (BjCli *cli, char **args, GError **error);
int bj_verb_project_create (BjCli *cli, char **args, GError **error);
int bj_verb_project_import (BjCli *cli, char **args, GError **error);
int bj_verb_project_copy_in (BjCli *cli, char **args, GError **error);
int bj_verb_project_copy_out (BjCli *cli, char **args, GError **error);
int bj_verb_plan (BjCli *cli, char **args, GError **error);
int bj_verb_project_tasks (BjCli *cli, char **args, GError **error);
int bj_verb_project_log (BjCli *cli, char **args, GError **error);
int bj_verb_project_delete (BjCli *cli, char **args, GError **error);
int bj_verb_job_cancel (BjCli *cli, char **args, GError **error);
int bj_verb_jobs (BjCli *cli, char **args, GError **error);
int bj_verb_disk (BjCli *cli, char **args, GError **error);
int bj_verb_prune (BjCli *cli, char **args, GError **error);
int bj_verb_doctor (BjCli *cli, char **args, GError **error);
int bj_verb_complete (BjCli *cli, char **args, GError **error);

G_END_DECLS
