/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-commands.h"

#include "bj-json.h"
#include "bj-record.h"
#include "bj-untrusted.h"

#define LABEL_SHOWN 400

typedef struct
{
  guint id;
  char *label;
  gboolean running;
  int exit;
} BjEntry;

struct _BjAgentCommands
{
  BjSession *session; /* (not owned): outlives its agent */
  GMutex lock;
  GPtrArray *entries; /* (owned) */
};

static void
entry_free (gpointer data)
{
  BjEntry *entry = data;

  g_free (entry->label);
  g_free (entry);
}

BjAgentCommands *
bj_agent_commands_new (BjSession *session)
{
  BjAgentCommands *self = g_new0 (BjAgentCommands, 1);

  self->session = session;
  g_mutex_init (&self->lock);
  self->entries = g_ptr_array_new_with_free_func (entry_free);
  return self;
}

void
bj_agent_commands_free (BjAgentCommands *self)
{
  g_ptr_array_unref (self->entries);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static void
record (BjAgentCommands *self, const char *event, guint id, const char *label, int exit, int signal)
{
  bj_session_record (self->session, TRUE, "background", bj_record_background (event, id, label, exit, signal));
}

/* Call with the lock held. Returns: (nullable) */
static BjEntry *
find (BjAgentCommands *self, guint id)
{
  for (guint i = 0; i < self->entries->len; i++)
    {
      BjEntry *entry = g_ptr_array_index (self->entries, i);

      if (entry->id == id)
        return entry;
    }
  return NULL;
}

static void
add_entry (BjAgentCommands *self, guint id, const char *label)
{
  BjEntry *entry = g_new0 (BjEntry, 1);

  entry->id = id;
  entry->label = g_strdup (label);
  entry->running = TRUE;
  entry->exit = -1;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->entries, entry);
  g_mutex_unlock (&self->lock);
}

static gboolean
end_entry (BjAgentCommands *self, guint id, int exit)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  BjEntry *entry = find (self, id);

  if (entry == NULL || !entry->running)
    return FALSE;
  entry->running = FALSE;
  entry->exit = exit;
  return TRUE;
}

static void
recall (BjAgentCommands *self, JsonObject *data)
{
  const char *event = bj_json_get_string (data, "event", "");
  gint64 id = bj_json_get_int (data, "id", 0);

  if (id <= 0 || id > G_MAXINT)
    return;
  if (g_str_equal (event, "start"))
    add_entry (self, (guint) id, bj_json_get_string (data, "command", ""));
  else if (g_str_equal (event, "end"))
    end_entry (self, (guint) id, (int) bj_json_get_int (data, "exit", -1));
}

void
bj_agent_commands_recall (BjAgentCommands *self)
{
  g_autofree char *head = NULL;
  g_autoptr(JsonArray) records = bj_session_dup_records (self->session, &head, NULL);

  for (guint i = 0; records != NULL && i < json_array_get_length (records); i++)
    {
      JsonObject *of = bj_json_array_get_object (records, i);

      if (g_str_equal (bj_json_get_string (of, "by", ""), "seen")
          && g_str_equal (bj_json_get_string (of, "type", ""), "background"))
        recall (self, bj_json_get_object (of, "data"));
    }
}

void
bj_agent_commands_add (BjAgentCommands *self, guint id, const char *label)
{
  add_entry (self, id, label);
  record (self, "start", id, label, -1, 0);
}

void
bj_agent_commands_note_failure (BjAgentCommands *self, const char *label, gboolean lost, const char *failure)
{
  bj_session_record (self->session, TRUE, "background", bj_record_start_failure (label, lost, failure));
}

void
bj_agent_commands_end (BjAgentCommands *self, guint id, int exit, int signal)
{
  if (end_entry (self, id, exit))
    record (self, "end", id, NULL, exit, signal);
}

void
bj_agent_commands_note (BjAgentCommands *self, guint id, const char *event)
{
  record (self, event, id, NULL, -1, 0);
}

GVariant *
bj_agent_commands_list (BjAgentCommands *self)
{
  g_auto(GVariantBuilder) list = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->entries->len; i++)
    {
      const BjEntry *entry = g_ptr_array_index (self->entries, i);

      g_variant_builder_open (&list, G_VARIANT_TYPE_VARDICT);
      g_variant_builder_add (&list, "{sv}", "id", g_variant_new_uint32 (entry->id));
      g_variant_builder_add (&list, "{sv}", "label",
                             g_variant_new_take_string (bj_untrusted_escape (entry->label, -1, LABEL_SHOWN)));
      g_variant_builder_add (&list, "{sv}", "running", g_variant_new_boolean (entry->running));
      g_variant_builder_add (&list, "{sv}", "exit", g_variant_new_int32 (entry->exit));
      g_variant_builder_close (&list);
    }
  g_mutex_unlock (&self->lock);
  return g_variant_builder_end (&list);
}
