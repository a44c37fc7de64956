/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-model-client.h"

#include "bj-error.h"
#include "bj-json.h"
#include "bj-ndjson.h"

#include <gio/gunixsocketaddress.h>
#include <libsoup/soup.h>
#include <string.h>

#define CHUNK 16384
#define MAX_LINE (1024 * 1024)
#define MAX_ERROR_BODY 65536

struct _BjModelClient
{
  SoupSession *session;
};

BjModelClient *
bj_model_client_new (const char *socket_path, guint stall_s)
{
  BjModelClient *self = g_new0 (BjModelClient, 1);
  g_autoptr(GSocketAddress) address = g_unix_socket_address_new (socket_path);

  self->session = soup_session_new_with_options ("remote-connectable", address, "timeout", stall_s, NULL);
  soup_session_set_proxy_resolver (self->session, NULL);
  return self;
}

void
bj_model_client_free (BjModelClient *self)
{
  g_object_unref (self->session);
  g_free (self);
}

static gboolean
set_foreign (GError **error, const GError *why)
{
  if (g_error_matches (why, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
    return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The model's answer stalled");
  return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The gateway does not answer: %s", why->message);
}

static GInputStream *
send_request (BjModelClient *self, SoupMessage *message, JsonObject *request, GError **error)
{
  g_autofree char *text = bj_json_to_string (request);
  g_autoptr(GBytes) body = g_bytes_new (text, strlen (text));
  g_autoptr(GError) why = NULL;
  GInputStream *stream;

  soup_message_set_flags (message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_NEW_CONNECTION);
  soup_message_headers_replace (soup_message_get_request_headers (message), "Connection", "close");
  soup_message_set_request_body_from_bytes (message, "application/json", body);
  stream = soup_session_send (self->session, message, NULL, &why);
  if (stream == NULL)
    set_foreign (error, why);
  return stream;
}

/* What a status other than 200 means. */
static gboolean
read_refusal (SoupMessage *message, GInputStream *stream, GError **error)
{
  guint status = soup_message_get_status (message);
  g_autofree char *buffer = g_malloc0 (MAX_ERROR_BODY + 1);
  g_autofree char *text = NULL;
  g_autoptr(JsonObject) object = NULL;
  const char *said = NULL;
  gsize length = 0;

  g_input_stream_read_all (stream, buffer, MAX_ERROR_BODY, &length, NULL, NULL);
  object = bj_json_parse_object (buffer, (gssize) length, NULL);
  said = object ? bj_json_get_string (object, "error") : NULL;
  text = g_utf8_make_valid (said ? said : "no reason given", -1);
  if (status == SOUP_STATUS_FORBIDDEN)
    return bj_error_set (error, BJ_ERROR_DENIED, "The gateway refused: %.1000s", text);
  if (status >= 400 && status < 500 && status != 429 && status != SOUP_STATUS_REQUEST_TIMEOUT)
    return bj_error_set (error, BJ_ERROR_INVALID, "The model server answered with status %u: %.1000s", status, text);
  return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "Status %u: %.2000s", status, text);
}

static gboolean
on_line (const char *line, gsize length, gpointer answer, GError **error)
{
  return bj_answer_push_line (answer, line, length, error);
}

static gboolean
read_answer (GInputStream *stream, BjAnswer *answer, guint deadline_s, GError **error)
{
  g_autoptr(BjNdjson) lines = bj_ndjson_new (MAX_LINE, on_line, answer);
  gint64 deadline = g_get_monotonic_time () + (gint64) deadline_s * G_USEC_PER_SEC;
  char buffer[CHUNK];

  while (!answer->done && !answer->full)
    {
      g_autoptr(GError) why = NULL;
      gssize got = g_input_stream_read (stream, buffer, sizeof buffer, NULL, &why);

      if (got < 0)
        return set_foreign (error, why);
      if (got == 0 && !bj_ndjson_end (lines, error))
        return FALSE;
      if (got == 0 && !answer->done)
        return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The model's answer ended in the middle");
      if (!bj_ndjson_push (lines, buffer, (gsize) got, error))
        return FALSE;
      if (g_get_monotonic_time () > deadline)
        return bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE, "The model's answer took longer than %u s", deadline_s);
    }
  return TRUE;
}

gboolean
bj_model_client_chat (BjModelClient *self, JsonObject *request, BjAnswer *answer, guint deadline_s, GError **error)
{
  g_autoptr(SoupMessage) message = soup_message_new ("POST", "http://gateway/api/chat");
  g_autoptr(GInputStream) stream = send_request (self, message, request, error);
  gboolean ok;

  if (stream == NULL)
    return FALSE;
  if (soup_message_get_status (message) == SOUP_STATUS_OK)
    ok = read_answer (stream, answer, deadline_s, error);
  else
    ok = read_refusal (message, stream, error);
  g_input_stream_close (stream, NULL, NULL);
  soup_session_abort (self->session); /* an answer that was not read to its end must not go on */
  return ok;
}
