/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

#include "bj-error.h"

#include <string.h>

#define STRANGER 1234599u

/* A folder "src" beside the projects, its owner @uid. */
static int
make_source (Fixture *self, const char *script, uid_t uid)
{
  g_autofree char *path = g_build_filename (self->dir, "src", NULL);
  g_autofree char *owner = g_strdup_printf ("%u:%u", uid, uid);
  int fd;

  g_assert_cmpint (mkdir (path, 0755), ==, 0);
  fixture_run (self, "src", (const char *[]) { "sh", "-c", script, NULL });
  if (geteuid () == 0)
    fixture_run (self, ".", (const char *[]) { "chown", "-hR", owner, "src", NULL });
  fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_assert_cmpint (fd, >=, 0);
  return fd;
}

static void
count_calls (const char *phase, double fraction, gpointer data)
{
  guint *calls = data;

  g_assert_cmpfloat (fraction, <=, 1.0);
  (*calls)++;
}

static void
test_in (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) source = make_source (self, "mkdir -p a/b .git/hooks && echo 1 > a/b/f && echo x > .git/config && ln -s /etc/passwd l"
                                           " && mkfifo p && printf '#!' > run && chmod 4755 run", self->uid);
  guint calls = 0;
  g_autoptr(BjProgress) progress = bj_progress_new (count_calls, &calls);
  g_autofree char *text = NULL;
  g_autoptr(GError) error = NULL;
  struct stat st;

  bj_project_store_copy_in (self->store, "p", source, NULL, progress, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (calls, >, 0);
  g_assert_cmpint (fstatat (self->work, ".git", &st, AT_SYMLINK_NOFOLLOW), ==, -1);
  g_assert_cmpint (fstatat (self->work, "p", &st, AT_SYMLINK_NOFOLLOW), ==, -1);
  g_assert_cmpint (fstatat (self->work, "run", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0755);
  g_assert_cmpuint (st.st_uid, ==, self->uid);
  g_assert_cmpint (fstatat (self->work, "l", &st, AT_SYMLINK_NOFOLLOW), ==, 0);
  g_assert_true (S_ISLNK (st.st_mode));
  fixture_write (self);
  text = fixture_blob (self, "a/b/f");
  g_assert_cmpstr (text, ==, "1\n");
}

/* What stands in the project is replaced, not written through. */
static void
test_in_over_links (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) source = make_source (self, "echo new > f && mkdir d && echo new > d/f", self->uid);
  g_autofree char *outside = g_build_filename (self->dir, "outside", NULL);
  g_autofree char *folder = g_build_filename (self->dir, "folder", NULL);
  g_autofree char *text = NULL;
  g_autofree char *trap = g_build_filename (folder, "f", NULL);
  g_autoptr(GError) error = NULL;

  g_assert_true (g_file_set_contents (outside, "old", -1, NULL));
  g_assert_cmpint (mkdir (folder, 0777), ==, 0);
  g_assert_cmpint (chmod (folder, 0777), ==, 0);
  g_assert_cmpint (chmod (outside, 0666), ==, 0);
  fixture_put_link (self, "f", outside);
  fixture_put_link (self, "d", folder);
  bj_project_store_copy_in (self->store, "p", source, "", NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (outside, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, "old");
  g_assert_false (g_file_test (trap, G_FILE_TEST_EXISTS));
}

static void
test_in_file_and_paths (Fixture *self, gconstpointer data)
{
  static const char *const bad[] = { "../x", "a/../../x", "/etc/x", ".git/config", "a//b", "." };
  g_auto(BjFd) source = make_source (self, "echo content > f", self->uid);
  g_auto(BjFd) file = openat (source, "f", O_RDONLY | O_CLOEXEC);
  g_autoptr(GError) error = NULL;
  g_autofree char *text = NULL;

  bj_project_store_copy_in (self->store, "p", file, "new/folder/f", NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  fixture_write (self);
  text = fixture_blob (self, "new/folder/f");
  g_assert_cmpstr (text, ==, "content\n");
  g_assert_false (bj_project_store_copy_in (self->store, "p", file, "", NULL, NULL, NULL, &error));
  g_assert_nonnull (error);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_clear_error (&error);
      g_assert_false (bj_project_store_copy_in (self->store, "p", file, bad[i], NULL, NULL, NULL, &error));
      g_assert_nonnull (error);
    }
}

static gboolean
names (GStrv left_out, const char *part)
{
  for (guint i = 0; left_out[i] != NULL; i++)
    if (strstr (left_out[i], part) != NULL)
      return TRUE;
  return FALSE;
}

/* Whoever copies is told what was not copied, and one file that cannot be read does not end the copy. */
static void
test_left_out (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) source = make_source (self, "mkdir .git sub && echo g > .git/HEAD && mkfifo sub/pipe && echo z > z", OWNER);
  g_auto(BjFd) proc = open ("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_auto(GStrv) left_out = NULL;
  g_autoptr(GError) error = NULL;
  struct stat st;

  bj_project_store_copy_in (self->store, "p", source, "", NULL, NULL, &left_out, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (left_out), ==, 2);
  g_assert_true (names (left_out, "\".git\" was left out"));
  g_assert_true (names (left_out, "\"sub/pipe\" was left out"));
  g_assert_cmpint (fstatat (self->work, "z", &st, 0), ==, 0);
  g_strfreev (g_steal_pointer (&left_out));
  bj_project_store_copy_in (self->store, "p", proc, "proc", NULL, NULL, &left_out, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (left_out), >, 0);
}

/* Only the owner's rights count, not the daemon's. */
static void
test_in_rights (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) source = make_source (self, "echo s > secret && chmod 600 secret && echo o > open && chmod 644 open", STRANGER);
  g_autoptr(GError) error = NULL;
  struct stat st;

  if (geteuid () != 0)
    {
      g_test_skip ("needs root");
      return;
    }
  bj_project_store_copy_in (self->store, "p", source, "", NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (fstatat (self->work, "secret", &st, 0), ==, -1);
  g_assert_cmpint (fstatat (self->work, "open", &st, 0), ==, 0);
}

static void
test_out (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) target = make_source (self, "ln -s /etc d", geteuid () == 0 ? STRANGER : geteuid ());
  g_autoptr(GError) error = NULL;
  g_autofree char *text = NULL;
  struct stat st;
  uid_t uid = geteuid () == 0 ? STRANGER : geteuid ();
  g_auto(GStrv) left_out = NULL;

  fixture_put (self, "f", "text");
  fixture_put_folder (self, "d");
  fixture_put (self, "d/belljar-test", "x");
  bj_project_store_copy_out (self->store, "p", target, uid, uid, "f", NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (fstatat (target, "f", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, uid);
  bj_project_store_copy_out (self->store, "p", target, uid, uid, "", NULL, NULL, &left_out, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_strv_length (left_out), ==, 1);
  g_assert_true (names (left_out, "\"d\" was left out"));
  g_assert_false (g_file_test ("/etc/belljar-test", G_FILE_TEST_EXISTS));
  text = fixture_run (self, "src", (const char *[]) { "cat", "f", NULL });
  g_assert_cmpstr (text, ==, "text");
  g_assert_false (bj_project_store_copy_out (self->store, "p", target, uid, uid, "none", NULL, NULL, NULL, &error));
  g_assert_cmpstr (error->message, ==, "There is no “none” in the project");
  g_clear_error (&error);
  if (geteuid () != 0)
    return;
  g_assert_cmpint (fchmod (target, 0755), ==, 0);
  g_assert_false (bj_project_store_copy_out (self->store, "p", target, STRANGER + 1, STRANGER + 1, "f", NULL, NULL, NULL, &error));
  g_assert_nonnull (error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  PROJECT_TEST ("/copy/in", test_in);
  PROJECT_TEST ("/copy/left-out", test_left_out);
  PROJECT_TEST ("/copy/in-over-links", test_in_over_links);
  PROJECT_TEST ("/copy/in-file-and-paths", test_in_file_and_paths);
  PROJECT_TEST ("/copy/in-rights", test_in_rights);
  PROJECT_TEST ("/copy/out", test_out);
  return g_test_run ();
}
