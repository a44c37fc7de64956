/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-gateway-session.h"

#include "bj-error.h"

#include <gio/gunixsocketaddress.h>
#include <unistd.h>

#define MAX_AT_ONCE 4
#define STATUS_TOO_MANY 429

struct _BjGatewaySession
{
  GObject parent_instance;
  BjUpstream *upstream;
  SoupServer *server;
  char *model;
  char **allow;
  gsize body_max;
  guint turn;
  guint active;            /* requests being answered */
  GHashTable *relays;      /* (element-type BjRelay): running, not owned */
  GCancellable *cancellable;
};

G_DEFINE_FINAL_TYPE (BjGatewaySession, bj_gateway_session, G_TYPE_OBJECT)

enum
{
  TURN_FINISHED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

/* One request while something is looked up for it. */
typedef struct
{
  BjGatewaySession *session; /* (owned) */
  SoupServerMessage *message; /* (owned) */
  GBytes *body;               /* (owned) (nullable) */
  gulong finished_id, disconnected_id;
  gboolean finished; /* nobody waits for the answer any more */
} BjAsked;

static void
on_asked_finished (SoupServerMessage *message, gpointer data)
{
  BjAsked *asked = data;

  asked->finished = TRUE;
}

static BjAsked *
asked_new (BjGatewaySession *session, SoupServerMessage *message, GBytes *body)
{
  BjAsked *asked = g_new0 (BjAsked, 1);

  asked->session = g_object_ref (session);
  asked->message = g_object_ref (message);
  asked->body = body ? g_bytes_ref (body) : NULL;
  asked->finished_id = g_signal_connect (message, "finished", G_CALLBACK (on_asked_finished), asked);
  asked->disconnected_id = g_signal_connect (message, "disconnected", G_CALLBACK (on_asked_finished), asked);
  session->active++;
  soup_server_message_pause (message);
  return asked;
}

static void
asked_free (BjAsked *asked)
{
  asked->session->active--;
  g_clear_signal_handler (&asked->finished_id, asked->message);
  g_clear_signal_handler (&asked->disconnected_id, asked->message);
  g_object_unref (asked->session);
  g_object_unref (asked->message);
  g_clear_pointer (&asked->body, g_bytes_unref);
  g_free (asked);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjAsked, asked_free)

static void
bj_gateway_session_finalize (GObject *object)
{
  BjGatewaySession *self = BJ_GATEWAY_SESSION (object);

  g_clear_object (&self->upstream);
  g_clear_object (&self->server);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->relays, g_hash_table_unref);
  g_strfreev (self->allow);
  g_free (self->model);
  G_OBJECT_CLASS (bj_gateway_session_parent_class)->finalize (object);
}

static void
bj_gateway_session_class_init (BjGatewaySessionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_gateway_session_finalize;
  signals[TURN_FINISHED] = g_signal_new ("turn-finished", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                         NULL, G_TYPE_NONE, 2, G_TYPE_UINT, G_TYPE_POINTER);
}

static void
bj_gateway_session_init (BjGatewaySession *self)
{
  self->relays = g_hash_table_new (NULL, NULL);
  self->cancellable = g_cancellable_new ();
}

static void
answer_gerror (SoupServerMessage *message, const GError *error)
{
  if (g_error_matches (error, BJ_ERROR, BJ_ERROR_DENIED))
    bj_relay_answer_error (message, SOUP_STATUS_FORBIDDEN, error->message, "Denied");
  else if (g_error_matches (error, BJ_ERROR, BJ_ERROR_INVALID))
    bj_relay_answer_error (message, SOUP_STATUS_BAD_REQUEST, error->message, "Invalid");
  else
    bj_relay_answer_error (message, SOUP_STATUS_BAD_GATEWAY, error->message, "ModelUnreachable");
}

static void
on_relay_done (BjRelay *relay, const BjRelayFacts *facts, gpointer data)
{
  g_autoptr(BjGatewaySession) self = data;

  self->active--;
  g_hash_table_remove (self->relays, relay);
  if (g_str_equal (facts->path, "/api/chat"))
    g_signal_emit (self, signals[TURN_FINISHED], 0, ++self->turn, facts);
}

static void
start_relay (BjGatewaySession *self, SoupServerMessage *message, const char *method, const char *path, GBytes *body)
{
  BjRelay *relay;

  self->active++;
  relay = bj_relay_start (self->upstream, message, method, path, body, on_relay_done, g_object_ref (self));
  g_hash_table_add (self->relays, relay);
}

static void
chat_model_known (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(BjAsked) asked = data;
  BjGatewaySession *self = asked->session;
  BjModelInfo info = { 0 };
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) body = NULL;

  /* A server that cannot describe a model may still run it; one that does not answer cannot. */
  if (!bj_upstream_get_model_finish (BJ_UPSTREAM (source), result, &info, &error)
      && !g_error_matches (error, BJ_ERROR, BJ_ERROR_MODEL_UNREACHABLE))
    g_clear_error (&error);
  if (asked->finished)
    return;
  if (error == NULL)
    body = bj_chat_request_build (asked->body, self->model, info.context, &error);
  if (body == NULL)
    answer_gerror (asked->message, error);
  soup_server_message_unpause (asked->message);
  if (body != NULL)
    start_relay (self, asked->message, "POST", "/api/chat", body);
}

static void
start_chat (BjGatewaySession *self, SoupServerMessage *message, GBytes *body)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) checked = bj_chat_request_build (body, self->model, 0, &error);

  if (checked == NULL)
    answer_gerror (message, error);
  else
    bj_upstream_get_model_async (self->upstream, self->model, self->cancellable, chat_model_known,
                                 asked_new (self, message, body));
}

static void
start_show (BjGatewaySession *self, SoupServerMessage *message, GBytes *body)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) built = bj_show_request_build (body, self->model, &error);

  if (built == NULL)
    answer_gerror (message, error);
  else
    start_relay (self, message, "POST", "/api/show", built);
}

static void
start_version (BjGatewaySession *self, SoupServerMessage *message, GBytes *body)
{
  start_relay (self, message, "GET", "/api/version", NULL);
}

static void
tags_fetched (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr(BjAsked) asked = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) all = bj_upstream_fetch_finish (BJ_UPSTREAM (source), result, &error);
  g_autoptr(GBytes) some = NULL;

  if (asked->finished)
    return;
  if (all != NULL)
    some = bj_tags_filter (all, (const char *const *) asked->session->allow, &error);
  if (some == NULL)
    {
      g_autofree char *text = g_strdup (error->message);

      bj_relay_answer_error (asked->message, SOUP_STATUS_BAD_GATEWAY, text, "ModelUnreachable");
    }
  else
    {
      soup_server_message_set_status (asked->message, SOUP_STATUS_OK, NULL);
      soup_server_message_set_response (asked->message, "application/json", SOUP_MEMORY_COPY,
                                        g_bytes_get_data (some, NULL), g_bytes_get_size (some));
    }
  soup_server_message_unpause (asked->message);
}

static void
start_tags (BjGatewaySession *self, SoupServerMessage *message, GBytes *body)
{
  bj_upstream_fetch_async (self->upstream, "GET", "/api/tags", NULL, self->cancellable, tags_fetched,
                           asked_new (self, message, NULL));
}

static const struct
{
  const char *method;
  const char *path;
  void (*start) (BjGatewaySession *self, SoupServerMessage *message, GBytes *body);
} allowed[] = {
  { "POST", "/api/chat", start_chat },
  { "GET", "/api/version", start_version },
  { "GET", "/api/tags", start_tags },
  { "POST", "/api/show", start_show },
};

static gboolean
is_allowed (const char *method, const char *path, guint *which)
{
  for (guint i = 0; i < G_N_ELEMENTS (allowed); i++)
    if (g_str_equal (allowed[i].method, method) && g_str_equal (allowed[i].path, path))
      {
        *which = i;
        return TRUE;
      }
  return FALSE;
}

static void
refuse_big (BjGatewaySession *self, SoupServerMessage *message)
{
  g_autofree char *text = g_strdup_printf ("The request is larger than %" G_GSIZE_FORMAT " bytes", self->body_max);

  soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
  soup_message_headers_replace (soup_server_message_get_response_headers (message), "Connection", "close");
  bj_relay_answer_error (message, SOUP_STATUS_FORBIDDEN, text, "Limit");
}

static void
on_got_chunk (SoupServerMessage *message, GBytes *chunk, gpointer data)
{
  BjGatewaySession *self = data;
  SoupMessageBody *body = soup_server_message_get_request_body (message);

  if (soup_message_body_get_accumulate (body) && (gsize) body->length > self->body_max)
    refuse_big (self, message);
}

/* Called when the head of a request is there. A status that is set here stands; the body is then only drained. */
static void
on_request_head (SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer data)
{
  BjGatewaySession *self = data;
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  const char *method = soup_server_message_get_method (message);
  guint which;

  if (soup_message_headers_get_encoding (headers) == SOUP_ENCODING_CONTENT_LENGTH
      && (guint64) soup_message_headers_get_content_length (headers) > self->body_max)
    refuse_big (self, message);
  else if (!is_allowed (method, path, &which))
    {
      g_autofree char *text = g_strdup_printf ("%s %s is not allowed here", method, path);

      soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
      bj_relay_answer_error (message, SOUP_STATUS_FORBIDDEN, text, "Denied");
    }
  else if (self->active >= MAX_AT_ONCE)
    {
      soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
      bj_relay_answer_error (message, STATUS_TOO_MANY, "Too many requests at once", "Limit");
    }
  else
    g_signal_connect_object (message, "got-chunk", G_CALLBACK (on_got_chunk), self, 0);
}

static void
on_request (SoupServer *server, SoupServerMessage *message, const char *path, GHashTable *query, gpointer data)
{
  BjGatewaySession *self = data;
  g_autoptr(GBytes) body = NULL;
  guint which;

  if (soup_server_message_get_status (message) != 0)
    return;
  if (!is_allowed (soup_server_message_get_method (message), path, &which))
    return; /* cannot be: the head was refused */
  body = soup_message_body_flatten (soup_server_message_get_request_body (message));
  allowed[which].start (self, message, body);
}

static GSocket *
listener_socket (int fd, GError **error)
{
  g_autoptr(GSocket) socket = g_socket_new_from_fd (fd, error);

  if (socket == NULL)
    {
      close (fd);
      return NULL;
    }
  if (g_socket_get_family (socket) == G_SOCKET_FAMILY_UNIX)
    return g_steal_pointer (&socket);
  bj_error_set (error, BJ_ERROR_INVALID, "The session's listener must be a unix socket");
  return NULL;
}

BjGatewaySession *
bj_gateway_session_new (BjUpstream *upstream, int listener, const char *model, const char *const *allow,
                        gsize body_max, GError **error)
{
  g_autoptr(GSocket) socket = listener_socket (listener, error);
  g_autoptr(BjGatewaySession) self = NULL;

  if (socket == NULL)
    return NULL;
  self = g_object_new (BJ_TYPE_GATEWAY_SESSION, NULL);
  self->upstream = g_object_ref (upstream);
  self->model = g_strdup (model);
  self->allow = g_strdupv ((char **) allow);
  self->body_max = body_max;
  self->server = soup_server_new ("server-header", "belljar-gateway", NULL);
  soup_server_add_early_handler (self->server, NULL, on_request_head, self, NULL);
  soup_server_add_handler (self->server, NULL, on_request, self, NULL);
  if (!soup_server_listen_socket (self->server, socket, 0, error))
    return NULL;
  return g_steal_pointer (&self);
}

void
bj_gateway_session_close (BjGatewaySession *self)
{
  g_autoptr(GList) relays = g_hash_table_get_keys (self->relays);

  g_cancellable_cancel (self->cancellable);
  for (GList *l = relays; l != NULL; l = l->next)
    bj_relay_cancel (l->data);
  soup_server_remove_handler (self->server, NULL);
  soup_server_disconnect (self->server);
}
