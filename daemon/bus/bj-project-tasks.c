/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-tasks.h"

#include "bj-call.h"
#include "bj-options.h"

#include <string.h>

#define SESSIONS_SHOWN 20

/* A project's list, and what one call wants of it. */
typedef struct
{
  BjStore *store; /* (owned) */
  char *project;
  guint id;
  char *text;   /* (nullable) */
  char *status; /* (nullable) */
  guint position;
} BjTaskCall;

static BjTaskCall *
task_call_new (BjStore *store, const char *project)
{
  BjTaskCall *call = g_new0 (BjTaskCall, 1);

  call->store = g_object_ref (store);
  call->project = g_strdup (project);
  return call;
}

static void
task_call_free (gpointer data)
{
  BjTaskCall *call = data;

  g_object_unref (call->store);
  g_free (call->project);
  g_free (call->text);
  g_free (call->status);
  g_free (call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjTaskCall, task_call_free)

static void
add_text (GVariantBuilder *entry, const char *key, const char *text)
{
  g_variant_builder_add (entry, "{sv}", key, g_variant_new_string (text));
}

static GVariant *
describe_session (const BjTaskSessionRow *row)
{
  GVariantBuilder entry = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);

  add_text (&entry, "session", row->session);
  g_variant_builder_add (&entry, "{sv}", "started", g_variant_new_uint64 ((guint64) row->at));
  add_text (&entry, "outcome", row->outcome);
  add_text (&entry, "verdict", row->verdict);
  return g_variant_builder_end (&entry);
}

static GVariant *
describe_task (const BjTaskRow *row, GPtrArray *sessions)
{
  GVariantBuilder entry = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  GVariantBuilder links = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));
  const BjTaskSessionRow *last = NULL;
  guint shown = 0;

  for (guint i = 0; i < sessions->len; i++)
    {
      const BjTaskSessionRow *link = g_ptr_array_index (sessions, i);

      if (link->task != row->id)
        continue;
      if (last == NULL && *link->outcome != '\0')
        last = link;
      if (shown++ < SESSIONS_SHOWN)
        g_variant_builder_add_value (&links, describe_session (link));
    }
  g_variant_builder_add (&entry, "{sv}", "id", g_variant_new_uint32 (row->id));
  add_text (&entry, "text", row->text);
  add_text (&entry, "status", row->status);
  g_variant_builder_add (&entry, "{sv}", "created", g_variant_new_uint64 ((guint64) row->created));
  g_variant_builder_add (&entry, "{sv}", "changed", g_variant_new_uint64 ((guint64) row->changed));
  add_text (&entry, "outcome", last != NULL ? last->outcome : "");
  add_text (&entry, "verdict", last != NULL ? last->verdict : "");
  g_variant_builder_add (&entry, "{sv}", "sessions", g_variant_builder_end (&links));
  return g_variant_builder_end (&entry);
}

static gboolean
list_tasks (gpointer data, GVariant **reply, GError **error)
{
  BjTaskCall *call = data;
  g_autoptr(GPtrArray) tasks = bj_store_list_tasks (call->store, call->project, error);
  g_autoptr(GPtrArray) sessions = tasks != NULL ? bj_store_list_task_sessions (call->store, call->project, error) : NULL;
  GVariantBuilder all = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));

  if (sessions == NULL)
    return FALSE;
  for (guint i = 0; i < tasks->len; i++)
    g_variant_builder_add_value (&all, describe_task (g_ptr_array_index (tasks, i), sessions));
  *reply = g_variant_new ("(aa{sv})", &all);
  return TRUE;
}

static gboolean
add_task (gpointer data, GVariant **reply, GError **error)
{
  BjTaskCall *call = data;
  guint id;

  if (!bj_store_add_task (call->store, call->project, call->text, &id, error))
    return FALSE;
  *reply = g_variant_new ("(u)", id);
  return TRUE;
}

static gboolean
set_task (gpointer data, GVariant **reply, GError **error)
{
  BjTaskCall *call = data;

  return bj_store_update_task (call->store, call->project, call->id, call->text, call->status, call->position, error);
}

static gboolean
check_text (GVariant *value, GError **error)
{
  const char *text = g_variant_get_string (value, NULL);

  if (strlen (text) <= BJ_TASK_TEXT_MAX && strspn (text, " \t\r\n") < strlen (text))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "must say what is to be done, in at most %d bytes", BJ_TASK_TEXT_MAX);
}

static gboolean
check_status (GVariant *value, GError **error)
{
  return bj_task_status_is_valid (g_variant_get_string (value, NULL))
         || bj_error_set (error, BJ_ERROR_INVALID, "must be todo, doing, done or dropped");
}

static gboolean
check_position (GVariant *value, GError **error)
{
  return g_variant_get_uint32 (value) > 0 || bj_error_set (error, BJ_ERROR_INVALID, "must be a place in the order, from 1");
}

static const BjOption set_options[]
    = { { "text", "s", check_text }, { "status", "s", check_status }, { "position", "u", check_position } };

static gboolean
on_list_tasks (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, const BjTaskCall *list)
{
  bj_call_in_worker (invocation, list_tasks, task_call_new (list->store, list->project), task_call_free);
  return TRUE;
}

static gboolean
on_add_task (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, const char *text, const BjTaskCall *list)
{
  g_autoptr(BjTaskCall) call = task_call_new (list->store, list->project);
  g_autoptr(GVariant) value = g_variant_ref_sink (g_variant_new_string (text));
  g_autoptr(GError) error = NULL;

  call->text = g_strdup (text);
  if (check_text (value, &error))
    bj_call_in_worker (invocation, add_task, g_steal_pointer (&call), task_call_free);
  else
    return bj_call_return_error (invocation, BJ_ERROR_INVALID, "The text %s", error->message);
  return TRUE;
}

static gboolean
on_set_task (BjDBusProject *skeleton, GDBusMethodInvocation *invocation, guint id, GVariant *options, const BjTaskCall *list)
{
  g_autoptr(BjTaskCall) call = task_call_new (list->store, list->project);
  g_autoptr(GError) error = NULL;

  if (!bj_options_check (options, set_options, G_N_ELEMENTS (set_options), &error))
    {
      bj_gate_return_error (invocation, error);
      return TRUE;
    }
  call->id = id;
  g_variant_lookup (options, "text", "s", &call->text);
  g_variant_lookup (options, "status", "s", &call->status);
  g_variant_lookup (options, "position", "u", &call->position);
  bj_call_in_worker (invocation, set_task, g_steal_pointer (&call), task_call_free);
  return TRUE;
}

static void
free_closure (gpointer data, GClosure *closure)
{
  task_call_free (data);
}

void
bj_project_tasks_serve (BjDBusProject *skeleton, BjStore *store, const char *project)
{
  g_signal_connect_data (skeleton, "handle-list-tasks", G_CALLBACK (on_list_tasks), task_call_new (store, project), free_closure, 0);
  g_signal_connect_data (skeleton, "handle-add-task", G_CALLBACK (on_add_task), task_call_new (store, project), free_closure, 0);
  g_signal_connect_data (skeleton, "handle-set-task", G_CALLBACK (on_set_task), task_call_new (store, project), free_closure, 0);
}
