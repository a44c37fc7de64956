/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Gives every file of a folder to a fuzz target, so that what a fuzzer once found is tried in each run of the suite. */

#include "fuzz.h"

#include <glib.h>

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *) a, *(const char *const *) b);
}

static void
replay (const char *path)
{
  g_autofree char *data = NULL;
  g_autoptr(GError) error = NULL;
  gsize size;

  g_file_get_contents (path, &data, &size, &error);
  g_assert_no_error (error);
  LLVMFuzzerTestOneInput ((const uint8_t *) data, size);
}

int
main (int argc, char **argv)
{
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr(GDir) folder = NULL;
  g_autoptr(GError) error = NULL;
  const char *name;

  g_assert_cmpint (argc, ==, 2);
  folder = g_dir_open (argv[1], 0, &error);
  g_assert_no_error (error);
  while ((name = g_dir_read_name (folder)) != NULL)
    g_ptr_array_add (names, g_build_filename (argv[1], name, NULL));
  g_ptr_array_sort (names, compare_names);
  g_assert_cmpuint (names->len, >, 0);
  for (guint i = 0; i < names->len; i++)
    replay (names->pdata[i]);
  g_print ("%u inputs\n", names->len);
  return 0;
}
