/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-fd.h"
#include "bj-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

static char *
make_folder (void)
{
  return g_dir_make_tmp ("bj-remove-XXXXXX", NULL);
}

static void
test_nothing_there (void)
{
  g_assert_true (bj_remove_tree ("/tmp/bj-no-such-thing/at-all", NULL));
}

static void
test_links_are_not_followed (void)
{
  g_autofree char *outside = make_folder ();
  g_autofree char *kept = g_build_filename (outside, "kept", NULL);
  g_autofree char *top = make_folder ();
  g_autofree char *link_to_folder = g_build_filename (top, "link", NULL);
  g_autofree char *link_to_file = g_build_filename (top, "file", NULL);
  g_autoptr(GError) error = NULL;

  g_assert_true (g_file_set_contents (kept, "x", 1, NULL));
  g_assert_cmpint (symlink (outside, link_to_folder), ==, 0);
  g_assert_cmpint (symlink (kept, link_to_file), ==, 0);
  g_assert_true (bj_remove_tree (top, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_test (kept, G_FILE_TEST_IS_REGULAR));
  g_assert_true (bj_remove_tree (outside, NULL));
}

/* Deeper than any path can name, and with folders that bear the names we use ourselves. */
static void
test_deep (void)
{
  g_autofree char *top = make_folder ();
  g_autoptr(GError) error = NULL;
  g_auto(BjFd) at = open (top, O_RDONLY | O_DIRECTORY);

  for (guint i = 0; i < 3000; i++)
    {
      int next;

      g_assert_cmpint (mkdirat (at, i % 2 ? "d" : ".belljar-remove-0", 0700), ==, 0);
      next = openat (at, i % 2 ? "d" : ".belljar-remove-0", O_RDONLY | O_DIRECTORY);
      g_assert_cmpint (mkdirat (at, "sibling", 0700), ==, 0);
      bj_fd_clear (&at);
      at = next;
    }
  g_assert_true (bj_remove_tree (top, &error));
  g_assert_no_error (error);
  g_assert_false (g_file_test (top, G_FILE_TEST_EXISTS));
}

static void
test_odd_entries (void)
{
  g_autofree char *top = make_folder ();
  g_autoptr(GError) error = NULL;
  g_auto(BjFd) fd = open (top, O_RDONLY | O_DIRECTORY);
  g_auto(BjFd) file = -1;

  g_assert_cmpint (mkfifoat (fd, "fifo", 0600), ==, 0);
  g_assert_cmpint (mkdirat (fd, "closed", 0000), ==, 0);
  g_assert_cmpint (mkdirat (fd, "\xff\n", 0700), ==, 0);
  file = openat (fd, "\xff\n/-rf", O_CREAT | O_WRONLY, 0000);
  g_assert_cmpint (file, >=, 0);
  g_assert_true (bj_remove_tree (top, &error));
  g_assert_no_error (error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/remove/nothing-there", test_nothing_there);
  g_test_add_func ("/remove/links-are-not-followed", test_links_are_not_followed);
  g_test_add_func ("/remove/deep", test_deep);
  g_test_add_func ("/remove/odd-entries", test_odd_entries);
  return g_test_run ();
}
