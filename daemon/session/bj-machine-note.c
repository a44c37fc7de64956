/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine-note.h"

#define GROUP "machine"

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
  g_key_file_set_string (file, GROUP, "run-dir", spec->run_dir);
  g_key_file_set_uint64 (file, GROUP, "slot", spec->slot);
  g_key_file_set_integer (file, GROUP, "memory-mib", (int) spec->memory_mib);
  g_key_file_set_integer (file, GROUP, "cpus", (int) spec->cpus);
  g_key_file_set_boolean (file, GROUP, "network", spec->network);
  return g_key_file_save_to_file (file, path, error);
}

void
bj_machine_note_apply (const char *session_dir, BjMachineSpec *spec)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *path = dup_path (session_dir);
  g_autofree char *id = NULL;
  g_autofree char *run_dir = NULL;

  if (!g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, NULL))
    return;
  id = g_key_file_get_string (file, GROUP, "id", NULL);
  run_dir = g_key_file_get_string (file, GROUP, "run-dir", NULL);
  if (id == NULL || run_dir == NULL)
    return;
  g_free (spec->id);
  g_free (spec->run_dir);
  spec->id = g_steal_pointer (&id);
  spec->run_dir = g_steal_pointer (&run_dir);
  spec->slot = (guint) g_key_file_get_uint64 (file, GROUP, "slot", NULL);
  if (g_key_file_has_key (file, GROUP, "memory-mib", NULL))
    {
      spec->memory_mib = (guint) g_key_file_get_integer (file, GROUP, "memory-mib", NULL);
      spec->cpus = (guint) g_key_file_get_integer (file, GROUP, "cpus", NULL);
    }
  spec->network = g_key_file_get_boolean (file, GROUP, "network", NULL);
}
