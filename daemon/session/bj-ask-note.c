/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-ask-note.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-remove.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP "ask"
#define WHOLE "whole" /* the last key: a note that was cut has not got it */

void
bj_ask_note_clear (BjAskNote *note)
{
  g_free (note->baseline);
  g_free (note->baseline_tree);
  g_free (note->agent_check);
  g_free (note->agent_setup);
  g_free (note->answer);
  g_clear_pointer (&note->memory, g_bytes_unref);
}

static char *
dup_path (const char *dir, const char *name)
{
  return g_build_filename (dir, "ask", name, NULL);
}

static gboolean
write_durably (const char *path, gconstpointer data, gsize size, GError **error)
{
  return g_file_set_contents_full (path, data, (gssize) size,
                                   G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0600, error);
}

static void
set_string (GKeyFile *file, const char *key, const char *value)
{
  if (value != NULL)
    g_key_file_set_string (file, GROUP, key, value);
}

gboolean
bj_ask_note_write (const char *dir, const BjAskNote *note, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *folder = dup_path (dir, NULL);
  g_autofree char *memory = dup_path (dir, "memory");
  g_autofree char *ini = dup_path (dir, "ask.ini");
  g_autofree char *text = NULL;
  gsize size;

  if (mkdir (folder, 0700) < 0 && errno != EEXIST)
    return bj_fd_set_io_error (error, errno, "Making %s", folder);
  g_key_file_set_int64 (file, GROUP, "asked-at", note->asked_at);
  g_key_file_set_boolean (file, GROUP, "network", note->network);
  set_string (file, "baseline", note->baseline);
  set_string (file, "baseline-tree", note->baseline_tree);
  set_string (file, "agent-check", note->agent_check);
  set_string (file, "agent-setup", note->agent_setup);
  g_key_file_set_boolean (file, GROUP, WHOLE, TRUE);
  text = g_key_file_to_data (file, &size, NULL);
  return write_durably (memory, g_bytes_get_data (note->memory, NULL), g_bytes_get_size (note->memory), error)
         && write_durably (ini, text, size, error);
}

gboolean
bj_ask_note_set_answer (const char *dir, const char *answer, guint32 uid, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = dup_path (dir, "answer.ini");
  g_autofree char *text = NULL;
  gsize size;

  if (answer == NULL)
    return unlink (path) == 0 || errno == ENOENT || bj_fd_set_io_error (error, errno, "Removing %s", path);
  g_key_file_set_string (file, GROUP, "answer", answer);
  g_key_file_set_uint64 (file, GROUP, "uid", uid);
  text = g_key_file_to_data (file, &size, NULL);
  return write_durably (path, text, size, error);
}

static GBytes *
read_memory (const char *dir, GError **error)
{
  g_autofree char *path = dup_path (dir, "memory");
  char *data;
  gsize size;

  return g_file_get_contents (path, &data, &size, error) ? g_bytes_new_take (data, size) : NULL;
}

static void
read_answer (const char *dir, BjAskNote *note)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = dup_path (dir, "answer.ini");

  if (!g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, NULL) || !g_key_file_has_key (file, GROUP, "uid", NULL))
    return; /* cut off: it is asked for again */
  note->answer = g_key_file_get_string (file, GROUP, "answer", NULL);
  note->answer_uid = (guint32) g_key_file_get_uint64 (file, GROUP, "uid", NULL);
}

gboolean
bj_ask_note_read (const char *dir, BjAskNote *note, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *ini = dup_path (dir, "ask.ini");

  if (!bj_ask_note_exists (dir))
    return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no %s", ini);
  if (!g_key_file_load_from_file (file, ini, G_KEY_FILE_NONE, NULL) || !g_key_file_get_boolean (file, GROUP, WHOLE, NULL))
    return bj_error_set (error, BJ_ERROR_FAILED, "%s is damaged", ini);
  note->memory = read_memory (dir, error);
  if (note->memory == NULL)
    return FALSE;
  note->asked_at = g_key_file_get_int64 (file, GROUP, "asked-at", NULL);
  note->network = g_key_file_get_boolean (file, GROUP, "network", NULL);
  note->baseline = g_key_file_get_string (file, GROUP, "baseline", NULL);
  note->baseline_tree = g_key_file_get_string (file, GROUP, "baseline-tree", NULL);
  note->agent_check = g_key_file_get_string (file, GROUP, "agent-check", NULL);
  note->agent_setup = g_key_file_get_string (file, GROUP, "agent-setup", NULL);
  read_answer (dir, note);
  return TRUE;
}

void
bj_ask_note_remove (const char *dir)
{
  g_autofree char *folder = dup_path (dir, NULL);
  g_autofree char *ini = dup_path (dir, "ask.ini");
  g_autoptr(GError) error = NULL;

  unlink (ini); /* first: what is left is no note */
  if (!bj_remove_tree (folder, &error))
    g_message ("%s stays: %s", folder, error->message);
}

gboolean
bj_ask_note_exists (const char *dir)
{
  g_autofree char *ini = dup_path (dir, "ask.ini");

  return g_file_test (ini, G_FILE_TEST_EXISTS);
}
