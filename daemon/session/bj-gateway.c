/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-gateway"

#include "bj-gateway.h"

#include "bj-child.h"
#include "bj-dbus-gateway.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixfdlist.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define OBJECT_PATH "/org/belljar1/gateway"
#define CALL_TIMEOUT_MS 15000
#define BODY_MAX (64ull * 1024 * 1024)
#define STALL_S 120
#define SOCKET_NAME "model.sock"

struct _BjGateway
{
  BjContext *context; /* (not owned) */
  BjGatewayTurnFunc turn;
  gpointer user_data;
  GMutex lock;
  BjChild *child;
  BjDBusGateway *proxy;
};

BjGateway *
bj_gateway_new (BjContext *context, BjGatewayTurnFunc turn, gpointer user_data)
{
  BjGateway *self = g_new0 (BjGateway, 1);

  self->context = context;
  self->turn = turn;
  self->user_data = user_data;
  g_mutex_init (&self->lock);
  return self;
}

static void
on_turn (BjDBusGateway *proxy, const char *session, GVariant *info, gpointer data)
{
  BjGateway *self = data;

  self->turn (session, info, self->user_data);
}

static void
drop (BjGateway *self)
{
  if (self->proxy != NULL)
    g_signal_handlers_disconnect_by_data (self->proxy, self);
  g_clear_object (&self->proxy);
  g_clear_pointer (&self->child, bj_child_free);
}

void
bj_gateway_free (BjGateway *self)
{
  drop (self);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static GVariant *
make_settings (const BjConfig *config)
{
  g_auto(GVariantBuilder) options = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  g_autoptr(GPtrArray) allow = g_ptr_array_new ();

  if (*config->model_name != '\0')
    g_ptr_array_add (allow, config->model_name);
  for (char **model = config->model_allow; model != NULL && *model != NULL; model++)
    g_ptr_array_add (allow, *model);
  g_variant_builder_add (&options, "{sv}", "url", g_variant_new_string (config->model_url));
  g_variant_builder_add (&options, "{sv}", "allow",
                         g_variant_new_strv ((const char *const *) allow->pdata, (gssize) allow->len));
  g_variant_builder_add (&options, "{sv}", "body-bytes", g_variant_new_uint64 (BODY_MAX));
  g_variant_builder_add (&options, "{sv}", "stall", g_variant_new_uint32 (STALL_S));
  return g_variant_builder_end (&options);
}

static gboolean
start (BjGateway *self, GError **error)
{
  g_autofree char *program = bj_context_dup_program (self->context, "belljar-gateway");
  const char *argv[] = { program, NULL };
  const uid_t uid = BJ_GATEWAY_UID;

  self->child = bj_child_start (argv, geteuid () == 0 ? &uid : NULL, -1, error);
  if (self->child == NULL)
    return FALSE;
  g_dbus_connection_start_message_processing (bj_child_get_connection (self->child));
  self->proxy = bj_dbus_gateway_proxy_new_sync (bj_child_get_connection (self->child),
                                                G_DBUS_PROXY_FLAGS_DO_NOT_LOAD_PROPERTIES, NULL, OBJECT_PATH, NULL, error);
  if (self->proxy == NULL)
    return FALSE;
  g_dbus_proxy_set_default_timeout (G_DBUS_PROXY (self->proxy), CALL_TIMEOUT_MS);
  g_signal_connect (self->proxy, "turn-finished", G_CALLBACK (on_turn), self);
  return bj_dbus_gateway_call_configure_sync (self->proxy, make_settings (self->context->config),
                                              NULL, error);
}

/* Returns: (transfer full): the proxy of a running gateway */
static BjDBusGateway *
ensure (BjGateway *self, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->child != NULL && !bj_child_is_running (self->child))
    {
      g_warning ("The gateway to the model has died; starting it again");
      drop (self);
    }
  if (self->proxy == NULL && !start (self, error))
    {
      drop (self);
      g_prefix_error (error, "The gateway to the model does not start: ");
      return NULL;
    }
  return g_object_ref (self->proxy);
}

static int
listen_at (const char *path, uid_t uid, GError **error)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  g_auto(BjFd) fd = -1;

  if (strlen (path) >= sizeof address.sun_path)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The socket path %s is longer than %zu bytes", path,
                    sizeof address.sun_path - 1);
      return -1;
    }
  strncpy (address.sun_path, path, sizeof address.sun_path - 1);
  fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind (fd, (const struct sockaddr *) &address, sizeof address) < 0 || chmod (path, 0600) < 0
      || listen (fd, 8) < 0)
    {
      bj_fd_set_io_error (error, errno, "Listening at %s", path);
      return -1;
    }
  if (geteuid () == 0 && lchown (path, uid, uid) < 0)
    {
      bj_fd_set_io_error (error, errno, "Handing %s to the agent", path);
      return -1;
    }
  return g_steal_fd (&fd);
}

int
bj_gateway_open_session (BjGateway *self, const char *session, const char *model, const char *directory, uid_t uid,
                         GError **error)
{
  g_autoptr(BjDBusGateway) proxy = ensure (self, error);
  g_autofree char *path = g_build_filename (directory, SOCKET_NAME, NULL);
  g_autoptr(GUnixFDList) fds = g_unix_fd_list_new ();
  g_auto(BjFd) listener = -1;
  int handle, path_fd;

  if (proxy == NULL)
    return -1;
  listener = listen_at (path, uid, error);
  if (listener < 0)
    return -1;
  handle = g_unix_fd_list_append (fds, listener, error);
  if (handle < 0
      || !bj_dbus_gateway_call_open_session_sync (proxy, session, g_variant_new_handle (handle), model,
                                                  fds, NULL, NULL, error))
    return -1;
  path_fd = open (path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (path_fd < 0)
    bj_fd_set_io_error (error, errno, "Opening %s", path);
  return path_fd;
}

void
bj_gateway_close_session (BjGateway *self, const char *session)
{
  g_autoptr(BjDBusGateway) proxy = NULL;
  g_autoptr(GError) error = NULL;

  g_mutex_lock (&self->lock);
  g_set_object (&proxy, self->proxy);
  g_mutex_unlock (&self->lock);
  if (proxy != NULL
      && !bj_dbus_gateway_call_close_session_sync (proxy, session, NULL, &error))
    g_message ("Closing the gateway's session %s: %s", session, error->message);
}

GVariant *
bj_gateway_ask (BjGateway *self, const char *model, GError **error)
{
  g_autoptr(BjDBusGateway) proxy = ensure (self, error);
  GVariant *info = NULL;

  if (proxy != NULL && !bj_dbus_gateway_call_probe_sync (proxy, model, &info, NULL, error))
    g_prefix_error (error, "Asking the gateway: ");
  return info;
}

GVariant *
bj_gateway_probe (BjGateway *self, const char *model, GError **error)
{
  g_autoptr(GVariant) info = bj_gateway_ask (self, model, error);
  const char *reason = "";
  gboolean reachable = FALSE;
  gboolean found = TRUE;

  if (info == NULL)
    return NULL;
  g_variant_lookup (info, "reachable", "b", &reachable);
  g_variant_lookup (info, "found", "b", &found);
  g_variant_lookup (info, "error", "&s", &reason);
  if (!reachable)
    bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE,
                  "%s (is Ollama running? See [model] url in belljar.conf)", reason);
  else if (*model != '\0' && !found)
    bj_error_set (error, BJ_ERROR_MODEL_UNREACHABLE,
                  "The model server at %s has no model “%s”: run “ollama pull %s” there, or set [model] name",
                  self->context->config->model_url, model, model);
  else
    return g_steal_pointer (&info);
  return NULL;
}
