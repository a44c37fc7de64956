/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-gateway.h"

#include "bj-dbus-gateway.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-gateway-session.h"
#include "bj-name.h"

#include <gio/gunixfdlist.h>

#define DEFAULT_BODY (32 * 1024 * 1024)
#define MAX_BODY (128 * 1024 * 1024)
#define DEFAULT_STALL 300
#define MAX_SESSIONS 1024
#define MAX_PROBES 64
#define MAX_ASKERS 1024

struct _BjGateway
{
  GObject parent_instance;
  BjDBusGateway *skeleton;
  BjUpstream *upstream; /* (nullable): not configured yet */
  char **allow;
  gsize body_max;
  GHashTable *sessions; /* (element-type utf8 BjGatewaySession): by id */
  GHashTable *probes;   /* (element-type utf8 BjProbing): that go on, by model; keys are theirs */
};

G_DEFINE_FINAL_TYPE (BjGateway, bj_gateway, G_TYPE_OBJECT)

/* What a session's signal needs to know. */
typedef struct
{
  BjDBusGateway *skeleton;
  char *id;
} BjTold;

static void
told_free (BjTold *told)
{
  g_object_unref (told->skeleton);
  g_free (told->id);
  g_free (told);
}

static void
bj_gateway_finalize (GObject *object)
{
  BjGateway *self = BJ_GATEWAY (object);

  if (self->skeleton != NULL)
    {
      g_signal_handlers_disconnect_by_data (self->skeleton, self);
      g_dbus_interface_skeleton_unexport (G_DBUS_INTERFACE_SKELETON (self->skeleton));
    }
  g_clear_object (&self->skeleton);
  g_clear_object (&self->upstream);
  g_clear_pointer (&self->sessions, g_hash_table_unref);
  g_clear_pointer (&self->probes, g_hash_table_unref);
  g_strfreev (self->allow);
  G_OBJECT_CLASS (bj_gateway_parent_class)->finalize (object);
}

static void
bj_gateway_class_init (BjGatewayClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_gateway_finalize;
}

static void
session_drop (gpointer data)
{
  BjGatewaySession *session = data;

  bj_gateway_session_close (session);
  g_object_unref (session);
}

static void
bj_gateway_init (BjGateway *self)
{
  self->sessions = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, session_drop);
  self->probes = g_hash_table_new (g_str_hash, g_str_equal);
  self->allow = g_new0 (char *, 1);
  self->body_max = DEFAULT_BODY;
}

static void
answer_error (GDBusMethodInvocation *invocation, const GError *error)
{
  g_dbus_method_invocation_take_error (invocation, bj_error_to_bus (error));
}

/* Configure */

static const struct
{
  const char *key;
  const char *type;
} options_known[] = { { "url", "s" }, { "allow", "as" }, { "body-bytes", "t" }, { "stall", "u" } };

static gboolean
check_options (GVariant *options, GError **error)
{
  GVariantIter iter;
  const char *key;
  GVariant *value;
  gboolean ok = TRUE;

  g_variant_iter_init (&iter, options);
  while (ok && g_variant_iter_next (&iter, "{&sv}", &key, &value))
    {
      ok = FALSE;
      for (guint i = 0; i < G_N_ELEMENTS (options_known); i++)
        if (g_str_equal (options_known[i].key, key)
            && g_variant_is_of_type (value, G_VARIANT_TYPE (options_known[i].type)))
          ok = TRUE;
      if (!ok)
        bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no option of the gateway, or not of type %s", key,
                      g_variant_get_type_string (value));
      g_variant_unref (value);
    }
  return ok;
}

static gboolean
configure (BjGateway *self, GVariant *options, GError **error)
{
  g_autoptr(BjUpstream) upstream = NULL;
  g_autofree const char **allow = NULL;
  const char *url = NULL;
  guint stall = DEFAULT_STALL;
  guint64 body = DEFAULT_BODY;

  if (!check_options (options, error))
    return FALSE;
  if (!g_variant_lookup (options, "url", "&s", &url))
    return bj_error_set (error, BJ_ERROR_INVALID, "The gateway needs a url");
  g_variant_lookup (options, "stall", "u", &stall);
  g_variant_lookup (options, "body-bytes", "t", &body);
  if (body == 0 || body > MAX_BODY)
    return bj_error_set (error, BJ_ERROR_INVALID, "body-bytes must be between 1 and %d", MAX_BODY);
  upstream = bj_upstream_new (url, stall, error);
  if (upstream == NULL)
    return FALSE;
  if (g_variant_lookup (options, "allow", "^a&s", &allow))
    {
      g_strfreev (self->allow);
      self->allow = g_strdupv ((char **) allow);
    }
  self->body_max = (gsize) body;
  g_set_object (&self->upstream, upstream);
  return TRUE;
}

static gboolean
handle_configure (BjDBusGateway *skeleton, GDBusMethodInvocation *invocation, GVariant *options, gpointer data)
{
  BjGateway *self = data;
  g_autoptr(GError) error = NULL;

  if (configure (self, options, &error))
    bj_dbus_gateway_complete_configure (skeleton, invocation);
  else
    answer_error (invocation, error);
  return TRUE;
}

/* Sessions */

static void
on_turn_finished (BjGatewaySession *session, guint turn, gpointer data, gpointer user_data)
{
  const BjRelayFacts *facts = data;
  const BjTold *told = user_data;
  GVariantDict dict;

  g_variant_dict_init (&dict, NULL);
  g_variant_dict_insert (&dict, "turn", "u", turn);
  g_variant_dict_insert (&dict, "path", "s", facts->path);
  g_variant_dict_insert (&dict, "status", "u", facts->status);
  g_variant_dict_insert (&dict, "request-bytes", "t", facts->request_bytes);
  g_variant_dict_insert (&dict, "request-sha256", "s", facts->request_sha256);
  g_variant_dict_insert (&dict, "response-bytes", "t", facts->response_bytes);
  g_variant_dict_insert (&dict, "response-sha256", "s", facts->response_sha256);
  g_variant_dict_insert (&dict, "duration", "d", facts->duration_s);
  g_variant_dict_insert (&dict, "first-byte", "d", facts->first_byte_s);
  g_variant_dict_insert (&dict, "error", "s", facts->error);
  bj_dbus_gateway_emit_turn_finished (told->skeleton, told->id, g_variant_dict_end (&dict));
}

static gboolean
check_session (BjGateway *self, const char *id, const char *model, GError **error)
{
  if (!bj_id_is_valid (id))
    return bj_error_set (error, BJ_ERROR_INVALID, "This is no session id");
  if (self->upstream == NULL)
    return bj_error_set (error, BJ_ERROR_FAILED, "The gateway has not been configured");
  if (g_hash_table_contains (self->sessions, id))
    return bj_error_set (error, BJ_ERROR_EXISTS, "Session %s is open already", id);
  if (g_hash_table_size (self->sessions) >= MAX_SESSIONS)
    return bj_error_set (error, BJ_ERROR_LIMIT, "Too many sessions are open");
  if (!bj_model_name_in ((const char *const *) self->allow, model))
    return bj_error_set (error, BJ_ERROR_DENIED, "The model “%s” is not in [model] allow", model);
  return TRUE;
}

static gboolean
open_session (BjGateway *self, const char *id, int listener, const char *model, GError **error)
{
  g_auto(BjFd) fd = listener;
  BjGatewaySession *session;
  BjTold *told;

  if (!check_session (self, id, model, error))
    return FALSE;
  session = bj_gateway_session_new (self->upstream, g_steal_fd (&fd), model, (const char *const *) self->allow,
                                    self->body_max, error);
  if (session == NULL)
    return FALSE;
  told = g_new0 (BjTold, 1);
  told->skeleton = g_object_ref (self->skeleton);
  told->id = g_strdup (id);
  g_signal_connect_data (session, "turn-finished", G_CALLBACK (on_turn_finished), told,
                         (GClosureNotify) (GCallback) told_free, 0);
  g_hash_table_insert (self->sessions, g_strdup (id), session);
  return TRUE;
}

static gboolean
handle_open_session (BjDBusGateway *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, const char *id,
                     GVariant *listener, const char *model, gpointer data)
{
  g_autoptr(GError) error = NULL;
  int fd = bj_fd_take (fds, g_variant_get_handle (listener), &error);

  if (error == NULL && open_session (BJ_GATEWAY (data), id, fd, model, &error))
    bj_dbus_gateway_complete_open_session (skeleton, invocation, NULL);
  else
    answer_error (invocation, error);
  return TRUE;
}

static gboolean
handle_close_session (BjDBusGateway *skeleton, GDBusMethodInvocation *invocation, const char *id, gpointer data)
{
  BjGateway *self = data;

  if (g_hash_table_remove (self->sessions, id))
    bj_dbus_gateway_complete_close_session (skeleton, invocation);
  else
    g_dbus_method_invocation_return_error (invocation, BJ_ERROR, BJ_ERROR_NOT_FOUND, "There is no such session");
  return TRUE;
}

/* Probe */

/* What goes on for all that ask for one model: however many they are, the model server is asked once. */
typedef struct
{
  BjGateway *gateway;
  char *model;
  GPtrArray *waiting; /* (element-type GDBusMethodInvocation) */
} BjProbing;

static void
probing_free (BjProbing *probing)
{
  g_ptr_array_unref (probing->waiting);
  g_object_unref (probing->gateway);
  g_free (probing->model);
  g_free (probing);
}

static void
probed (GObject *source, GAsyncResult *result, gpointer data)
{
  BjProbing *probing = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) info = bj_upstream_probe_finish (BJ_UPSTREAM (source), result, &error);

  g_hash_table_remove (probing->gateway->probes, probing->model);
  for (guint i = 0; i < probing->waiting->len; i++)
    if (info != NULL)
      g_dbus_method_invocation_return_value (g_ptr_array_index (probing->waiting, i), g_variant_new ("(@a{sv})", info));
    else
      answer_error (g_ptr_array_index (probing->waiting, i), error);
  probing_free (probing);
}

static void
start_probe (BjGateway *self, const char *model, GDBusMethodInvocation *invocation)
{
  BjProbing *probing = g_new0 (BjProbing, 1);

  probing->gateway = g_object_ref (self);
  probing->model = g_strdup (model);
  probing->waiting = g_ptr_array_new ();
  g_ptr_array_add (probing->waiting, invocation);
  g_hash_table_insert (self->probes, probing->model, probing);
  bj_upstream_probe_async (self->upstream, model, probed, probing);
}

static gboolean
handle_probe (BjDBusGateway *skeleton, GDBusMethodInvocation *invocation, const char *model, gpointer data)
{
  BjGateway *self = data;
  BjProbing *probing = g_hash_table_lookup (self->probes, model);

  if (self->upstream == NULL)
    g_dbus_method_invocation_return_error (invocation, BJ_ERROR, BJ_ERROR_FAILED,
                                           "The gateway has not been configured");
  else if (probing == NULL && g_hash_table_size (self->probes) >= MAX_PROBES)
    g_dbus_method_invocation_return_error (invocation, BJ_ERROR, BJ_ERROR_LIMIT,
                                           "%d models are being asked for already", MAX_PROBES);
  else if (probing == NULL)
    start_probe (self, model, invocation);
  else if (probing->waiting->len >= MAX_ASKERS)
    g_dbus_method_invocation_return_error (invocation, BJ_ERROR, BJ_ERROR_LIMIT,
                                           "%d calls wait for an answer about this model already", MAX_ASKERS);
  else
    g_ptr_array_add (probing->waiting, invocation);
  return TRUE;
}

BjGateway *
bj_gateway_new (GDBusConnection *connection, GError **error)
{
  g_autoptr(BjGateway) self = g_object_new (BJ_TYPE_GATEWAY, NULL);

  self->skeleton = bj_dbus_gateway_skeleton_new ();
  g_signal_connect (self->skeleton, "handle-configure", G_CALLBACK (handle_configure), self);
  g_signal_connect (self->skeleton, "handle-open-session", G_CALLBACK (handle_open_session), self);
  g_signal_connect (self->skeleton, "handle-close-session", G_CALLBACK (handle_close_session), self);
  g_signal_connect (self->skeleton, "handle-probe", G_CALLBACK (handle_probe), self);
  if (!g_dbus_interface_skeleton_export (G_DBUS_INTERFACE_SKELETON (self->skeleton), connection, BJ_GATEWAY_PATH,
                                         error))
    return NULL;
  return g_steal_pointer (&self);
}
