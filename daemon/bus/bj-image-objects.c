/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-image-objects"

#include "bj-image-objects.h"

#include "bj-bus.h"
#include "bj-call.h"
#include "bj-dbus-image.h"
#include "bj-follow.h"
#include "bj-name.h"

struct _BjImageObjects
{
  BjContext *context;
  BjSessionManager *sessions; /* (owned) */
  GHashTable *objects;        /* (element-type utf8 BjImageObject): by name */
  BjFollow *follow;
};

typedef struct
{
  BjImageObjects *owner;
  char *name;
  char *path;
  BjDBusImage *skeleton;
} BjImageObject;

/* What a worker needs of an image. */
typedef struct
{
  BjImageStore *images;
  char *name;
} BjImageWork;

static BjImageWork *
work_new (BjImageObject *object)
{
  BjImageWork *work = g_new0 (BjImageWork, 1);

  work->images = g_object_ref (object->owner->context->images);
  work->name = g_strdup (object->name);
  return work;
}

static void
work_free (gpointer data)
{
  BjImageWork *work = data;

  g_object_unref (work->images);
  g_free (work->name);
  g_free (work);
}

static void
object_free (gpointer data)
{
  BjImageObject *object = data;

  g_signal_handlers_disconnect_by_data (object->skeleton, object);
  g_dbus_object_manager_server_unexport (object->owner->context->objects, object->path);
  g_object_unref (object->skeleton);
  g_free (object->path);
  g_free (object->name);
  g_free (object);
}

static gboolean
freeze (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  BjImageWork *work = data;

  if (!bj_image_store_freeze (work->images, work->name, progress, cancellable, error))
    return FALSE;
  *message = g_strdup_printf ("The image %s is frozen", work->name);
  return TRUE;
}

static gboolean
on_freeze (BjDBusImage *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjImageObject *object = user_data;

  bj_call_as_job (invocation, object->owner->context->jobs, "image-freeze", freeze, work_new (object), work_free);
  return TRUE;
}

static gboolean
verify (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  BjImageWork *work = data;

  if (!bj_image_store_verify (work->images, work->name, progress, cancellable, error))
    return FALSE;
  *message = g_strdup_printf ("The image %s has the digest that was recorded", work->name);
  return TRUE;
}

static gboolean
on_verify (BjDBusImage *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjImageObject *object = user_data;

  bj_call_as_job (invocation, object->owner->context->jobs, "image-verify", verify, work_new (object), work_free);
  return TRUE;
}

static gboolean
delete (gpointer data, GVariant **reply, GError **error)
{
  BjImageWork *work = data;

  return bj_image_store_delete (work->images, work->name, error);
}

static gboolean
on_delete (BjDBusImage *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  BjImageObject *object = user_data;
  guint using = bj_session_manager_count_using_image (object->owner->sessions, object->name);

  if (using > 0)
    return bj_call_return_error (invocation, BJ_ERROR_BUSY, "%u sessions use the image %s: stop them first", using,
                                 object->name);
  bj_call_in_worker (invocation, delete, work_new (object), work_free);
  return TRUE;
}

static gboolean
set_default (gpointer data, GVariant **reply, GError **error)
{
  BjImageWork *work = data;

  return bj_image_store_set_default (work->images, work->name, error);
}

static gboolean
on_set_default (BjDBusImage *skeleton, GDBusMethodInvocation *invocation, gpointer user_data)
{
  bj_call_in_worker (invocation, set_default, work_new (user_data), work_free);
  return TRUE;
}

static BjImageObject *
object_new (BjImageObjects *self, const char *name)
{
  BjImageObject *object = g_new0 (BjImageObject, 1);
  g_autofree char *element = bj_name_to_path_element (name);
  g_autofree char *label = g_strdup_printf ("image %s", name);

  object->owner = self;
  object->name = g_strdup (name);
  object->path = g_strdup_printf (BJ_BUS_ROOT "/images/%s", element);
  object->skeleton = bj_dbus_image_skeleton_new ();
  bj_dbus_image_set_name (object->skeleton, name);
  g_signal_connect (object->skeleton, "handle-freeze", G_CALLBACK (on_freeze), object);
  g_signal_connect (object->skeleton, "handle-verify", G_CALLBACK (on_verify), object);
  g_signal_connect (object->skeleton, "handle-delete", G_CALLBACK (on_delete), object);
  g_signal_connect (object->skeleton, "handle-set-default", G_CALLBACK (on_set_default), object);
  bj_gate_guard (self->context->gate, G_DBUS_INTERFACE_SKELETON (object->skeleton), BJ_GATE_NOBODY, label);
  return object;
}

static void
update (BjImageObject *object, const BjImage *image, const char *default_name)
{
  BjDBusImage *skeleton = object->skeleton;

  bj_dbus_image_set_os (skeleton, image->os);
  bj_dbus_image_set_state (skeleton, image->state);
  bj_dbus_image_set_version (skeleton, image->version);
  bj_dbus_image_set_digest (skeleton, image->digest);
  bj_dbus_image_set_size (skeleton, image->size);
  bj_dbus_image_set_built_at (skeleton, (guint64) image->built_at);
  bj_dbus_image_set_api_version (skeleton, image->api_version);
  bj_dbus_image_set_recipe (skeleton, image->recipe);
  bj_dbus_image_set_default (skeleton, g_strcmp0 (image->name, default_name) == 0);
}

static void
update_use (BjImageObjects *self)
{
  GHashTableIter iter;
  BjImageObject *object;

  g_hash_table_iter_init (&iter, self->objects);
  while (g_hash_table_iter_next (&iter, NULL, (gpointer *) &object))
    bj_dbus_image_set_sessions_using (object->skeleton,
                                      bj_session_manager_count_using_image (self->sessions, object->name));
}

static void
export_object (BjImageObject *object)
{
  g_autoptr(GDBusObjectSkeleton) skeleton = g_dbus_object_skeleton_new (object->path);

  g_dbus_object_skeleton_add_interface (skeleton, G_DBUS_INTERFACE_SKELETON (object->skeleton));
  g_dbus_object_manager_server_export (object->owner->context->objects, skeleton);
}

static void
on_images (GPtrArray *rows, gpointer user_data)
{
  BjImageObjects *self = user_data;
  g_autofree char *default_name = bj_image_store_get_default (self->context->images);
  g_autoptr(GHashTable) gone = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter iter;
  gpointer name;

  g_hash_table_iter_init (&iter, self->objects);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_hash_table_add (gone, name);
  for (guint i = 0; i < rows->len; i++)
    {
      const BjImage *image = g_ptr_array_index (rows, i);
      BjImageObject *object = g_hash_table_lookup (self->objects, image->name);
      gboolean is_new = object == NULL;

      if (is_new)
        object = object_new (self, image->name);
      update (object, image, default_name);
      if (is_new)
        {
          export_object (object);
          g_hash_table_insert (self->objects, object->name, object);
        }
      g_hash_table_remove (gone, image->name);
    }
  g_hash_table_iter_init (&iter, gone);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_hash_table_remove (self->objects, name);
  update_use (self);
}

static GPtrArray *
list_images (gpointer store)
{
  return bj_image_store_list (store);
}

BjImageObjects *
bj_image_objects_new (BjContext *context, BjSessionManager *sessions)
{
  BjImageObjects *self = g_new0 (BjImageObjects, 1);

  self->context = context;
  self->sessions = g_object_ref (sessions);
  self->objects = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, object_free);
  g_signal_connect_swapped (sessions, "changed", G_CALLBACK (update_use), self);
  self->follow = bj_follow_new (context->images, list_images, on_images, self);
  return self;
}

void
bj_image_objects_free (BjImageObjects *self)
{
  if (self == NULL)
    return;
  bj_follow_free (self->follow);
  g_signal_handlers_disconnect_by_data (self->sessions, self);
  g_hash_table_unref (self->objects);
  g_object_unref (self->sessions);
  g_free (self);
}
