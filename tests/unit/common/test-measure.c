/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-measure.h"

#include "bj-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES (64 * 1024)

static guint64
measure (const char *path, gboolean *complete)
{
  g_autoptr(BjMeter) meter = bj_meter_new (60, NULL);
  guint64 bytes = bj_meter_add (meter, path);

  *complete = bj_meter_is_complete (meter);
  return bytes;
}

static void
write_file (const char *path)
{
  g_autofree char *data = g_malloc (FILE_BYTES);

  for (guint i = 0; i < FILE_BYTES; i++)
    data[i] = (char) g_random_int ();
  g_assert_true (g_file_set_contents_full (path, data, FILE_BYTES, G_FILE_SET_CONTENTS_DURABLE, 0600, NULL));
}

static void
test_files (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-measure-XXXXXX", NULL);
  g_autofree char *file = g_build_filename (dir, "file", NULL);
  g_autofree char *twin = g_build_filename (dir, "twin", NULL);
  g_autofree char *fifo = g_build_filename (dir, "fifo", NULL);
  g_autofree char *way_out = g_build_filename (dir, "out", NULL);
  gboolean complete;
  guint64 before, after;

  g_assert_cmpuint (measure ("/nonexistent/x", &complete), ==, 0);
  g_assert_true (complete);
  before = measure (dir, &complete);
  write_file (file);
  after = measure (dir, &complete);
  g_assert_cmpuint (after, >=, before + FILE_BYTES);
  g_assert_cmpuint (after, <, before + 4 * FILE_BYTES);
  g_assert_cmpint (link (file, twin), ==, 0);
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0); /* opening it would block for ever */
  g_assert_cmpint (symlink ("/usr", way_out), ==, 0);
  g_assert_cmpuint (measure (dir, &complete), <, after + FILE_BYTES);
  g_assert_true (complete);
  g_assert_true (bj_remove_tree (dir, NULL));
}

/* A path that is too long for one call, and deeper than we walk. */
static void
test_deep (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-measure-XXXXXX", NULL);
  g_autofree char *name = g_strnfill (200, 'd');
  int at = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  gboolean complete;

  for (guint depth = 0; depth < 300; depth++)
    {
      int below;

      g_assert_cmpint (mkdirat (at, name, 0700), ==, 0);
      below = openat (at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      g_assert_cmpint (below, >=, 0);
      close (at);
      at = below;
    }
  close (at);
  measure (dir, &complete);
  g_assert_false (complete);
  g_assert_true (bj_remove_tree (dir, NULL));
}

static void
test_cancelled (void)
{
  g_autoptr(GCancellable) cancellable = g_cancellable_new ();
  g_autoptr(BjMeter) meter = bj_meter_new (60, cancellable);

  g_cancellable_cancel (cancellable);
  g_assert_cmpuint (bj_meter_add (meter, "/usr"), ==, 0);
  g_assert_false (bj_meter_is_complete (meter));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/measure/files", test_files);
  g_test_add_func ("/measure/deep", test_deep);
  g_test_add_func ("/measure/cancelled", test_cancelled);
  return g_test_run ();
}
