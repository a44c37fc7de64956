/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-callers.h"

#include "bj-error.h"
#include "bj-worker.h"

#include <pwd.h>

#define BUS_TIMEOUT_MS 10000

BjCaller *
bj_caller_copy (const BjCaller *caller)
{
  BjCaller *copy = g_new0 (BjCaller, 1);

  copy->sender = g_strdup (caller->sender);
  copy->uid = caller->uid;
  copy->gid = caller->gid;
  return copy;
}

void
bj_caller_free (BjCaller *caller)
{
  if (caller == NULL)
    return;
  g_free (caller->sender);
  g_free (caller);
}

/* A sender that is known, until its name goes from the bus. */
typedef struct
{
  GDBusConnection *connection;
  guint watch;
  BjCaller *caller; /* (nullable): not resolved yet */
} BjKnown;

struct _BjCallers
{
  GObject parent_instance;
  GDBusConnection *connection;
  GHashTable *known; /* (element-type utf8 BjKnown): by sender */
};

G_DEFINE_FINAL_TYPE (BjCallers, bj_callers, G_TYPE_OBJECT)

static void
known_free (gpointer data)
{
  BjKnown *known = data;

  g_dbus_connection_signal_unsubscribe (known->connection, known->watch);
  bj_caller_free (known->caller);
  g_free (known);
}

static void
bj_callers_finalize (GObject *object)
{
  BjCallers *self = BJ_CALLERS (object);

  g_hash_table_unref (self->known);
  g_object_unref (self->connection);
  G_OBJECT_CLASS (bj_callers_parent_class)->finalize (object);
}

static void
bj_callers_class_init (BjCallersClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = bj_callers_finalize;
}

static void
bj_callers_init (BjCallers *self)
{
  self->known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, known_free);
}

BjCallers *
bj_callers_new (GDBusConnection *connection)
{
  BjCallers *self = g_object_new (BJ_TYPE_CALLERS, NULL);

  self->connection = g_object_ref (connection);
  return self;
}

static void
weak_ref_free (gpointer data)
{
  g_weak_ref_clear (data);
  g_free (data);
}

static void
on_name_owner_changed (GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                       const char *signal, GVariant *parameters, gpointer user_data)
{
  g_autoptr(BjCallers) self = g_weak_ref_get (user_data);
  const char *name, *new_owner;

  g_variant_get (parameters, "(&s&s&s)", &name, NULL, &new_owner);
  if (self != NULL && *new_owner == '\0')
    g_hash_table_remove (self->known, name);
}

static BjKnown *
watch (BjCallers *self, const char *sender)
{
  BjKnown *known = g_new0 (BjKnown, 1);
  GWeakRef *weak = g_new0 (GWeakRef, 1);

  g_weak_ref_init (weak, self);
  known->connection = self->connection;
  known->watch = g_dbus_connection_signal_subscribe (self->connection, "org.freedesktop.DBus", "org.freedesktop.DBus",
                                                     "NameOwnerChanged", "/org/freedesktop/DBus", sender,
                                                     G_DBUS_SIGNAL_FLAGS_NONE, on_name_owner_changed, weak, weak_ref_free);
  g_hash_table_insert (self->known, g_strdup (sender), known);
  return known;
}

static gid_t
primary_group (uid_t uid)
{
  struct passwd entry, *found = NULL;
  char buffer[16384];

  if (getpwuid_r (uid, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
    return found->pw_gid;
  return uid;
}

static void
resolve_in_worker (GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
  BjCallers *self = source;
  const char *sender = task_data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) reply = g_dbus_connection_call_sync (
      self->connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
      "GetConnectionUnixUser", g_variant_new ("(s)", sender), G_VARIANT_TYPE ("(u)"), G_DBUS_CALL_FLAGS_NONE,
      BUS_TIMEOUT_MS, cancellable, &error);
  BjCaller *caller;
  guint32 uid;

  if (reply == NULL)
    {
      g_dbus_error_strip_remote_error (error);
      g_task_return_new_error (task, BJ_ERROR, BJ_ERROR_DENIED, "The bus does not say who calls: %s", error->message);
      return;
    }
  g_variant_get (reply, "(u)", &uid);
  caller = g_new0 (BjCaller, 1);
  caller->sender = g_strdup (sender);
  caller->uid = uid;
  caller->gid = primary_group (uid);
  g_task_return_pointer (task, caller, (GDestroyNotify) bj_caller_free);
}

void
bj_callers_lookup_async (BjCallers *self, const char *sender, GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr(GTask) task = g_task_new (self, NULL, callback, user_data);
  BjKnown *known = g_hash_table_lookup (self->known, sender);

  g_task_set_source_tag (task, bj_callers_lookup_async);
  g_task_set_task_data (task, g_strdup (sender), g_free);
  if (known != NULL && known->caller != NULL)
    {
      g_task_return_pointer (task, bj_caller_copy (known->caller), (GDestroyNotify) bj_caller_free);
      return;
    }
  if (known == NULL)
    watch (self, sender); /* before asking: a name that goes meanwhile is seen to go */
  bj_worker_run (task, resolve_in_worker);
}

BjCaller *
bj_callers_lookup_finish (BjCallers *self, GAsyncResult *result, GError **error)
{
  const char *sender = g_task_get_task_data (G_TASK (result));
  BjCaller *caller = g_task_propagate_pointer (G_TASK (result), error);
  BjKnown *known = g_hash_table_lookup (self->known, sender);

  if (caller == NULL)
    g_hash_table_remove (self->known, sender);
  else if (known != NULL && known->caller == NULL)
    known->caller = bj_caller_copy (caller);
  return caller;
}
