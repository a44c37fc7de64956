/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-relay.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define CHUNK 16384
#define TAIL 4096

struct _BjRelay
{
  BjUpstream *upstream;
  SoupServerMessage *agent;
  SoupMessage *request;
  GInputStream *stream; /* (nullable): the answer */
  GCancellable *cancellable;
  GSource *hangup; /* (nullable): watches the agent's end */
  guint stall_id;
  gulong wrote_id, finished_id, disconnected_id;
  char *path;
  guint64 request_bytes, response_bytes;
  char *request_sha256;
  GChecksum *response_sum;
  GString *tail; /* the last bytes that went through, at most TAIL */
  gint64 started, first_byte;
  guint status; /* what the model server answered with; 0 before */
  char *reason; /* (nullable): why we cancelled it ourselves */
  gboolean agent_finished; /* libsoup is done with the agent's request, one way or the other */
  gboolean answering; /* the head of the answer is out */
  gboolean left;      /* the agent is gone, with all of its answer */
  gboolean pending;   /* an asynchronous call of ours is on its way */
  BjRelayDone done;
  gpointer user_data;
};

static void
relay_free (BjRelay *self)
{
  if (self->hangup != NULL)
    g_source_destroy (self->hangup);
  g_clear_pointer (&self->hangup, g_source_unref);
  g_clear_handle_id (&self->stall_id, g_source_remove);
  g_clear_signal_handler (&self->wrote_id, self->agent);
  g_clear_signal_handler (&self->finished_id, self->agent);
  g_clear_signal_handler (&self->disconnected_id, self->agent);
  g_clear_object (&self->upstream);
  g_clear_object (&self->agent);
  g_clear_object (&self->request);
  g_clear_object (&self->stream);
  g_clear_object (&self->cancellable);
  g_clear_pointer (&self->response_sum, g_checksum_free);
  g_string_free (self->tail, TRUE);
  g_free (self->request_sha256);
  g_free (self->path);
  g_free (self->reason);
  g_free (self);
}

static char *
error_json (const char *text, const char *code)
{
  g_autoptr(JsonObject) object = json_object_new ();

  json_object_set_string_member (object, "error", text);
  if (code != NULL)
    json_object_set_string_member (object, "code", code);
  return bj_json_to_string (object);
}

void
bj_relay_answer_error (SoupServerMessage *message, guint status, const char *text, const char *code)
{
  char *body = error_json (text, code);

  soup_server_message_set_status (message, status, NULL);
  soup_server_message_set_response (message, "application/json", SOUP_MEMORY_TAKE, body, strlen (body));
}

static void
tell (BjRelay *self, guint status, const char *error)
{
  BjRelayFacts facts = { 0 };

  facts.path = self->path;
  facts.status = status;
  facts.request_bytes = self->request_bytes;
  facts.request_sha256 = self->request_sha256;
  facts.response_bytes = self->response_bytes;
  facts.response_sha256 = g_checksum_get_string (self->response_sum);
  facts.duration_s = (double) (g_get_monotonic_time () - self->started) / G_USEC_PER_SEC;
  if (self->first_byte > 0)
    facts.first_byte_s = (double) (self->first_byte - self->started) / G_USEC_PER_SEC;
  facts.error = error;
  self->done (self, &facts, self->user_data);
}

static void
append (BjRelay *self, const char *text)
{
  soup_message_body_append (soup_server_message_get_response_body (self->agent), SOUP_MEMORY_COPY, text, strlen (text));
}

/* The last thing the agent gets after the stream broke: a line it can read, in the stream's own form. */
static void
append_error_line (BjRelay *self, const char *text)
{
  g_autofree char *json = error_json (text, "ModelUnreachable");
  g_autofree char *line = g_strconcat (g_str_has_suffix (self->tail->str, "\n") ? "" : "\n", json, "\n", NULL);

  append (self, line);
}

/* Ends the exchange; @error: (nullable): what went wrong. */
static void
finish (BjRelay *self, guint status, const char *error)
{
  g_autofree char *refused = NULL;

  if (self->answering)
    status = self->status;
  if (error == NULL && status >= 400)
    refused = g_strdup_printf ("The model server answered with status %u", status);
  tell (self, status, error ? error : refused ? refused : "");
  if (!self->agent_finished && self->answering)
    {
      if (error != NULL)
        append_error_line (self, error);
      soup_message_body_complete (soup_server_message_get_response_body (self->agent));
    }
  else if (!self->agent_finished)
    bj_relay_answer_error (self->agent, status, error, "ModelUnreachable");
  if (!self->agent_finished)
    soup_server_message_unpause (self->agent);
  relay_free (self);
}

static void
finish_error (BjRelay *self, const GError *error)
{
  g_autoptr(GError) ours = NULL;

  if (self->left || self->reason != NULL)
    {
      finish (self, SOUP_STATUS_GATEWAY_TIMEOUT, self->left ? NULL : self->reason);
      return;
    }
  ours = bj_upstream_describe (self->upstream, error);
  finish (self, SOUP_STATUS_BAD_GATEWAY, ours->message);
}

/*
 * Whether an answer that came to its end says so itself. libsoup does not tell a stream that was cut off between two
 * pieces from one that ended. What a model says cannot look like this: its quotes are escaped.
 */
static gboolean
is_whole (BjRelay *self)
{
  if (!g_str_equal (self->path, "/api/chat") || soup_message_get_status (self->request) != SOUP_STATUS_OK)
    return TRUE;
  return g_regex_match_simple ("\"done\"\\s*:\\s*true|\"error\"\\s*:", self->tail->str, G_REGEX_RAW, 0);
}

/* Whether the turn's last line has come: then there is nothing to wait for, and the turn is told before the agent goes on. */
static gboolean
has_last_line (BjRelay *self)
{
  g_autoptr(JsonObject) object = NULL;
  gsize end = self->tail->len;
  gsize start;

  while (end > 0 && g_ascii_isspace (self->tail->str[end - 1]))
    end--;
  for (start = end; start > 0 && self->tail->str[start - 1] != '\n'; start--)
    ;
  if (!g_str_equal (self->path, "/api/chat") || self->status != SOUP_STATUS_OK
      || (start == 0 && self->response_bytes > self->tail->len))
    return FALSE;
  object = bj_json_parse_object (self->tail->str + start, (gssize) (end - start), NULL);
  return object != NULL && bj_json_get_bool (object, "done", FALSE);
}

/* Gives up; what is on its way ends with an error and then finishes. */
static void
give_up (BjRelay *self, const char *reason)
{
  if (self->reason == NULL)
    self->reason = g_strdup (reason);
  g_cancellable_cancel (self->cancellable);
  if (!self->pending)
    finish (self, SOUP_STATUS_GATEWAY_TIMEOUT, self->reason);
}

/* Whoever has all of the answer may leave. */
static void
agent_left (BjRelay *self)
{
  gboolean is_turn = self->answering && self->status == SOUP_STATUS_OK && g_str_equal (self->path, "/api/chat");

  if (!is_turn || !is_whole (self))
    {
      give_up (self, "The agent closed its connection");
      return;
    }
  g_cancellable_cancel (self->cancellable);
  self->left = TRUE;
  if (!self->pending)
    finish (self, 0, NULL);
}

static gboolean
on_stalled (gpointer data)
{
  BjRelay *self = data;
  g_autofree char *reason = NULL;

  self->stall_id = 0;
  if (self->pending)
    reason = g_strdup_printf ("The model server %s sent nothing for %u s", bj_upstream_get_label (self->upstream),
                              bj_upstream_get_stall (self->upstream));
  else
    reason = g_strdup_printf ("The agent took nothing for %u s", bj_upstream_get_stall (self->upstream));
  give_up (self, reason);
  return G_SOURCE_REMOVE;
}

static void
restart_stall (BjRelay *self)
{
  g_clear_handle_id (&self->stall_id, g_source_remove);
  self->stall_id = g_timeout_add_seconds (bj_upstream_get_stall (self->upstream), on_stalled, self);
}

static void
on_agent_finished (SoupServerMessage *message, gpointer data)
{
  BjRelay *self = data;

  self->agent_finished = TRUE;
  agent_left (self);
}

/* A paused message does not notice by itself that nobody waits for it any more. */
static gboolean
on_agent_hangup (GSocket *socket, GIOCondition condition, gpointer data)
{
  agent_left (data);
  return G_SOURCE_REMOVE;
}

static void
remember_tail (BjRelay *self, const char *bytes, gsize size)
{
  gsize kept = MIN (size, TAIL);

  g_string_append_len (self->tail, bytes + size - kept, (gssize) kept);
  if (self->tail->len > TAIL)
    g_string_erase (self->tail, 0, (gssize) (self->tail->len - TAIL));
}

static void read_next (BjRelay *self);

static void
on_wrote_chunk (SoupServerMessage *message, gpointer data)
{
  BjRelay *self = data;

  if (!self->pending)
    read_next (self);
}

static void
on_read (GObject *source, GAsyncResult *result, gpointer data)
{
  BjRelay *self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) chunk = g_input_stream_read_bytes_finish (G_INPUT_STREAM (source), result, &error);
  gsize size = chunk ? g_bytes_get_size (chunk) : 0;
  const char *bytes;

  self->pending = FALSE;
  if (chunk == NULL)
    {
      finish_error (self, error);
      return;
    }
  if (size == 0)
    {
      finish (self, 0, is_whole (self) ? NULL : "The model server ended its answer in the middle");
      return;
    }
  bytes = g_bytes_get_data (chunk, NULL);
  if (self->first_byte == 0)
    self->first_byte = g_get_monotonic_time ();
  self->response_bytes += size;
  remember_tail (self, bytes, size);
  g_checksum_update (self->response_sum, (const guchar *) bytes, (gssize) size);
  restart_stall (self);
  soup_message_body_append_bytes (soup_server_message_get_response_body (self->agent), chunk);
  if (has_last_line (self))
    {
      finish (self, 0, NULL);
      return;
    }
  soup_server_message_unpause (self->agent);
}

static void
read_next (BjRelay *self)
{
  self->pending = TRUE;
  restart_stall (self);
  g_input_stream_read_bytes_async (self->stream, CHUNK, G_PRIORITY_DEFAULT, self->cancellable, on_read, self);
}

static void
begin_answer (BjRelay *self)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (self->agent);
  const char *type = soup_message_headers_get_content_type (soup_message_get_response_headers (self->request), NULL);

  self->status = soup_message_get_status (self->request);
  soup_server_message_set_status (self->agent, self->status, NULL);
  soup_message_headers_set_encoding (headers, SOUP_ENCODING_CHUNKED);
  soup_message_headers_replace (headers, "Content-Type",
                                g_strcmp0 (type, "application/x-ndjson") == 0 ? type : "application/json");
  soup_message_body_set_accumulate (soup_server_message_get_response_body (self->agent), FALSE);
  self->answering = TRUE;
  self->wrote_id = g_signal_connect (self->agent, "wrote-chunk", G_CALLBACK (on_wrote_chunk), self);
  read_next (self);
}

static void
on_sent (GObject *source, GAsyncResult *result, gpointer data)
{
  BjRelay *self = data;
  g_autoptr(GError) error = NULL;
  guint status;

  self->pending = FALSE;
  self->stream = soup_session_send_finish (SOUP_SESSION (source), result, &error);
  if (self->stream == NULL)
    {
      finish_error (self, error);
      return;
    }
  status = soup_message_get_status (self->request);
  if (SOUP_STATUS_IS_REDIRECTION (status) || SOUP_STATUS_IS_INFORMATIONAL (status))
    {
      finish (self, SOUP_STATUS_BAD_GATEWAY, "The model server answered with a redirect, which is not followed");
      return;
    }
  begin_answer (self);
}

static void
watch_agent (BjRelay *self)
{
  GSocket *socket = soup_server_message_get_socket (self->agent);

  self->finished_id = g_signal_connect (self->agent, "finished", G_CALLBACK (on_agent_finished), self);
  self->disconnected_id = g_signal_connect (self->agent, "disconnected", G_CALLBACK (on_agent_finished), self);
  if (socket == NULL)
    return;
  self->hangup = g_socket_create_source (socket, G_IO_HUP, NULL);
  g_source_set_callback (self->hangup, G_SOURCE_FUNC (on_agent_hangup), self, NULL);
  g_source_attach (self->hangup, g_main_context_get_thread_default ());
}

BjRelay *
bj_relay_start (BjUpstream *upstream, SoupServerMessage *message, const char *method, const char *path, GBytes *body,
                BjRelayDone done, gpointer user_data)
{
  BjRelay *self = g_new0 (BjRelay, 1);
  g_autoptr(GBytes) sent = body ? g_bytes_ref (body) : g_bytes_new (NULL, 0);

  self->upstream = g_object_ref (upstream);
  self->agent = g_object_ref (message);
  self->cancellable = g_cancellable_new ();
  self->path = g_strdup (path);
  self->done = done;
  self->user_data = user_data;
  self->started = g_get_monotonic_time ();
  self->tail = g_string_new (NULL);
  self->response_sum = g_checksum_new (G_CHECKSUM_SHA256);
  self->request_bytes = g_bytes_get_size (sent);
  self->request_sha256 = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, sent);
  self->request = bj_upstream_new_message (upstream, method, path, body);
  soup_server_message_pause (message);
  watch_agent (self);
  restart_stall (self);
  self->pending = TRUE;
  soup_session_send_async (bj_upstream_get_session (upstream), self->request, G_PRIORITY_DEFAULT, self->cancellable,
                           on_sent, self);
  return self;
}

void
bj_relay_cancel (BjRelay *self)
{
  give_up (self, "The session is over");
}
