/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-store-private.h"

void
bj_journal_entry_free (BjJournalEntry *entry)
{
  if (entry == NULL)
    return;
  g_free (entry->subject);
  g_free (entry->action);
  g_free (entry->data);
  g_free (entry->outcome);
  g_free (entry);
}

gint64
bj_journal_begin (BjStore *self, const char *subject, const char *action, const char *data, GError **error)
{
  const BjValue values[] = { BJ_NUMBER (g_get_real_time () / G_USEC_PER_SEC), BJ_TEXT (subject), BJ_TEXT (action),
                             BJ_TEXT (data != NULL ? data : "{}") };
  gint64 id = 0;

  if (!bj_database_run (bj_store_get_database (self),
                        "INSERT INTO journal (at, subject, action, data, outcome) VALUES (?, ?, ?, ?, '')", values,
                        G_N_ELEMENTS (values), NULL, NULL, NULL, &id, error))
    return 0;
  return id;
}

gboolean
bj_journal_end (BjStore *self, gint64 id, const GError *failure, GError **error)
{
  const char *outcome = failure == NULL ? "done" : *failure->message != '\0' ? failure->message : "failed";
  const BjValue values[] = { BJ_TEXT (outcome), BJ_NUMBER (id) };
  int changes = 0;

  if (!bj_database_run (bj_store_get_database (self), "UPDATE journal SET outcome = ? WHERE id = ? AND outcome = ''",
                        values, G_N_ELEMENTS (values), NULL, NULL, &changes, NULL, error))
    return FALSE;
  return changes == 1
         || bj_error_set (error, BJ_ERROR_NOT_FOUND, "The journal has no open entry %" G_GINT64_FORMAT, id);
}

static void
read_entry (sqlite3_stmt *statement, gpointer user_data)
{
  BjJournalEntry *entry = g_new0 (BjJournalEntry, 1);

  entry->id = sqlite3_column_int64 (statement, 0);
  entry->at = sqlite3_column_int64 (statement, 1);
  entry->subject = bj_database_dup_text (statement, 2);
  entry->action = bj_database_dup_text (statement, 3);
  entry->data = bj_database_dup_text (statement, 4);
  entry->outcome = bj_database_dup_text (statement, 5);
  g_ptr_array_add (user_data, entry);
}

GPtrArray *
bj_journal_list_open (BjStore *self, GError **error)
{
  g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_journal_entry_free);

  if (!bj_database_run (bj_store_get_database (self),
                        "SELECT id, at, subject, action, data, outcome FROM journal WHERE outcome = '' ORDER BY id", NULL,
                        0, read_entry, entries, NULL, NULL, error))
    return NULL;
  return g_steal_pointer (&entries);
}
