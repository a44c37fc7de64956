/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-project-objects"

#include "bj-project-objects.h"

#include "bj-bus.h"
#include "bj-call.h"
#include "bj-dbus-project.h"
#include "bj-fd.h"
#include "bj-follow.h"
#include "bj-name.h"
#include "bj-options.h"
#include "bj-project-tasks.h"

#include <gio/gunixfdlist.h>
#include <string.h>

#define LEFT_OUT_MAX 20
#define LOG_MAX 1000
#define PATH_BYTES_MAX 4096

struct _BjProjectObjects
{
  BjContext *context;
  BjSessionManager *sessions; /* (owned) */
  GHashTable *objects;        /* (element-type utf8 BjProjectObject): by name */
  BjFollow *follow;
};

typedef struct
{
  BjProjectObjects *owner;
  char *name;
  char *path;
  BjDBusProject *skeleton;
} BjProjectObject;

/* What a worker needs of a project and a call. */
typedef struct
{
  BjProjectStore *projects;
  char *name;
  guint count;
  int fd;
  uid_t uid;
  gid_t gid;
  char *path; /* (nullable): bytes, below the working folder */
} BjProjectWork;

static BjProjectWork *
work_new (BjProjectObject *object)
{
  BjProjectWork *work = g_new0 (BjProjectWork, 1);

  work->projects = g_object_ref (object->owner->context->projects);
  work->name = g_strdup (object->name);
  work->fd = -1;
  return work;
}

static void
work_free (gpointer data)
{
  BjProjectWork *work = data;

  bj_fd_clear (&work->fd);
  g_object_unref (work->projects);
  g_free (work->name);
  g_free (work->path);
  g_free (work);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjProjectWork, work_free)

static void
object_free (gpointer data)
{
  BjProjectObject *object = data;

  g_signal_handlers_disconnect_by_data (object->skeleton, object);
  g_dbus_object_manager_server_unexport (object->owner->context->objects, object->path);
  g_object_unref (object->skeleton);
  g_free (object->path);
  g_free (object->name);
  g_free (object);
}

static gboolean
on_details (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjProjectObject *object = user_data;
  BjContext *context = object->owner->context;
  g_autofree char *work = bj_project_store_dup_work_path (context->projects, object->name);
  g_autofree char *repository = g_build_filename (context->state_dir, "projects", object->name, "repo.git", NULL);
  GVariantBuilder details = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);

  g_variant_builder_add (&details, "{sv}", "path", g_variant_new_string (work));
  g_variant_builder_add (&details, "{sv}", "repository", g_variant_new_string (repository));
  bj_dbus_project_complete_details (skeleton, invocation, g_variant_builder_end (&details));
  return TRUE;
}

static void
add_text (GVariantBuilder *entry, JsonObject *commit, const char *key)
{
  const char *text = json_object_get_string_member_with_default (commit, key, "");

  g_variant_builder_add (entry, "{sv}", key, g_variant_new_string (text));
}

static gboolean
read_log (gpointer data, GVariant **reply, GError **error)
{
  BjProjectWork *work = data;
  g_autoptr(JsonArray) commits = bj_project_store_log (work->projects, work->name, work->count, error);
  GVariantBuilder all = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));

  if (commits == NULL)
    return FALSE;
  for (guint i = 0; i < json_array_get_length (commits); i++)
    {
      JsonObject *commit = json_array_get_object_element (commits, i);
      gint64 time = json_object_get_int_member_with_default (commit, "time", 0);

      g_variant_builder_open (&all, G_VARIANT_TYPE_VARDICT);
      add_text (&all, commit, "commit");
      g_variant_builder_add (&all, "{sv}", "time", g_variant_new_uint64 ((guint64) time));
      add_text (&all, commit, "subject");
      add_text (&all, commit, "verdict");
      add_text (&all, commit, "session");
      g_variant_builder_close (&all);
    }
  *reply = g_variant_new ("(aa{sv})", &all);
  return TRUE;
}

static gboolean
on_log (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, guint count, gpointer user_data)
{
  BjProjectWork *work = work_new (user_data);

  work->count = MIN (count, LOG_MAX);
  bj_call_in_worker (invocation, read_log, work, work_free);
  return TRUE;
}

/* A relative path that stays below its folder; the helper that opens it makes sure of that once more. */
static gboolean
check_path (GVariant *value, GError **error)
{
  gsize length;
  const char *bytes = g_variant_get_fixed_array (value, &length, 1);
  g_autofree char *path = g_strndup (length > 0 ? bytes : "", length); /* an empty array has no bytes at all */
  g_auto(GStrv) parts = g_strsplit (path, "/", -1);

  if (length > 0 && bytes[length - 1] == '\0')
    length--;
  if (length == 0 || length > PATH_BYTES_MAX || strlen (path) != length || *path == '/')
    return bj_error_set (error, BJ_ERROR_INVALID, "must be a relative path of 1 to %d bytes", PATH_BYTES_MAX);
  for (guint i = 0; parts[i] != NULL; i++)
    if (g_str_equal (parts[i], ".."))
      return bj_error_set (error, BJ_ERROR_INVALID, "must not hold “..”");
  return TRUE;
}

static const BjOption copy_options[] = { { "path", "ay", check_path } };

static BjProjectWork *
copy_work_new (BjProjectObject *object, GDBusMethodInvocation *invocation, GUnixFDList *fds, GVariant *handle,
               GVariant *options, GError **error)
{
  g_autoptr(BjProjectWork) work = work_new (object);
  const BjCaller *caller = bj_gate_get_caller (invocation);
  g_autoptr(GVariant) path = NULL;
  gsize length;
  const char *bytes;

  if (!bj_options_check (options, copy_options, G_N_ELEMENTS (copy_options), error))
    return NULL;
  path = g_variant_lookup_value (options, "path", G_VARIANT_TYPE_BYTESTRING);
  if (path != NULL)
    {
      bytes = g_variant_get_fixed_array (path, &length, 1);
      work->path = g_strndup (bytes, length);
    }
  work->fd = bj_fd_take (fds, g_variant_get_handle (handle), NULL);
  work->uid = caller->uid;
  work->gid = caller->gid;
  if (work->fd >= 0)
    return g_steal_pointer (&work);
  bj_error_set (error, BJ_ERROR_INVALID, "The call brought no file descriptor");
  return NULL;
}

/* Whoever asked is told what is missing. Returns: (transfer full): lines of text */
static char *
describe_copy (const char *what, const char *project, GStrv left_out)
{
  GString *text = g_string_new (NULL);
  guint n = g_strv_length (left_out);

  g_string_append_printf (text, "Copied %s the project %s", what, project);
  if (n > 0)
    g_string_append (text, ", but not everything:");
  for (guint i = 0; i < MIN (n, LEFT_OUT_MAX); i++)
    g_string_append_printf (text, "\n- %s", left_out[i]);
  if (n > LEFT_OUT_MAX)
    g_string_append_printf (text, "\n- and %u more, see belljard's log", n - LEFT_OUT_MAX);
  return g_string_free (text, FALSE);
}

static gboolean
copy_in (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  BjProjectWork *work = data;
  g_auto(GStrv) left_out = NULL;

  if (!bj_project_store_copy_in (work->projects, work->name, work->fd, work->path, progress, cancellable, &left_out,
                                 error))
    return FALSE;
  *message = describe_copy ("into", work->name, left_out);
  return TRUE;
}

static gboolean
refuse_busy (BjProjectObject *object, GDBusMethodInvocation *invocation)
{
  if (bj_session_manager_count_on_project (object->owner->sessions, object->name) == 0)
    return FALSE;
  return bj_call_return_error (invocation, BJ_ERROR_BUSY,
                               "A session works on the project %s: wait for its end or stop it", object->name);
}

static gboolean
on_copy_in (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, GVariant *handle,
            GVariant *options, gpointer user_data)
{
  BjProjectObject *object = user_data;
  g_autoptr(GError) error = NULL;
  BjProjectWork *work;

  if (refuse_busy (object, invocation))
    return TRUE;
  work = copy_work_new (object, invocation, fds, handle, options, &error);
  if (work != NULL)
    bj_call_as_job (invocation, object->owner->context->jobs, "copy-in", copy_in, work, work_free);
  else
    bj_gate_return_error (invocation, error);
  return TRUE;
}

static gboolean
copy_out (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  BjProjectWork *work = data;
  g_auto(GStrv) left_out = NULL;

  if (!bj_project_store_copy_out (work->projects, work->name, work->fd, work->uid, work->gid, work->path, progress,
                                  cancellable, &left_out, error))
    return FALSE;
  *message = describe_copy ("out of", work->name, left_out);
  return TRUE;
}

static gboolean
on_copy_out (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, GUnixFDList *fds, GVariant *handle,
             GVariant *options, gpointer user_data)
{
  BjProjectObject *object = user_data;
  g_autoptr(GError) error = NULL;
  BjProjectWork *work = copy_work_new (object, invocation, fds, handle, options, &error);

  if (work != NULL)
    bj_call_as_job (invocation, object->owner->context->jobs, "copy-out", copy_out, work, work_free);
  else
    bj_gate_return_error (invocation, error);
  return TRUE;
}

static gboolean
delete (gpointer data, GVariant **reply, GError **error)
{
  BjProjectWork *work = data;

  return bj_project_store_delete (work->projects, work->name, error);
}

static gboolean
on_delete (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjProjectObject *object = user_data;

  if (!refuse_busy (object, invocation))
    bj_call_in_worker (invocation, delete, work_new (object), work_free);
  return TRUE;
}

static BjProjectObject *
object_new (BjProjectObjects *self, const BjProjectRow *row)
{
  BjProjectObject *object = g_new0 (BjProjectObject, 1);
  g_autofree char *element = bj_name_to_path_element (row->name);
  g_autofree char *label = g_strdup_printf ("project %s", row->name);

  object->owner = self;
  object->name = g_strdup (row->name);
  object->path = g_strdup_printf (BJ_BUS_ROOT "/projects/%s", element);
  object->skeleton = bj_dbus_project_skeleton_new ();
  bj_dbus_project_set_name (object->skeleton, row->name);
  bj_dbus_project_set_owner (object->skeleton, row->owner_uid);
  g_signal_connect (object->skeleton, "handle-details", G_CALLBACK (on_details), object);
  g_signal_connect (object->skeleton, "handle-log", G_CALLBACK (on_log), object);
  g_signal_connect (object->skeleton, "handle-copy-in", G_CALLBACK (on_copy_in), object);
  g_signal_connect (object->skeleton, "handle-copy-out", G_CALLBACK (on_copy_out), object);
  g_signal_connect (object->skeleton, "handle-delete", G_CALLBACK (on_delete), object);
  bj_project_tasks_serve (object->skeleton, self->context->store, row->name);
  bj_gate_guard (self->context->gate, G_DBUS_INTERFACE_SKELETON (object->skeleton), row->owner_uid, label);
  return object;
}

static void
update (BjProjectObject *object, const BjProjectRow *row)
{
  bj_dbus_project_set_quota (object->skeleton, row->quota);
  bj_dbus_project_set_used (object->skeleton, row->used);
  bj_dbus_project_set_backend (object->skeleton, row->backend);
  bj_dbus_project_set_head (object->skeleton, row->head);
}

static void
update_use (BjProjectObjects *self)
{
  GHashTableIter iter;
  BjProjectObject *object;

  g_hash_table_iter_init (&iter, self->objects);
  while (g_hash_table_iter_next (&iter, NULL, (gpointer *) &object))
    bj_dbus_project_set_sessions (object->skeleton,
                                  bj_session_manager_count_on_project (self->sessions, object->name));
}

static void
export_object (BjProjectObject *object)
{
  g_autoptr(GDBusObjectSkeleton) skeleton = g_dbus_object_skeleton_new (object->path);

  g_dbus_object_skeleton_add_interface (skeleton, G_DBUS_INTERFACE_SKELETON (object->skeleton));
  g_dbus_object_manager_server_export (object->owner->context->objects, skeleton);
}

/* A project that was deleted and made again by somebody else is another one: its guard knows the owner. */
static gboolean
is_same (BjProjectObject *object, const BjProjectRow *row)
{
  return object != NULL && bj_dbus_project_get_owner (object->skeleton) == row->owner_uid;
}

static void
on_projects (GPtrArray *rows, gpointer user_data)
{
  BjProjectObjects *self = user_data;
  g_autoptr(GHashTable) gone = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter iter;
  gpointer name;

  for (guint i = 0; i < rows->len; i++)
    {
      const BjProjectRow *row = g_ptr_array_index (rows, i);

      if (!is_same (g_hash_table_lookup (self->objects, row->name), row))
        g_hash_table_remove (self->objects, row->name);
    }
  g_hash_table_iter_init (&iter, self->objects);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_hash_table_add (gone, name);
  for (guint i = 0; i < rows->len; i++)
    {
      const BjProjectRow *row = g_ptr_array_index (rows, i);
      BjProjectObject *object = g_hash_table_lookup (self->objects, row->name);

      if (object == NULL)
        {
          object = object_new (self, row);
          update (object, row);
          export_object (object);
          g_hash_table_insert (self->objects, object->name, object);
        }
      update (object, row);
      g_hash_table_remove (gone, row->name);
    }
  g_hash_table_iter_init (&iter, gone);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_hash_table_remove (self->objects, name);
  update_use (self);
}

static GPtrArray *
list_projects (gpointer store)
{
  return bj_project_store_list (store);
}

BjProjectObjects *
bj_project_objects_new (BjContext *context, BjSessionManager *sessions)
{
  BjProjectObjects *self = g_new0 (BjProjectObjects, 1);

  self->context = context;
  self->sessions = g_object_ref (sessions);
  self->objects = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, object_free);
  g_signal_connect_swapped (sessions, "changed", G_CALLBACK (update_use), self);
  self->follow = bj_follow_new (context->projects, list_projects, on_projects, self);
  return self;
}

void
bj_project_objects_free (BjProjectObjects *self)
{
  if (self == NULL)
    return;
  bj_follow_free (self->follow);
  g_signal_handlers_disconnect_by_data (self->sessions, self);
  g_hash_table_unref (self->objects);
  g_object_unref (self->sessions);
  g_free (self);
}
