/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bj-client.h"

#include "bj-bus.h"
#include "bj-error.h"

#include <stdlib.h>
#include <string.h>

struct _BjClient
{
  GObject parent_instance;
  GDBusObjectManager *objects;
  BjDBusManager *manager;
};

G_DEFINE_TYPE (BjClient, bj_client, G_TYPE_OBJECT)

static void
bj_client_dispose (GObject *object)
{
  BjClient *self = BJ_CLIENT (object);

  g_clear_object (&self->manager);
  g_clear_object (&self->objects);
  G_OBJECT_CLASS (bj_client_parent_class)->dispose (object);
}

static void
bj_client_class_init (BjClientClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = bj_client_dispose;
}

static void
bj_client_init (BjClient *self)
{
}

static GType
get_proxy_type (GDBusObjectManagerClient *manager, const char *path, const char *interface, gpointer user_data)
{
  const struct
  {
    const char *interface;
    GType type;
  } types[] = {
    { "org.belljar1.Manager", BJ_DBUS_TYPE_MANAGER_PROXY }, { "org.belljar1.Session", BJ_DBUS_TYPE_SESSION_PROXY },
    { "org.belljar1.Image", BJ_DBUS_TYPE_IMAGE_PROXY },     { "org.belljar1.Project", BJ_DBUS_TYPE_PROJECT_PROXY },
    { "org.belljar1.Job", BJ_DBUS_TYPE_JOB_PROXY },
  };

  if (interface == NULL)
    return G_TYPE_DBUS_OBJECT_PROXY;
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (g_str_equal (types[i].interface, interface))
      return types[i].type;
  return G_TYPE_DBUS_PROXY;
}

static gboolean
set_not_running (GError **error)
{
  return bj_error_set (error, BJ_ERROR_FAILED,
                       "belljard is not running on this bus: start it as root (/usr/libexec/belljard once it is installed), or "
                       "point BELLJAR_BUS at the bus where it runs");
}

/* What another side or the bus said becomes ours, without the bus's own prefix. */
static void
convert_error (GError **error)
{
  g_autoptr(GError) remote = g_steal_pointer (error);
  g_autofree char *name = g_dbus_error_get_remote_error (remote);

  g_dbus_error_strip_remote_error (remote);
  if (remote->domain == BJ_ERROR)
    *error = g_steal_pointer (&remote);
  else if (name != NULL && g_str_has_prefix (name, "org.belljar1.Error."))
    bj_error_set (error, bj_error_code_from_name (name, BJ_ERROR_FAILED), "%s", remote->message);
  else if (g_error_matches (remote, G_DBUS_ERROR, G_DBUS_ERROR_SERVICE_UNKNOWN)
           || g_error_matches (remote, G_DBUS_ERROR, G_DBUS_ERROR_NAME_HAS_NO_OWNER))
    set_not_running (error);
  else if (g_error_matches (remote, G_DBUS_ERROR, G_DBUS_ERROR_NO_REPLY)
           || g_error_matches (remote, G_IO_ERROR, G_IO_ERROR_CLOSED))
    bj_error_set (error, BJ_ERROR_FAILED, "belljard went away while it worked on this; see its log for why");
  else if (g_error_matches (remote, G_IO_ERROR, G_IO_ERROR_TIMED_OUT)
           || g_error_matches (remote, G_DBUS_ERROR, G_DBUS_ERROR_TIMEOUT))
    bj_error_set (error, BJ_ERROR_FAILED, "belljard did not answer in time");
  else if (g_strcmp0 (name, "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired") == 0)
    bj_error_set (error, BJ_ERROR_AUTH_NEEDED, "%s", remote->message);
  else if (g_error_matches (remote, G_DBUS_ERROR, G_DBUS_ERROR_ACCESS_DENIED))
    bj_error_set (error, BJ_ERROR_DENIED, "%s", remote->message);
  else
    *error = bj_error_to_bus (remote);
}

static gboolean
load_objects (BjClient *self, GDBusConnection *connection, GCancellable *cancellable, GError **error)
{
  g_autofree char *owner = NULL;

  self->objects = g_dbus_object_manager_client_new_sync (connection, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE,
                                                         BJ_BUS_NAME, BJ_BUS_ROOT, get_proxy_type, NULL, NULL,
                                                         cancellable, error);
  if (self->objects == NULL)
    {
      convert_error (error);
      return FALSE;
    }
  owner = g_dbus_object_manager_client_get_name_owner (G_DBUS_OBJECT_MANAGER_CLIENT (self->objects));
  if (owner == NULL)
    return set_not_running (error);
  self->manager = bj_dbus_manager_proxy_new_sync (connection, G_DBUS_PROXY_FLAGS_NONE, BJ_BUS_NAME, BJ_BUS_ROOT,
                                                  cancellable, error);
  if (self->manager == NULL)
    convert_error (error);
  return self->manager != NULL;
}

BjClient *
bj_client_new (GCancellable *cancellable, GError **error)
{
  g_autoptr(BjClient) self = g_object_new (BJ_TYPE_CLIENT, NULL);
  g_autoptr(GDBusConnection) connection = NULL;

  /* Registers our error names, so that GDBus maps them on arrival. */
  bj_error_quark ();
  connection = bj_bus_connect (NULL, cancellable, error);
  if (connection == NULL || !load_objects (self, connection, cancellable, error))
    return NULL;
  return g_steal_pointer (&self);
}

BjDBusManager *
bj_client_get_manager (BjClient *self)
{
  return self->manager;
}

gboolean
bj_client_get_running (BjClient *self)
{
  g_autofree char *owner
      = g_dbus_object_manager_client_get_name_owner (G_DBUS_OBJECT_MANAGER_CLIENT (self->objects));

  return owner != NULL;
}

const char *
bj_client_get_id (gpointer proxy)
{
  return strrchr (g_dbus_proxy_get_object_path (proxy), '/') + 1;
}

static GPtrArray *
list (BjClient *self, const char *interface, GCompareFunc compare)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_object_unref);
  GList *objects = g_dbus_object_manager_get_objects (self->objects);

  for (GList *at = objects; at != NULL; at = at->next)
    {
      GDBusInterface *proxy = g_dbus_object_get_interface (at->data, interface);

      if (proxy != NULL)
        g_ptr_array_add (found, proxy);
    }
  g_list_free_full (objects, g_object_unref);
  g_ptr_array_sort (found, compare);
  return found;
}

static int
compare_sessions (gconstpointer a, gconstpointer b)
{
  BjDBusSession *first = *(BjDBusSession *const *) a;
  BjDBusSession *second = *(BjDBusSession *const *) b;
  guint64 first_at = bj_dbus_session_get_started_at (first);
  guint64 second_at = bj_dbus_session_get_started_at (second);

  if (first_at != second_at)
    return first_at < second_at ? -1 : 1;
  return strcmp (bj_client_get_id (first), bj_client_get_id (second));
}

static int
compare_images (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (bj_dbus_image_get_name (*(BjDBusImage *const *) a),
                    bj_dbus_image_get_name (*(BjDBusImage *const *) b));
}

static int
compare_projects (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (bj_dbus_project_get_name (*(BjDBusProject *const *) a),
                    bj_dbus_project_get_name (*(BjDBusProject *const *) b));
}

static int
compare_jobs (gconstpointer a, gconstpointer b)
{
  guint64 first = g_ascii_strtoull (bj_client_get_id (*(gpointer const *) a), NULL, 10);
  guint64 second = g_ascii_strtoull (bj_client_get_id (*(gpointer const *) b), NULL, 10);

  return (first > second) - (first < second);
}

GPtrArray *
bj_client_list_sessions (BjClient *self)
{
  return list (self, "org.belljar1.Session", compare_sessions);
}

GPtrArray *
bj_client_list_images (BjClient *self)
{
  return list (self, "org.belljar1.Image", compare_images);
}

GPtrArray *
bj_client_list_projects (BjClient *self)
{
  return list (self, "org.belljar1.Project", compare_projects);
}

GPtrArray *
bj_client_list_jobs (BjClient *self)
{
  return list (self, "org.belljar1.Job", compare_jobs);
}

BjDBusSession *
bj_client_find_session (BjClient *self, const char *id, GError **error)
{
  g_autoptr(GPtrArray) sessions = bj_client_list_sessions (self);
  const char *slash = strrchr (id, '/');
  const char *prefix = slash != NULL ? slash + 1 : id;
  BjDBusSession *found = NULL;

  for (guint i = 0; i < sessions->len && *prefix != '\0'; i++)
    {
      BjDBusSession *session = g_ptr_array_index (sessions, i);

      if (g_str_equal (bj_client_get_id (session), prefix))
        return g_object_ref (session);
      if (!g_str_has_prefix (bj_client_get_id (session), prefix))
        continue;
      if (found != NULL)
        {
          bj_error_set (error, BJ_ERROR_INVALID, "Several sessions begin with “%s”; write more of the id", prefix);
          return NULL;
        }
      found = session;
    }
  if (found == NULL)
    bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no session “%s”; “belljar sessions” lists them", prefix);
  return found != NULL ? g_object_ref (found) : NULL;
}

BjDBusImage *
bj_client_find_image (BjClient *self, const char *name, GError **error)
{
  g_autoptr(GPtrArray) images = bj_client_list_images (self);

  for (guint i = 0; i < images->len; i++)
    if (g_strcmp0 (bj_dbus_image_get_name (g_ptr_array_index (images, i)), name) == 0)
      return g_object_ref (g_ptr_array_index (images, i));
  bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no image “%s”; “belljar images” lists those that there are", name);
  return NULL;
}

BjDBusProject *
bj_client_find_project (BjClient *self, const char *name, GError **error)
{
  g_autoptr(GPtrArray) projects = bj_client_list_projects (self);

  for (guint i = 0; i < projects->len; i++)
    if (g_strcmp0 (bj_dbus_project_get_name (g_ptr_array_index (projects, i)), name) == 0)
      return g_object_ref (g_ptr_array_index (projects, i));
  bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no project “%s”; “belljar projects” lists those that there are", name);
  return NULL;
}

static void
on_called (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GTask) task = user_data;
  g_autoptr(GUnixFDList) fds = NULL;
  g_autoptr(GVariant) answer = NULL;
  GError *error = NULL;

  answer = g_dbus_connection_call_with_unix_fd_list_finish (G_DBUS_CONNECTION (source), &fds, result, &error);
  if (answer == NULL)
    {
      convert_error (&error);
      g_task_return_error (task, error);
      return;
    }
  if (fds != NULL)
    g_task_set_task_data (task, g_steal_pointer (&fds), g_object_unref);
  g_task_return_pointer (task, g_steal_pointer (&answer), (GDestroyNotify) g_variant_unref);
}

/* The type of the answer as the XML has it, so that an answer of another form is an error and not a crash. */
static GVariantType *
get_reply_type (GDBusProxy *proxy, const char *method)
{
  GDBusInterfaceInfo *info = g_dbus_proxy_get_interface_info (proxy);
  GDBusMethodInfo *call = info != NULL ? g_dbus_interface_info_lookup_method (info, method) : NULL;
  g_autoptr(GString) type = g_string_new ("(");

  if (call == NULL)
    return NULL;
  for (guint i = 0; call->out_args != NULL && call->out_args[i] != NULL; i++)
    g_string_append (type, call->out_args[i]->signature);
  g_string_append_c (type, ')');
  return g_variant_type_new (type->str);
}

void
bj_client_call_async (BjClient *self, gpointer proxy, const char *method, GVariant *parameters, GUnixFDList *fds,
                      int timeout_ms, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (self, cancellable, callback, user_data);
  GVariantType *reply_type = get_reply_type (proxy, method);

  g_task_set_source_tag (task, bj_client_call_async);
  g_task_set_check_cancellable (task, FALSE); /* the call tells, as one of our errors */
  g_dbus_connection_call_with_unix_fd_list (
      g_dbus_proxy_get_connection (proxy), BJ_BUS_NAME, g_dbus_proxy_get_object_path (proxy),
      g_dbus_proxy_get_interface_name (proxy), method, parameters, reply_type,
      G_DBUS_CALL_FLAGS_ALLOW_INTERACTIVE_AUTHORIZATION, timeout_ms, fds, cancellable, on_called, task);
  g_clear_pointer (&reply_type, g_variant_type_free);
}

GVariant *
bj_client_call_finish (BjClient *self, GAsyncResult *result, GUnixFDList **fds, GError **error)
{
  GVariant *answer = g_task_propagate_pointer (G_TASK (result), error);
  GUnixFDList *came = g_task_get_task_data (G_TASK (result));

  if (fds != NULL)
    *fds = answer != NULL && came != NULL ? g_object_ref (came) : NULL;
  return answer;
}

static void
on_opened (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr(GTask) task = user_data;
  GError *error = NULL;
  GObject *proxy = g_async_initable_new_finish (G_ASYNC_INITABLE (source), result, &error);

  if (proxy != NULL)
    {
      g_task_return_pointer (task, proxy, g_object_unref);
      return;
    }
  convert_error (&error);
  g_task_return_error (task, error);
}

static void
open_proxy (BjClient *self, GType type, const char *interface, const char *path, GTask *task)
{
  g_async_initable_new_async (type, G_PRIORITY_DEFAULT, g_task_get_cancellable (task), on_opened, task, "g-flags",
                              G_DBUS_PROXY_FLAGS_NONE, "g-name", BJ_BUS_NAME, "g-connection",
                              g_dbus_proxy_get_connection (G_DBUS_PROXY (self->manager)), "g-object-path", path,
                              "g-interface-name", interface, NULL);
}

void
bj_client_open_job_async (BjClient *self, const char *path, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data)
{
  open_proxy (self, BJ_DBUS_TYPE_JOB_PROXY, "org.belljar1.Job", path,
              g_task_new (self, cancellable, callback, user_data));
}

BjDBusJob *
bj_client_open_job_finish (BjClient *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

void
bj_client_open_session_async (BjClient *self, const char *path, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  open_proxy (self, BJ_DBUS_TYPE_SESSION_PROXY, "org.belljar1.Session", path,
              g_task_new (self, cancellable, callback, user_data));
}

BjDBusSession *
bj_client_open_session_finish (BjClient *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
