/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void
test_names (void)
{
  for (guint code = 0; code < BJ_N_ERRORS; code++)
    {
      const char *name = bj_error_get_name ((BjError) code);

      g_assert_true (g_str_has_prefix (name, "org.belljar1.Error."));
      g_assert_cmpuint (bj_error_code_from_name (name, BJ_ERROR_FAILED), ==, code);
    }
  g_assert_cmpuint (bj_error_code_from_name ("org.belljar1.Error.Invented", BJ_ERROR_BUSY), ==, BJ_ERROR_BUSY);
  g_assert_cmpuint (bj_error_code_from_name (NULL, BJ_ERROR_BUSY), ==, BJ_ERROR_BUSY);
}

static void
test_foreign (void)
{
  static const struct
  {
    int code;
    BjError ours;
  } cases[] = {
    { G_IO_ERROR_CANCELLED, BJ_ERROR_CANCELLED }, { G_IO_ERROR_NO_SPACE, BJ_ERROR_NO_SPACE },
    { G_IO_ERROR_NOT_FOUND, BJ_ERROR_NOT_FOUND }, { G_IO_ERROR_EXISTS, BJ_ERROR_EXISTS },
    { G_IO_ERROR_PENDING, BJ_ERROR_FAILED },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) foreign = g_error_new_literal (G_IO_ERROR, cases[i].code, "what happened");
      g_autoptr(GError) ours = bj_error_to_bus (foreign);

      g_assert_error (ours, BJ_ERROR, (int) cases[i].ours);
      g_assert_cmpstr (ours->message, ==, "what happened");
    }
}

static void
test_sealed (void)
{
  g_autoptr(GBytes) bytes = g_bytes_new_static ("content", 7);
  g_auto(BjFd) fd = bj_fd_seal_bytes ("test", bytes, NULL);
  g_autoptr(GBytes) back = bj_fd_read_to_end (fd, 100, NULL);
  g_autoptr(GError) error = NULL;

  g_assert_true (g_bytes_equal (bytes, back));
  g_assert_cmpint (write (fd, "x", 1), ==, -1);
  g_assert_cmpint (ftruncate (fd, 0), ==, -1);
  g_assert_cmpint (fcntl (fd, F_GET_SEALS), ==, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  lseek (fd, 0, SEEK_SET);
  g_assert_null (bj_fd_read_to_end (fd, 6, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/error/names", test_names);
  g_test_add_func ("/error/foreign", test_foreign);
  g_test_add_func ("/fd/sealed", test_sealed);
  return g_test_run ();
}
