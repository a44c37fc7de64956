/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-initrd.h"

#include <string.h>
#include <sys/stat.h>

static void
test_modprobe (void)
{
  static const struct { const char *output, *expected; } cases[] = {
    { "insmod /m/a.ko \ninsmod /m/b.ko option=1\n", "/m/a.ko|/m/b.ko" },
    { "builtin ext4\ninsmod /m/b.ko\n", "/m/b.ko" },
    { "insmod /m/a.ko\ninsmod /m/a.ko\n", "/m/a.ko" },
    { "install /bin/sh\ninsmod relative.ko\n", "" },
    { "", "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
      g_autofree char *joined = NULL;

      bj_initrd_parse_modprobe (cases[i].output, paths);
      g_ptr_array_add (paths, NULL);
      joined = g_strjoinv ("|", (char **) paths->pdata);
      g_assert_cmpstr (joined, ==, cases[i].expected);
    }
}

/* Reads one header back; returns where the next begins. */
static gsize
check_member (const char *data, gsize at, const char *name, guint mode, const char *content)
{
  g_autofree char *mode_text = g_strndup (data + at + 14, 8);
  g_autofree char *size_text = g_strndup (data + at + 54, 8);
  gsize size = g_ascii_strtoull (size_text, NULL, 16);
  gsize body = (at + 110 + strlen (name) + 1 + 3) / 4 * 4;

  g_assert_cmpmem (data + at, 6, "070701", 6);
  g_assert_cmpstr (data + at + 110, ==, name);
  g_assert_cmpuint (g_ascii_strtoull (mode_text, NULL, 16), ==, mode);
  g_assert_cmpmem (data + body, (int) size, content, (int) strlen (content));
  return (body + size + 3) / 4 * 4;
}

static GBytes *
make_archive (void)
{
  g_autoptr(BjCpio) cpio = bj_cpio_new ();

  bj_cpio_add (cpio, "dev", S_IFDIR | 0755, NULL, 0);
  bj_cpio_add (cpio, "init", S_IFREG | 0755, "hello", 5);
  return bj_cpio_finish (cpio);
}

static void
test_cpio (void)
{
  g_autoptr(GBytes) first = make_archive ();
  g_autoptr(GBytes) second = make_archive ();
  const char *data = g_bytes_get_data (first, NULL);
  gsize at = check_member (data, 0, "dev", S_IFDIR | 0755, "");

  at = check_member (data, at, "init", S_IFREG | 0755, "hello");
  at = check_member (data, at, "TRAILER!!!", 0, "");
  g_assert_cmpuint (at, ==, g_bytes_get_size (first));
  g_assert_true (g_bytes_equal (first, second));
}

static void
test_no_modules (void)
{
  static const char *const modules[] = { "virtio_blk", NULL };
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_initrd_write ("/nonexistent/initrd", "/nonexistent", "1.2.3", modules, "/bin/true", NULL, &error));
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, "virtio_blk"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/initrd/modprobe", test_modprobe);
  g_test_add_func ("/initrd/cpio", test_cpio);
  g_test_add_func ("/initrd/no-modules", test_no_modules);
  return g_test_run ();
}
