/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which machine a session has, as it is written down; and what becomes of a note that was damaged or copied. */
#include "bj-machine-note.h"
#include "bj-remove.h"

#include <string.h>
#include <sys/stat.h>

#define ID "abcd2345"

typedef struct
{
  char *state_dir;
  char *dir;
  char *path;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer unused)
{
  fixture->state_dir = g_dir_make_tmp ("bj-note-XXXXXX", NULL);
  fixture->dir = g_build_filename (fixture->state_dir, "sessions", ID, NULL);
  fixture->path = g_build_filename (fixture->dir, "machine.ini", NULL);
  g_assert_cmpint (g_mkdir_with_parents (fixture->dir, 0700), ==, 0);
}

static void
tear_down (Fixture *fixture, gconstpointer unused)
{
  g_assert_true (bj_remove_tree (fixture->state_dir, NULL));
  g_free (fixture->state_dir);
  g_free (fixture->dir);
  g_free (fixture->path);
}

static BjMachineSpec *
make_spec (Fixture *fixture)
{
  BjMachineSpec *spec = g_new0 (BjMachineSpec, 1);

  spec->id = g_strdup (ID);
  spec->run_dir = g_build_filename (fixture->dir, "run", NULL);
  spec->slot = 7;
  spec->memory_mib = 1024;
  spec->cpus = 2;
  return spec;
}

static void
assert_untouched (Fixture *fixture, const BjMachineSpec *spec)
{
  g_autoptr(BjMachineSpec) plain = make_spec (fixture);

  g_assert_cmpstr (spec->id, ==, plain->id);
  g_assert_cmpstr (spec->run_dir, ==, plain->run_dir);
  g_assert_cmpuint (spec->slot, ==, plain->slot);
  g_assert_cmpuint (spec->memory_mib, ==, plain->memory_mib);
  g_assert_cmpuint (spec->cpus, ==, plain->cpus);
  g_assert_false (spec->network);
}

static void
test_round_trip (Fixture *fixture, gconstpointer unused)
{
  static const char *const ids[] = { ID, "pool-abcdefgh" };
  g_autofree char *pool = g_build_filename (fixture->state_dir, "pool", ids[1], NULL);

  for (guint i = 0; i < G_N_ELEMENTS (ids); i++)
    {
      g_autoptr(BjMachineSpec) written = make_spec (fixture);
      g_autoptr(BjMachineSpec) spec = make_spec (fixture);

      g_free (written->id);
      written->id = g_strdup (ids[i]);
      written->slot = 1023;
      written->memory_mib = 4096;
      written->cpus = 4;
      written->network = TRUE;
      g_assert_true (bj_machine_note_write (fixture->dir, written, NULL));
      bj_machine_note_apply (fixture->dir, spec);
      g_assert_cmpstr (spec->id, ==, ids[i]);
      g_assert_cmpstr (spec->run_dir, ==, i == 1 ? pool : written->run_dir);
      g_assert_cmpuint (spec->slot, ==, 1023);
      g_assert_cmpuint (spec->memory_mib, ==, 4096);
      g_assert_cmpuint (spec->cpus, ==, 4);
      g_assert_true (spec->network);
    }
}

/* Cut at every byte, and overwritten at every byte: never a folder that is not a machine's of this session. */
static void
test_damaged (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjMachineSpec) written = make_spec (fixture);
  g_autofree char *pools = g_build_filename (fixture->state_dir, "pool/pool-", NULL);
  g_autofree char *text = NULL;
  gsize size;

  g_free (written->id);
  written->id = g_strdup ("pool-abcdefgh");
  g_assert_true (bj_machine_note_write (fixture->dir, written, NULL));
  g_assert_true (g_file_get_contents (fixture->path, &text, &size, NULL));
  for (gsize i = 0; i < 2 * size; i++)
    {
      g_autofree char *copy = g_memdup2 (text, size);
      g_autoptr(BjMachineSpec) spec = make_spec (fixture);

      copy[i % size] ^= 0x15;
      g_assert_true (g_file_set_contents (fixture->path, i < size ? text : copy, i < size ? (gssize) i : (gssize) size, NULL));
      bj_machine_note_apply (fixture->dir, spec);
      g_assert_true (g_str_equal (spec->run_dir, written->run_dir) || g_str_has_prefix (spec->run_dir, pools));
      g_assert_null (strstr (spec->run_dir, ".."));
      g_assert_cmpuint (spec->slot, <, BJ_MACHINE_SLOTS);
      g_assert_cmpuint (spec->memory_mib, >=, 256);
      g_assert_cmpuint (spec->cpus, >=, 1);
    }
}

static void
test_hostile (Fixture *fixture, gconstpointer unused)
{
  static const char *const notes[] = {
    "", "[machine]\n", "[machine]\nid=abcd2345\nslot=1024\n", "[machine]\nid=abcd2346\nslot=1\n", "[machine]\nid=..\nslot=1\n",
    "[machine]\nid=pool-../../x\nslot=1\n", "[machine]\nid=pool-\nslot=1\n", "[machine]\nid=/\nslot=1\nrun-dir=/\n",
    "[machine]\nid=pool-abcdefgh\nslot=18446744073709551615\n", "\xff\xfe",
  };

  for (guint i = 0; i < G_N_ELEMENTS (notes); i++)
    {
      g_autoptr(BjMachineSpec) spec = make_spec (fixture);

      g_test_message ("case %u", i);
      g_assert_true (g_file_set_contents (fixture->path, notes[i], -1, NULL));
      bj_machine_note_apply (fixture->dir, spec);
      assert_untouched (fixture, spec);
    }
}

/* A folder that somebody put there, as an earlier belljard wrote it, leads nowhere either. */
static void
test_run_dir_is_not_believed (Fixture *fixture, gconstpointer unused)
{
  g_autoptr(BjMachineSpec) spec = make_spec (fixture);

  g_assert_true (g_file_set_contents (fixture->path, "[machine]\nid=abcd2345\nrun-dir=/etc\nslot=3\n", -1, NULL));
  bj_machine_note_apply (fixture->dir, spec);
  g_assert_true (g_str_has_prefix (spec->run_dir, fixture->dir));
  g_assert_cmpuint (spec->slot, ==, 3);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/machine-note/round-trip", Fixture, NULL, set_up, test_round_trip, tear_down);
  g_test_add ("/machine-note/damaged", Fixture, NULL, set_up, test_damaged, tear_down);
  g_test_add ("/machine-note/hostile", Fixture, NULL, set_up, test_hostile, tear_down);
  g_test_add ("/machine-note/run-dir", Fixture, NULL, set_up, test_run_dir_is_not_believed, tear_down);
  return g_test_run ();
}
