/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-caller.h"
#include "bj-context.h"

G_BEGIN_DECLS

/* What a session shall be: settled when it starts, never changed after that. */
typedef struct
{
  char *id;
  char *kind; /* task or open */
  char *task; /* (nullable): of a task session */
  char *project;      /* (nullable): without one nothing is shared and nothing is kept */
  gboolean own_project; /* made for this task, because the caller named none */
  BjImage *image;
  guint item; /* of the project's task list; 0: none */
  char *check; /* (nullable): the caller's */
  char *model; /* "" for an open session */
  guint wall_clock_s;
  guint memory_mib; /* 0: the project's, or the default */
  guint cpus;
  guint steps;
  gboolean wants_network;
  gboolean keep_failed; /* the machine, if the work does not turn out well */
  uid_t owner_uid;
  gid_t owner_gid;
  guint slot;
} BjSessionPlan;

/**
 * bj_session_plan_new:
 * @task: (nullable): %NULL for a session without a sub-agent
 * @options: a{sv}, checked here
 *
 * Resolves defaults, the image and the project; takes no slot yet.
 *
 * Returns: (transfer full): the plan, or %NULL with an error that names the option
 */
BjSessionPlan *bj_session_plan_new (BjContext *context, const BjCaller *caller, const char *task, GVariant *options,
                                    GError **error);

/**
 * bj_session_plan_from_row:
 * @row: from the store
 *
 * Returns: (transfer full): the plan as it was; its image may be %NULL when it is gone
 */
BjSessionPlan *bj_session_plan_from_row (BjContext *context, const BjSessionRow *row);

/** bj_session_plan_fill_row: Sets what follows from the plan in @row. */
void bj_session_plan_fill_row (const BjSessionPlan *plan, BjSessionRow *row);

void bj_session_plan_free (BjSessionPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjSessionPlan, bj_session_plan_free)

G_END_DECLS
