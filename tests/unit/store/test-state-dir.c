/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-state-dir.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;

static void
test_length (void)
{
  /* 107 bytes less "/engine/lib/qemu/domain-999-bj-abcdefgh-x/monitor.sock" */
  const gsize most = 107 - strlen ("/engine/lib/qemu/domain-999-bj-abcdefgh-x/monitor.sock");
  g_autofree char *fits = g_strnfill (most, 'x');
  g_autofree char *too_long = g_strnfill (most + 1, 'x');
  g_autofree char *number = g_strdup_printf ("at most %zu", most);
  g_autoptr(GError) error = NULL;

  fits[0] = too_long[0] = '/';
  g_assert_true (bj_state_dir_check_length (fits, &error));
  g_assert_no_error (error);
  g_assert_false (bj_state_dir_check_length (too_long, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, too_long));
  g_assert_nonnull (strstr (error->message, number));
}

static void
assert_mode (const char *path, mode_t mode)
{
  struct stat info;

  g_assert_cmpint (stat (path, &info), ==, 0);
  g_assert_cmpint (info.st_mode & 07777, ==, mode);
}

static void
test_make_and_lock (void)
{
  g_autofree char *parent = g_build_filename (folder, "a", NULL);
  g_autofree char *path = g_build_filename (parent, "state", NULL);
  g_autofree char *keys = g_build_filename (path, "keys", NULL);
  g_autofree char *sessions = g_build_filename (path, "sessions", NULL);
  g_autofree char *pid = g_strdup_printf ("(pid %d)", (int) getpid ());
  g_autoptr(GError) error = NULL;
  mode_t old = umask (077);
  int lock = bj_state_dir_open (path, &error);

  umask (old);
  g_assert_no_error (error);
  g_assert_cmpint (lock, >=, 0);
  assert_mode (parent, 0755);
  assert_mode (path, 0711);
  assert_mode (sessions, 0711);
  assert_mode (keys, 0700);
  g_assert_cmpuint (bj_state_dir_get_free (path), >, 0);

  g_assert_cmpint (bj_state_dir_open (path, &error), ==, -1);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_BUSY);
  g_assert_nonnull (strstr (error->message, pid));
  g_clear_error (&error);

  close (lock);
  lock = bj_state_dir_open (path, &error); /* and again */
  g_assert_cmpint (lock, >=, 0);
  close (lock);
}

static void
test_not_a_folder (void)
{
  g_autofree char *path = g_build_filename (folder, "file", NULL);
  g_autofree char *below = g_build_filename (path, "state", NULL);
  g_autoptr(GError) error = NULL;

  g_assert_true (g_file_set_contents (path, "x", 1, NULL));
  g_assert_cmpint (bj_state_dir_open (path, &error), ==, -1);
  g_assert_nonnull (strstr (error->message, "is not a folder"));
  g_clear_error (&error);
  g_assert_cmpint (bj_state_dir_open (below, &error), ==, -1);
  g_assert_nonnull (strstr (error->message, path));
}

/* Whoever can write into it owns what is in it. */
static void
test_open_to_others (void)
{
  static const struct { const char *below; mode_t mode; } bad[] = {
    { NULL, 0777 }, { NULL, 0775 }, { NULL, 01777 }, { "keys", 0722 }, { "images", 0733 }, { "sessions", 0773 },
  };
  g_autofree char *path = g_build_filename (folder, "open", NULL);
  int lock = bj_state_dir_open (path, NULL);

  close (lock);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autofree char *changed = g_build_filename (path, bad[i].below, NULL);
      g_autoptr(GError) error = NULL;

      g_assert_cmpint (chmod (changed, bad[i].mode), ==, 0);
      g_assert_cmpint (bj_state_dir_open (path, &error), ==, -1);
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, changed));
      g_assert_nonnull (strstr (error->message, "chmod go-w"));
      g_assert_cmpint (chmod (changed, 0755), ==, 0);
    }
  if (geteuid () == 0)
    {
      g_autofree char *keys = g_build_filename (path, "keys", NULL);
      g_autoptr(GError) error = NULL;

      g_assert_cmpint (chown (keys, 1000, 0), ==, 0);
      g_assert_cmpint (bj_state_dir_open (path, &error), ==, -1);
      g_assert_nonnull (strstr (error->message, "belongs to uid 1000"));
      g_assert_cmpint (chown (keys, 0, 0), ==, 0);
    }
  lock = bj_state_dir_open (path, NULL);
  g_assert_cmpint (lock, >=, 0);
  close (lock);
}

static void
test_open_way (void)
{
  g_autofree char *way = g_build_filename (folder, "way", NULL);
  g_autofree char *path = g_build_filename (way, "a", "state", NULL);
  g_autoptr(GError) error = NULL;
  int lock = bj_state_dir_open (path, NULL);

  g_assert_cmpint (lock, >=, 0);
  close (lock);
  g_assert_cmpint (chmod (way, 0777), ==, 0);
  g_assert_cmpint (bj_state_dir_open (path, &error), ==, -1);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, way));
  g_assert_cmpint (chmod (way, 01777), ==, 0); /* as /tmp */
  lock = bj_state_dir_open (path, NULL);
  g_assert_cmpint (lock, >=, 0);
  close (lock);
}

static void
test_lost_database (void)
{
  g_autofree char *path = g_build_filename (folder, "lost", NULL);
  g_autofree char *database = g_build_filename (path, "belljar.db", NULL);
  g_autofree char *session = g_build_filename (path, "sessions", "abcdefgh", NULL);
  g_autoptr(GError) error = NULL;
  int lock = bj_state_dir_open (path, NULL);

  close (lock);
  g_assert_true (bj_state_dir_check_database (path, NULL)); /* the first start */
  g_assert_true (g_file_set_contents (database, "", 0, NULL));
  g_assert_true (bj_state_dir_check_database (path, NULL)); /* one that ended early */
  g_assert_cmpint (g_mkdir (session, 0711), ==, 0);
  g_assert_true (bj_state_dir_has_sessions (path));
  g_assert_false (bj_state_dir_check_database (path, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "is empty"));
  g_clear_error (&error);
  g_assert_cmpint (unlink (database), ==, 0);
  g_assert_false (bj_state_dir_check_database (path, &error));
  g_assert_nonnull (strstr (error->message, "is missing"));
  g_assert_true (g_file_set_contents (database, "SQLite", -1, NULL)); /* what is in it is for others to judge */
  g_assert_true (bj_state_dir_check_database (path, NULL));
}

int
main (int argc, char **argv)
{
  const char *rm[] = { "rm", "-rf", NULL, NULL };
  int result;

  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("bjs-XXXXXX", NULL);
  g_test_add_func ("/state-dir/length", test_length);
  g_test_add_func ("/state-dir/make-and-lock", test_make_and_lock);
  g_test_add_func ("/state-dir/not-a-folder", test_not_a_folder);
  g_test_add_func ("/state-dir/open-to-others", test_open_to_others);
  g_test_add_func ("/state-dir/open-way", test_open_way);
  g_test_add_func ("/state-dir/lost-database", test_lost_database);
  result = g_test_run ();
  rm[2] = folder;
  g_spawn_sync (NULL, (char **) rm, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL);
  g_free (folder);
  return result;
}
