/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-image-info.h"
#include "bj-remove.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *
make_dir (void)
{
  char *dir = g_dir_make_tmp ("belljar-info-XXXXXX", NULL);

  g_assert_nonnull (dir);
  return dir;
}

static char *
put_file (const char *dir, const char *name, const char *text)
{
  char *path = g_build_filename (dir, name, NULL);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static void
test_scan (void)
{
  static const char *const folders[] = { "1", "10", "2", "03", "0", "-1", "x", "4x", ".build-abc", ".deleted-5",
                                         "99999999999999999999", " 7" };
  g_autofree char *dir = make_dir ();
  G_GNUC_UNUSED g_autofree char *file = put_file (dir, "11", "a file");
  g_autofree char *link = g_build_filename (dir, "12", NULL);
  g_autoptr(GArray) versions = NULL, none = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    {
      g_autofree char *path = g_build_filename (dir, folders[i], NULL);

      g_assert_cmpint (g_mkdir (path, 0755), ==, 0);
    }
  g_assert_cmpint (symlink ("1", link), ==, 0);
  versions = bj_image_scan_versions (dir);
  g_assert_cmpuint (versions->len, ==, 3);
  g_assert_cmpuint (g_array_index (versions, guint, 0), ==, 1);
  g_assert_cmpuint (g_array_index (versions, guint, 1), ==, 2);
  g_assert_cmpuint (g_array_index (versions, guint, 2), ==, 10);
  g_assert_true (bj_remove_tree (dir, NULL));
  none = bj_image_scan_versions (dir);
  g_assert_cmpuint (none->len, ==, 0);
}

static void
test_round_trip (void)
{
  g_autofree char *dir = make_dir ();
  const BjImageInfo info = { .name = "tiny", .version = 7, .os = "Tiny 1", .recipe = "tiny", .api = 1,
                             .cmdline = "root=/dev/vda rw", .desktop = TRUE, .built_at = 1790000000, .build_seconds = 12.5,
                             .kernel = { "sha256:aa", 1, 1790000000123456789, G_MAXUINT64 } };
  g_autoptr(GError) error = NULL;
  g_autoptr(BjImageInfo) read = NULL;

  g_assert_true (bj_image_info_write (dir, &info, &error));
  g_assert_no_error (error);
  read = bj_image_info_read (dir, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (read->cmdline, ==, info.cmdline);
  g_assert_cmpuint (read->version, ==, 7);
  g_assert_true (read->desktop);
  g_assert_cmpfloat (read->build_seconds, ==, 12.5);
  g_assert_cmpstr (read->kernel.digest, ==, "sha256:aa");
  g_assert_cmpint (read->kernel.mtime_ns, ==, info.kernel.mtime_ns);
  g_assert_true (read->kernel.inode == G_MAXUINT64);
  g_assert_null (read->initrd.digest);
  g_assert_true (bj_remove_tree (dir, NULL));
}

static void
test_bad_info (void)
{
  static const char *const cases[] = {
    "",
    "[image]\nname=a\n",
    "[image]\nname=a\nos=b\nrecipe=a\ncmdline=c\nversion=x\napi=1\nbuilt-at=1\nbuild-seconds=1\n",
    "[image]\nname=a\nos=b\nrecipe=a\ncmdline=c\nversion=1\napi=1\nbuilt-at=1\nbuild-seconds=1\n[kernel]\ndigest=x\n",
    "[image]\nname=a\nos=b\nrecipe=a\ncmdline=c\nversion=1\napi=1\nbuilt-at=1\nbuild-seconds=1\ndesktop=2x\n",
    "\177ELF",
  };
  g_autofree char *dir = make_dir ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = put_file (dir, "image.ini", cases[i]);
      g_autoptr(GError) error = NULL;

      g_assert_null (bj_image_info_read (dir, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, path));
    }
  g_assert_true (bj_remove_tree (dir, NULL));
}

static void
test_seal (void)
{
  g_autofree char *dir = make_dir ();
  g_autofree char *path = put_file (dir, "disk", "abc");
  g_auto(BjImageSeal) seal = { 0 };
  g_autoptr(GError) error = NULL;
  struct stat st;

  g_assert_true (bj_image_seal_make (&seal, path, NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (seal.digest, ==, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  g_assert_cmpint (stat (path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0444);
  g_assert_null (bj_image_seal_differs (&seal, path));
  g_unlink (path);
  g_assert_cmpstr (bj_image_seal_differs (&seal, path), ==, "is not there");
  g_assert_cmpint (symlink ("/etc/passwd", path), ==, 0);
  g_assert_cmpstr (bj_image_seal_differs (&seal, path), ==, "is not there");
  g_assert_null (bj_image_digest (path, NULL, NULL, &error));
  g_assert_nonnull (error);
  g_assert_true (bj_remove_tree (dir, NULL));
}

static void
test_digest_cancelled (void)
{
  g_autofree char *dir = make_dir ();
  g_autofree char *path = put_file (dir, "disk", "abc");
  g_autoptr(GCancellable) cancellable = g_cancellable_new ();
  g_autoptr(GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_null (bj_image_digest (path, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_true (bj_remove_tree (dir, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/image-info/scan", test_scan);
  g_test_add_func ("/image-info/round-trip", test_round_trip);
  g_test_add_func ("/image-info/bad", test_bad_info);
  g_test_add_func ("/image-info/seal", test_seal);
  g_test_add_func ("/image-info/digest-cancelled", test_digest_cancelled);
  return g_test_run ();
}
