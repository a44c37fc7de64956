/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bj-dbus-image.h"
#include "bj-dbus-job.h"
#include "bj-dbus-manager.h"
#include "bj-dbus-project.h"
#include "bj-dbus-session.h"

#include <gio/gio.h>
#include <gio/gunixfdlist.h>

G_BEGIN_DECLS

/*
 * The daemon as a program of a person sees it: objects with cached properties that follow the bus, and calls that may ask for a
 * password. Main thread only; every error is one of bj-error.h, without the bus's own prefixes.
 */
#define BJ_TYPE_CLIENT (bj_client_get_type ())
G_DECLARE_FINAL_TYPE (BjClient, bj_client, BJ, CLIENT, GObject)

/**
 * bj_client_new:
 * @cancellable: (nullable): a cancellable
 * @error: return location; says how to start the daemon when it does not run
 *
 * Connects to the bus that $BELLJAR_BUS names. Blocks for a few round trips on the bus.
 *
 * Returns: (transfer full): the client
 */
BjClient *bj_client_new (GCancellable *cancellable, GError **error);

/** bj_client_get_manager: Returns: (transfer none): the manager */
BjDBusManager *bj_client_get_manager (BjClient *self);

/**
 * bj_client_list_sessions:
 *
 * Returns: (transfer full) (element-type BjDBusSession): all of them, oldest first
 */
GPtrArray *bj_client_list_sessions (BjClient *self);
/** bj_client_list_images: Returns: (transfer full) (element-type BjDBusImage): by name */
GPtrArray *bj_client_list_images (BjClient *self);
/** bj_client_list_projects: Returns: (transfer full) (element-type BjDBusProject): by name */
GPtrArray *bj_client_list_projects (BjClient *self);
/** bj_client_list_jobs: Returns: (transfer full) (element-type BjDBusJob): by number */
GPtrArray *bj_client_list_jobs (BjClient *self);

/**
 * bj_client_find_session:
 * @id: an id, the beginning of exactly one id, or an object path
 *
 * Returns: (transfer full): the session; %NULL with BJ_ERROR_NOT_FOUND, or BJ_ERROR_INVALID when several begin so
 */
BjDBusSession *bj_client_find_session (BjClient *self, const char *id, GError **error);
/** bj_client_find_image: Returns: (transfer full): the image, or %NULL with BJ_ERROR_NOT_FOUND */
BjDBusImage *bj_client_find_image (BjClient *self, const char *name, GError **error);
/** bj_client_find_project: Returns: (transfer full): the project, or %NULL with BJ_ERROR_NOT_FOUND */
BjDBusProject *bj_client_find_project (BjClient *self, const char *name, GError **error);

/**
 * bj_client_get_id:
 * @proxy: a session, job, image or project
 *
 * Returns: (transfer none): the last element of its path: a session's id, a job's number
 */
const char *bj_client_get_id (gpointer proxy);

/**
 * bj_client_call_async:
 * @proxy: a proxy of this client
 * @method: a method of its interface
 * @parameters: (nullable): a tuple; floating is taken over
 * @fds: (nullable) (transfer none): descriptors that handles in @parameters index
 * @timeout_ms: -1 for the default, G_MAXINT for none
 * @cancellable: (nullable): gives up waiting; the daemon is not told
 *
 * A call that may raise a password dialog.
 */
void bj_client_call_async (BjClient *self, gpointer proxy, const char *method, GVariant *parameters, GUnixFDList *fds,
                           int timeout_ms, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/**
 * bj_client_call_finish:
 * @fds: (out) (optional) (nullable) (transfer full): descriptors that came with the answer
 *
 * Returns: (transfer full): the answer's tuple
 */
GVariant *bj_client_call_finish (BjClient *self, GAsyncResult *result, GUnixFDList **fds, GError **error);

/** bj_client_open_job_async: A proxy of the job at @path, which a call returned. */
void bj_client_open_job_async (BjClient *self, const char *path, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/** bj_client_open_job_finish: Returns: (transfer full): the job */
BjDBusJob *bj_client_open_job_finish (BjClient *self, GAsyncResult *result, GError **error);

/** bj_client_open_session_async: A proxy of the session at @path, which a call returned. */
void bj_client_open_session_async (BjClient *self, const char *path, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
/** bj_client_open_session_finish: Returns: (transfer full): the session */
BjDBusSession *bj_client_open_session_finish (BjClient *self, GAsyncResult *result, GError **error);

/** bj_client_get_running: Returns: whether the daemon is still on the bus */
gboolean bj_client_get_running (BjClient *self);

G_END_DECLS
