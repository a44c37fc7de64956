/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine-note.h"

#include "bj-lease.h"
#include "bj-name.h"
#include "bj-slots.h"
#include "bj-units.h"

#include <string.h>

#define GROUP "machine"
#define CPUS_MAX 256

static char *
dup_path (const char *session_dir)
{
  return g_build_filename (session_dir, "machine.ini", NULL);
}

gboolean
bj_machine_note_write (const char *session_dir, const BjMachineSpec *spec, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = dup_path (session_dir);

  g_key_file_set_string (file, GROUP, "id", spec->id);
  g_key_file_set_uint64 (file, GROUP, "slot", spec->slot);
  g_key_file_set_integer (file, GROUP, "memory-mib", (int) spec->memory_mib);
  g_key_file_set_integer (file, GROUP, "cpus", (int) spec->cpus);
  g_key_file_set_boolean (file, GROUP, "network", spec->network);
  return g_key_file_save_to_file (file, path, error);
}

/*
 * Where a machine has its files follows from whose it is, and never from what the note says: a note that was damaged, or copied
 * together with the state folder, must not lead belljard to other folders, which it would remove.
 *
 * Returns: (transfer full): or %NULL if no machine of this session can have that id
 */
static char *
dup_run_dir (const char *session_dir, const char *id)
{
  g_autofree char *session = g_path_get_basename (session_dir);
  g_autofree char *sessions = g_path_get_dirname (session_dir);
  g_autofree char *state_dir = g_path_get_dirname (sessions);
  gsize prefix = strlen (BJ_POOL_PREFIX);

  if (g_str_equal (id, session))
    return g_build_filename (session_dir, "run", NULL);
  if (strncmp (id, BJ_POOL_PREFIX, prefix) == 0 && bj_id_is_valid (id + prefix))
    return g_build_filename (state_dir, "pool", id, NULL);
  return NULL;
}

static void
take_number (GKeyFile *file, const char *key, guint least, guint most, guint *number)
{
  guint64 value = g_key_file_get_uint64 (file, GROUP, key, NULL);

  if (value >= least && value <= most)
    *number = (guint) value;
}

void
bj_machine_note_apply (const char *session_dir, BjMachineSpec *spec)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = dup_path (session_dir);
  g_autofree char *id = NULL;
  char *run_dir;
  guint64 slot;

  if (!g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, NULL))
    return;
  id = g_key_file_get_string (file, GROUP, "id", NULL);
  slot = g_key_file_get_uint64 (file, GROUP, "slot", NULL);
  run_dir = id != NULL && slot < BJ_MACHINE_SLOTS ? dup_run_dir (session_dir, id) : NULL;
  if (run_dir == NULL)
    return;
  g_free (spec->id);
  g_free (spec->run_dir);
  spec->id = g_steal_pointer (&id);
  spec->run_dir = run_dir;
  spec->slot = (guint) slot;
  take_number (file, "memory-mib", BJ_MEMORY_MIN_MIB, BJ_MEMORY_MAX_MIB, &spec->memory_mib);
  take_number (file, "cpus", 1, CPUS_MAX, &spec->cpus);
  spec->network = g_key_file_get_boolean (file, GROUP, "network", NULL);
}
