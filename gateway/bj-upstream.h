/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-chat-request.h"

#include <libsoup/soup.h>

G_BEGIN_DECLS

/*
 * The one model server. Its own HTTP session: no proxy, no redirects, no cookies, no stored credentials, a new connection
 * for each request, so that one that hangs never stands in another's way.
 */
#define BJ_TYPE_UPSTREAM (bj_upstream_get_type ())
G_DECLARE_FINAL_TYPE (BjUpstream, bj_upstream, BJ, UPSTREAM, GObject)

/** bj_upstream_new: @url: http or https, may have a path in front of /api; @stall_s: seconds without a byte */
BjUpstream *bj_upstream_new (const char *url, guint stall_s, GError **error);

guint bj_upstream_get_stall (BjUpstream *self);
/** bj_upstream_get_label: scheme, host and port: what may stand in an error message */
const char *bj_upstream_get_label (BjUpstream *self);
SoupSession *bj_upstream_get_session (BjUpstream *self);

/** bj_upstream_new_message: @body: (nullable): JSON. Returns: (transfer full): a request that is ready to be sent */
SoupMessage *bj_upstream_new_message (BjUpstream *self, const char *method, const char *path, GBytes *body);

/**
 * bj_upstream_fetch_async:
 * A whole answer of at most 8 MiB within 7 s. Fails with BJ_ERROR_MODEL_UNREACHABLE, BJ_ERROR_NOT_FOUND (404),
 * BJ_ERROR_LIMIT or BJ_ERROR_FAILED.
 */
void bj_upstream_fetch_async (BjUpstream *self, const char *method, const char *path, GBytes *body,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
GBytes *bj_upstream_fetch_finish (BjUpstream *self, GAsyncResult *result, GError **error);

/**
 * bj_upstream_get_model_async:
 * What /api/show says of @model; remembered for ten minutes. A model that is not there is a result with found FALSE.
 */
void bj_upstream_get_model_async (BjUpstream *self, const char *model, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
gboolean bj_upstream_get_model_finish (BjUpstream *self, GAsyncResult *result, BjModelInfo *info, GError **error);

/** bj_upstream_probe_async: Version and model at once; ends in an a{sv} as Gateway.Probe returns, never in an error. */
void bj_upstream_probe_async (BjUpstream *self, const char *model, GAsyncReadyCallback callback, gpointer user_data);
GVariant *bj_upstream_probe_finish (BjUpstream *self, GAsyncResult *result, GError **error);

/**
 * bj_upstream_describe:
 * @error: what libsoup or GIO said
 *
 * Returns: (transfer full): one of ours that names the server and how to go on
 */
GError *bj_upstream_describe (BjUpstream *self, const GError *error);

G_END_DECLS
