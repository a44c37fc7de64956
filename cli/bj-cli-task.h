/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* What a person wrote behind "belljar task"; bytes, not checked yet. */
typedef struct
{
  char *project;
  char *image;
  char *check;
  char *time;
  char *model;
  char *network;
  char *memory;
  char *cpus;
  char *item;
  gboolean keep_failed;
} BjTaskWords;

void bj_task_words_clear (BjTaskWords *words);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjTaskWords, bj_task_words_clear)

/**
 * bj_task_words_to_options:
 * @error: return location; a usage error that names the option
 *
 * Pure. Returns: (transfer full): floating a{sv} for Manager.RunTask
 */
GVariant *bj_task_words_to_options (const BjTaskWords *words, GError **error);

/** bj_report_to_exit: What the contract says about a report: outcome and verdict to exit code. Pure. */
BjExit bj_report_to_exit (JsonObject *report);

/** bj_report_parse: Returns: (transfer full): the JSON object @json, or %NULL when it is something else */
JsonObject *bj_report_parse (const char *json, GError **error);

/**
 * bj_report_print:
 * @json: the report as it came
 * @as_json: whether to print it as it is
 *
 * Returns: the exit code, or -1 with @error
 */
int bj_report_print (const char *json, gboolean as_json, GError **error);

G_END_DECLS
