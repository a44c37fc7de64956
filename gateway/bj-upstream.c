/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-upstream.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define FETCH_MAX (8 * 1024 * 1024)
#define FETCH_SECONDS 7 /* two of them fit into the daemon's patience with Probe */
#define FETCH_CHUNK 65536
#define MODEL_FRESH (600 * G_USEC_PER_SEC)

struct _BjUpstream
{
  GObject parent_instance;
  char *base;  /* URL without a slash at its end */
  char *label; /* scheme://host:port */
  guint stall_s;
  SoupSession *session;
  GHashTable *models; /* (element-type utf8 BjKnownModel) */
};

G_DEFINE_FINAL_TYPE (BjUpstream, bj_upstream, G_TYPE_OBJECT)

typedef struct
{
  BjModelInfo info;
  gint64 asked; /* monotonic */
} BjKnownModel;

/* One answer that is read whole. */
typedef struct
{
  SoupMessage *message;
  GInputStream *stream; /* (nullable) */
  GByteArray *bytes;
  GCancellable *cancellable; /* ours: the deadline's */
  GCancellable *outer;       /* (nullable): the caller's */
  gulong outer_id;
  guint deadline_id;
  gboolean late;
} BjFetch;

static void
fetch_free (BjFetch *fetch)
{
  g_clear_handle_id (&fetch->deadline_id, g_source_remove);
  if (fetch->outer != NULL)
    g_cancellable_disconnect (fetch->outer, fetch->outer_id);
  g_clear_object (&fetch->outer);
  g_clear_object (&fetch->message);
  g_clear_object (&fetch->stream);
  g_clear_object (&fetch->cancellable);
  g_clear_pointer (&fetch->bytes, g_byte_array_unref);
  g_free (fetch);
}

static void
bj_upstream_finalize (GObject *object)
{
  BjUpstream *self = BJ_UPSTREAM (object);

  g_clear_object (&self->session);
  g_clear_pointer (&self->models, g_hash_table_unref);
  g_free (self->base);
  g_free (self->label);
  G_OBJECT_CLASS (bj_upstream_parent_class)->finalize (object);
}

static void
bj_upstream_class_init (BjUpstreamClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_upstream_finalize;
}

static void
bj_upstream_init (BjUpstream *self)
{
  self->models = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->session = soup_session_new_with_options ("max-conns", 1024, "max-conns-per-host", 1024, "timeout", 0u, NULL);
  soup_session_set_proxy_resolver (self->session, NULL);
  soup_session_remove_feature_by_type (self->session, SOUP_TYPE_CONTENT_DECODER);
  soup_session_remove_feature_by_type (self->session, SOUP_TYPE_AUTH_MANAGER);
}

BjUpstream *
bj_upstream_new (const char *url, guint stall_s, GError **error)
{
  g_autoptr(GUri) uri = g_uri_parse (url, SOUP_HTTP_URI_FLAGS, NULL);
  g_autoptr(BjUpstream) self = NULL;
  const char *scheme = uri ? g_uri_get_scheme (uri) : NULL;
  g_autofree char *path = NULL;

  if (uri == NULL || g_uri_get_host (uri) == NULL || *g_uri_get_host (uri) == '\0'
      || (!g_str_equal (scheme, "http") && !g_str_equal (scheme, "https")))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The model server's URL must look like http://HOST:PORT");
      return NULL;
    }
  if (g_uri_get_userinfo (uri) != NULL || g_uri_get_query (uri) != NULL || g_uri_get_fragment (uri) != NULL)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The model server's URL may have no user name, query or fragment");
      return NULL;
    }
  if (stall_s == 0)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The model server's stall time must be at least one second");
      return NULL;
    }
  self = g_object_new (BJ_TYPE_UPSTREAM, NULL);
  path = g_strdup (g_uri_get_path (uri));
  while (g_str_has_suffix (path, "/"))
    path[strlen (path) - 1] = '\0';
  self->label = g_uri_join (G_URI_FLAGS_NONE, scheme, NULL, g_uri_get_host (uri), g_uri_get_port (uri), "", NULL, NULL);
  self->base = g_strconcat (self->label, path, NULL);
  self->stall_s = stall_s;
  return g_steal_pointer (&self);
}

guint
bj_upstream_get_stall (BjUpstream *self)
{
  return self->stall_s;
}

const char *
bj_upstream_get_label (BjUpstream *self)
{
  return self->label;
}

SoupSession *
bj_upstream_get_session (BjUpstream *self)
{
  return self->session;
}

SoupMessage *
bj_upstream_new_message (BjUpstream *self, const char *method, const char *path, GBytes *body)
{
  g_autofree char *url = g_strconcat (self->base, path, NULL);
  SoupMessage *message = soup_message_new (method, url);

  soup_message_set_flags (message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_NEW_CONNECTION);
  soup_message_headers_replace (soup_message_get_request_headers (message), "Connection", "close");
  if (body != NULL)
    soup_message_set_request_body_from_bytes (message, "application/json", body);
  return message;
}

GError *
bj_upstream_describe (BjUpstream *self, const GError *error)
{
  return g_error_new (BJ_ERROR, BJ_ERROR_MODEL_UNREACHABLE,
                      "The model server %s does not answer: %s. Is it running, and is [model] url right?", self->label,
                      error->message);
}

/* fetching */

static void
fetch_fail (GTask *task, const GError *error)
{
  BjUpstream *self = g_task_get_source_object (task);
  BjFetch *fetch = g_task_get_task_data (task);

  if (fetch->late)
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_MODEL_UNREACHABLE,
                             "The model server %s gave no whole answer within %d s", self->label, FETCH_SECONDS);
  else
    g_task_return_error (task, bj_upstream_describe (self, error));
}

static void
fetch_complete (GTask *task)
{
  BjUpstream *self = g_task_get_source_object (task);
  BjFetch *fetch = g_task_get_task_data (task);
  guint status = soup_message_get_status (fetch->message);

  if (status == SOUP_STATUS_OK)
    g_task_return_pointer (task, g_byte_array_free_to_bytes (g_steal_pointer (&fetch->bytes)),
                           (GDestroyNotify) g_bytes_unref);
  else if (status == SOUP_STATUS_NOT_FOUND)
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_NOT_FOUND, "The model server %s does not know that",
                             self->label);
  else
    g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_FAILED, "The model server %s answered with status %u",
                             self->label, status);
}

static void
fetch_read_done (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(GTask) task = data;
  BjFetch *fetch = g_task_get_task_data (task);
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) chunk = g_input_stream_read_bytes_finish (G_INPUT_STREAM (source), result, &error);

  if (chunk == NULL)
    {
      fetch_fail (task, error);
      return;
    }
  if (g_bytes_get_size (chunk) == 0)
    {
      fetch_complete (task);
      return;
    }
  if (fetch->bytes->len + g_bytes_get_size (chunk) > FETCH_MAX)
    {
      g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_LIMIT, "The model server's answer is larger than %d bytes",
                               FETCH_MAX);
      return;
    }
  g_byte_array_append (fetch->bytes, g_bytes_get_data (chunk, NULL), (guint) g_bytes_get_size (chunk));
  g_input_stream_read_bytes_async (fetch->stream, FETCH_CHUNK, G_PRIORITY_DEFAULT, fetch->cancellable, fetch_read_done,
                                   g_steal_pointer (&task));
}

static void
fetch_sent (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(GTask) task = data;
  BjFetch *fetch = g_task_get_task_data (task);
  g_autoptr(GError) error = NULL;

  fetch->stream = soup_session_send_finish (SOUP_SESSION (source), result, &error);
  if (fetch->stream == NULL)
    {
      fetch_fail (task, error);
      return;
    }
  g_input_stream_read_bytes_async (fetch->stream, FETCH_CHUNK, G_PRIORITY_DEFAULT, fetch->cancellable, fetch_read_done,
                                   g_steal_pointer (&task));
}

static gboolean
fetch_late (gpointer data)
{
  BjFetch *fetch = data;

  fetch->deadline_id = 0;
  fetch->late = TRUE;
  g_cancellable_cancel (fetch->cancellable);
  return G_SOURCE_REMOVE;
}

static void
fetch_outer_cancelled (GCancellable *outer, gpointer inner)
{
  g_cancellable_cancel (inner);
}

void
bj_upstream_fetch_async (BjUpstream *self, const char *method, const char *path, GBytes *body,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);
  BjFetch *fetch = g_new0 (BjFetch, 1);

  fetch->message = bj_upstream_new_message (self, method, path, body);
  fetch->bytes = g_byte_array_new ();
  fetch->cancellable = g_cancellable_new ();
  fetch->deadline_id = g_timeout_add_seconds (FETCH_SECONDS, fetch_late, fetch);
  g_task_set_task_data (task, fetch, (GDestroyNotify) fetch_free);
  if (cancellable != NULL)
    {
      fetch->outer = g_object_ref (cancellable);
      fetch->outer_id = g_cancellable_connect (cancellable, G_CALLBACK (fetch_outer_cancelled), fetch->cancellable,
                                               NULL);
    }
  soup_session_send_async (self->session, fetch->message, G_PRIORITY_DEFAULT, fetch->cancellable, fetch_sent, task);
}

GBytes *
bj_upstream_fetch_finish (BjUpstream *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* models */

static void
model_fetched (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(GTask) task = data;
  BjUpstream *self = BJ_UPSTREAM (source);
  g_autofree BjKnownModel *known = g_new0 (BjKnownModel, 1);
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) body = bj_upstream_fetch_finish (self, result, &error);

  known->asked = g_get_monotonic_time ();
  if (body != NULL)
    bj_model_info_parse (body, &known->info, &error);
  if (error != NULL && !g_error_matches (error, BJ_ERROR, BJ_ERROR_NOT_FOUND))
    {
      g_task_return_error (task, g_steal_pointer (&error));
      return;
    }
  g_task_return_pointer (task, g_memdup2 (&known->info, sizeof known->info), g_free);
  if (known->info.found)
    g_hash_table_replace (self->models, g_strdup (g_task_get_task_data (task)), g_steal_pointer (&known));
}

void
bj_upstream_get_model_async (BjUpstream *self, const char *model, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);
  const BjKnownModel *known = g_hash_table_lookup (self->models, model);
  g_autoptr(JsonObject) object = NULL;
  g_autoptr(GBytes) body = NULL;
  char *text;

  if (known != NULL && g_get_monotonic_time () - known->asked < MODEL_FRESH)
    {
      g_task_return_pointer (task, g_memdup2 (&known->info, sizeof known->info), g_free);
      g_object_unref (task);
      return;
    }
  object = json_object_new ();
  json_object_set_string_member (object, "model", model);
  text = bj_json_to_string (object);
  body = g_bytes_new_take (text, strlen (text));
  g_task_set_task_data (task, g_strdup (model), g_free);
  bj_upstream_fetch_async (self, "POST", "/api/show", body, cancellable, model_fetched, task);
}

gboolean
bj_upstream_get_model_finish (BjUpstream *self, GAsyncResult *result, BjModelInfo *info, GError **error)
{
  g_autofree BjModelInfo *found = g_task_propagate_pointer (G_TASK (result), error);

  if (found == NULL)
    return FALSE;
  *info = *found;
  return TRUE;
}

/* probing */

typedef struct
{
  char *model;
  GVariantDict dict;
} BjProbe;

static void
probe_free (BjProbe *probe)
{
  g_variant_dict_clear (&probe->dict);
  g_free (probe->model);
  g_free (probe);
}

static void
probe_end (GTask *task, const GError *error)
{
  BjProbe *probe = g_task_get_task_data (task);

  if (error != NULL)
    g_variant_dict_insert (&probe->dict, "error", "s", error->message);
  g_task_return_pointer (task, g_variant_ref_sink (g_variant_dict_end (&probe->dict)),
                         (GDestroyNotify) g_variant_unref);
}

static void
probe_model_known (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(GTask) task = data;
  BjProbe *probe = g_task_get_task_data (task);
  BjModelInfo info = { 0 };
  g_autoptr(GError) error = NULL;

  if (bj_upstream_get_model_finish (BJ_UPSTREAM (source), result, &info, &error) && !info.found)
    bj_error_set (&error, BJ_ERROR_NOT_FOUND, "The model server %s has no model “%s”; pull it there or change [model] name",
                  BJ_UPSTREAM (source)->label, probe->model);
  g_variant_dict_insert (&probe->dict, "found", "b", info.found);
  g_variant_dict_insert (&probe->dict, "tools", "b", info.tools);
  g_variant_dict_insert (&probe->dict, "vision", "b", info.vision);
  g_variant_dict_insert (&probe->dict, "thinking", "b", info.thinking);
  g_variant_dict_insert (&probe->dict, "context", "u", info.context);
  probe_end (task, error);
}

static void
probe_version_known (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(GTask) task = data;
  BjUpstream *self = BJ_UPSTREAM (source);
  BjProbe *probe = g_task_get_task_data (task);
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) body = bj_upstream_fetch_finish (self, result, &error);
  g_autoptr(JsonObject) answer = NULL;
  const char *version;

  g_variant_dict_insert (&probe->dict, "reachable", "b", body != NULL);
  if (body == NULL)
    {
      probe_end (task, error);
      return;
    }
  answer = bj_json_parse_object (g_bytes_get_data (body, NULL), (gssize) g_bytes_get_size (body), NULL);
  version = answer ? bj_json_get_string (answer, "version") : NULL;
  if (version != NULL)
    g_variant_dict_insert (&probe->dict, "version", "s", version);
  if (*probe->model == '\0')
    {
      probe_end (task, NULL);
      return;
    }
  bj_upstream_get_model_async (self, probe->model, NULL, probe_model_known, g_steal_pointer (&task));
}

void
bj_upstream_probe_async (BjUpstream *self, const char *model, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, NULL, callback, user_data);
  BjProbe *probe = g_new0 (BjProbe, 1);

  probe->model = g_strdup (model);
  g_variant_dict_init (&probe->dict, NULL);
  g_task_set_task_data (task, probe, (GDestroyNotify) probe_free);
  g_hash_table_remove (self->models, model); /* whoever probes wants to know how it is now */
  bj_upstream_fetch_async (self, "GET", "/api/version", NULL, NULL, probe_version_known, task);
}

GVariant *
bj_upstream_probe_finish (BjUpstream *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
