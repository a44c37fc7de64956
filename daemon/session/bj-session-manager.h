/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-caller.h"
#include "bj-context.h"
#include "bj-gateway.h"
#include "bj-report.h"
#include "bj-session.h"

G_BEGIN_DECLS

/* All sessions: starts them, exports them, ends them, and puts in order at start what a crash left. Main loop only. */
#define BJ_TYPE_SESSION_MANAGER (bj_session_manager_get_type ())
G_DECLARE_FINAL_TYPE (BjSessionManager, bj_session_manager, BJ, SESSION_MANAGER, GObject)

/** bj_session_manager_new: @key: (transfer none): signs reports; outlives the manager */
BjSessionManager *bj_session_manager_new (BjContext *context, BjReportKey *key);

/**
 * bj_session_manager_load:
 * Exports the sessions of the store, compares the journal with reality: live machines are adopted (on-stop = keep) or
 * removed with all that belongs to them, and the log and the session's report say so. Blocks; before the bus name is taken.
 */
gboolean bj_session_manager_load (BjSessionManager *self, GError **error);

/**
 * bj_session_manager_start:
 * @task: (nullable): %NULL for a session without a sub-agent
 * @options: a{sv} as in RunTask or OpenSession
 *
 * Returns: (transfer full): object path, or %NULL
 */
char *bj_session_manager_start (BjSessionManager *self, const BjCaller *caller, const char *task, GVariant *options,
                                GError **error);

/** bj_session_manager_lookup: Returns: (transfer none) (nullable): the session with this object path */
BjSession *bj_session_manager_lookup (BjSessionManager *self, const char *path);

/** bj_session_manager_wait_async: Ends when the session has ended or after @timeout_ms. Main loop is not blocked. */
void bj_session_manager_wait_async (BjSessionManager *self, BjSession *session, guint timeout_ms,
                                    GAsyncReadyCallback callback, gpointer user_data);
gboolean bj_session_manager_wait_finish (BjSessionManager *self, GAsyncResult *result, char **outcome, char **report,
                                         GError **error);

/** bj_session_manager_get_gateway: (transfer none): for doctor */
BjGateway *bj_session_manager_get_gateway (BjSessionManager *self);

typedef enum
{
  BJ_SESSION_UNKNOWN,
  BJ_SESSION_LIVE, /* it works, or waits for somebody */
  BJ_SESSION_OVER,
} BjSessionPresence;

/** bj_session_manager_look: @forget: takes one that is over off the bus; its folder and its row are then the caller's to remove */
BjSessionPresence bj_session_manager_look (BjSessionManager *self, const char *id, gboolean forget);
/** bj_session_manager_dup_live_digests: Returns: (transfer full): of the images that live sessions started from */
GStrv bj_session_manager_dup_live_digests (BjSessionManager *self);

guint bj_session_manager_count_using_image (BjSessionManager *self, const char *image);
guint bj_session_manager_count_on_project (BjSessionManager *self, const char *project);
/** bj_session_manager_get_budget: Returns: (transfer full): a{sv} for Manager.Budget */
GVariant *bj_session_manager_get_budget (BjSessionManager *self);

/** bj_session_manager_shutdown_async: Ends every session, or leaves it for adoption, as configured. */
void bj_session_manager_shutdown_async (BjSessionManager *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean bj_session_manager_shutdown_finish (BjSessionManager *self, GAsyncResult *result, GError **error);

/* signal "over": a session has ended, and its report stands */
/* signal "changed": a session began or ended; properties of images and projects follow from it */

G_END_DECLS
