/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

#include "bj-error.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

/* What a guest can put into work/; each of it for real. Tests that need root say so and are skipped without. */

static void
test_dot_git (Fixture *self, gconstpointer data)
{
  g_autofree char *marker = g_build_filename (self->dir, "ran", NULL);
  g_autofree char *hook = g_strdup_printf ("#!/bin/sh\ntouch %s\n", marker);
  g_autofree char *config = g_strdup_printf ("[core]\n\tfsmonitor = touch %s\n\thooksPath = .git/hooks\n"
                                             "[filter \"x\"]\n\tclean = touch %s\n", marker, marker);
  g_autofree char *attributes = NULL;
  struct stat st;

  fixture_run (self, "projects/p/work", (const char *[]) { "git", "init", "-q", ".", NULL });
  fixture_put (self, ".git/config", config);
  fixture_put (self, ".git/hooks/pre-commit", hook);
  g_assert_cmpint (fchmodat (self->work, ".git/hooks/pre-commit", 0755, 0), ==, 0);
  fixture_put (self, ".gitattributes", "* filter=x text=auto\n");
  fixture_put (self, "crlf", "a\r\nb\r\n");
  fixture_put_folder (self, "sub");
  fixture_put (self, "sub/.git", "gitdir: /etc\n");
  fixture_put_folder (self, "sub/.GIT");
  fixture_put_folder (self, "link");
  fixture_put_link (self, "link/.git", "/etc");
  if (geteuid () == 0)
    fixture_run (self, ".", (const char *[]) { "chown", "-hR", "1910000000", "projects/p/work/.git", NULL });
  fixture_write (self);
  g_assert_cmpint (fstatat (self->work, ".git", &st, AT_SYMLINK_NOFOLLOW), ==, -1);
  g_assert_cmpint (fstatat (self->work, ".git-from-guest-1", &st, AT_SYMLINK_NOFOLLOW), ==, 0);
  g_assert_cmpint (fstatat (self->work, "sub/.git", &st, AT_SYMLINK_NOFOLLOW), ==, -1);
  g_assert_cmpint (fstatat (self->work, "sub/.GIT", &st, AT_SYMLINK_NOFOLLOW), ==, -1);
  g_assert_cmpint (fstatat (self->work, "link/.git", &st, AT_SYMLINK_NOFOLLOW), ==, -1);
  g_assert_true (fixture_warned (self, "\".git\" was moved aside to .git-from-guest-1"));
  g_assert_true (fixture_warned (self, "\"sub/.GIT\" was moved aside"));
  g_assert_true (fixture_warned (self, "\"link/.git\" was moved aside"));
  g_assert_true (fixture_warned (self, "\".git-from-guest-1\" was left out"));
  g_assert_null (fixture_blob (self, ".git-from-guest-1/config"));
  attributes = fixture_blob (self, "crlf");
  g_assert_cmpstr (attributes, ==, "a\r\nb\r\n");
  g_assert_false (g_file_test (marker, G_FILE_TEST_EXISTS));
  g_assert_cmpuint (self->files, ==, 2);
  fixture_put_folder (self, ".git");
  fixture_write (self);
  g_assert_true (fixture_warned (self, "\".git\" was moved aside to .git-from-guest-2"));
}

static void
test_links (Fixture *self, gconstpointer data)
{
  g_autofree char *outside = g_build_filename (self->dir, "outside", NULL);
  g_autofree char *text = NULL;
  struct stat st;

  g_assert_true (g_file_set_contents (outside, "secret", -1, NULL));
  fixture_put_link (self, "passwd", "/etc/passwd");
  fixture_put_link (self, "up", "../../..");
  fixture_put_link (self, "outside", outside);
  fixture_put_link (self, "loop", "loop");
  fixture_put_link (self, "a", "b");
  fixture_put_link (self, "b", "a");
  fixture_put_link (self, "bytes", "\xff\n%");
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, 7);
  g_assert_cmpuint (g_strv_length (self->warnings), ==, 0);
  g_assert_null (fixture_blob (self, "passwd"));
  g_assert_null (fixture_blob (self, "up/outside"));
  g_assert_cmpint (stat (outside, &st), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, geteuid ());
  g_assert_cmpint (stat ("/etc/passwd", &st), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, 0);
  text = fixture_run (self, "projects/p/repo.git", (const char *[]) { "sh", "-c", "git cat-file --batch-all-objects --batch", NULL });
  g_assert_null (strstr (text, "secret"));
  g_assert_null (strstr (text, "root:"));
}

static void
make_socket (Fixture *self, const char *name)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  g_auto(BjFd) fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_autofree char *path = g_strdup_printf ("/proc/self/fd/%d/%s", self->work, name);

  g_strlcpy (address.sun_path, path, sizeof address.sun_path);
  g_assert_cmpint (bind (fd, (struct sockaddr *) &address, sizeof address), ==, 0);
}

static void
test_special_files (Fixture *self, gconstpointer data)
{
  struct stat st;

  g_assert_cmpint (mkfifoat (self->work, "fifo", 0644), ==, 0);
  make_socket (self, "socket");
  fixture_put (self, "setuid", "x");
  fixture_put (self, "ok", "x");
  if (geteuid () == 0)
    {
      g_assert_cmpint (mknodat (self->work, "disk", S_IFBLK | 0666, makedev (8, 0)), ==, 0);
      g_assert_cmpint (mknodat (self->work, "mem", S_IFCHR | 0666, makedev (1, 1)), ==, 0);
      fixture_give (self, "disk", GUEST);
      fixture_give (self, "mem", GUEST);
      fixture_give (self, "fifo", GUEST);
      fixture_give (self, "socket", GUEST);
    }
  g_assert_cmpint (fchmodat (self->work, "setuid", 06755, 0), ==, 0);
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, 2);
  g_assert_true (fixture_warned (self, "\"fifo\" was left out: it is a FIFO"));
  g_assert_true (fixture_warned (self, "\"socket\" was left out: it is a socket"));
  g_assert_cmpint (fstatat (self->work, "setuid", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0755);
  g_assert_cmpuint (st.st_uid, ==, self->uid);
  if (geteuid () != 0)
    return;
  g_assert_true (fixture_warned (self, "\"disk\" was left out: it is a device"));
  g_assert_true (fixture_warned (self, "\"mem\" was left out: it is a device"));
}

static void
test_names (Fixture *self, gconstpointer data)
{
  static const char *const kept[] = { "new\nline", "\"quotes\"'", "\xff\xfe", "-rf", " ", "a\\b", "\x1b[31m", "%41", "\xe2\x80\xaeoder" };
  static const char *const refused[] = { "git~1", ".git ", ".git...", ".git::$INDEX_ALLOCATION", ".g\xe2\x80\x8cit" };
  g_autofree char *longest = g_strnfill (255, 'n');

  for (guint i = 0; i < G_N_ELEMENTS (kept); i++)
    fixture_put (self, kept[i], "x");
  for (guint i = 0; i < G_N_ELEMENTS (refused); i++)
    fixture_put (self, refused[i], "x");
  fixture_put (self, longest, "x");
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, G_N_ELEMENTS (kept) + 1);
  g_assert_cmpuint (g_strv_length (self->warnings), ==, G_N_ELEMENTS (refused));
  g_assert_true (fixture_warned (self, "\"git~1\" was left out: git refuses this name"));
  g_assert_true (fixture_warned (self, "\".g%E2%80%8Cit\" was left out"));
  for (guint i = 0; i < G_N_ELEMENTS (kept); i++)
    {
      g_autofree char *text = fixture_blob (self, kept[i]);

      g_assert_cmpstr (text, ==, "x");
    }
  fixture_run (self, "projects/p/repo.git", (const char *[]) { "git", "fsck", "--strict", NULL });
}

static void
test_warnings_are_printable (Fixture *self, gconstpointer data)
{
  g_assert_cmpint (mkfifoat (self->work, "a\n\x1b[2J\xff\xe2\x80\xae", 0644), ==, 0);
  fixture_give (self, "a\n\x1b[2J\xff\xe2\x80\xae", GUEST);
  fixture_write (self);
  g_assert_cmpstr (self->warnings[0], ==, "\"a%0A%1B[2J%FF%E2%80%AE\" was left out: it is a FIFO");
  g_assert_null (self->warnings[1]);
}

static void
test_warnings_are_capped (Fixture *self, gconstpointer data)
{
  for (guint i = 0; i < 500; i++)
    {
      g_autofree char *name = g_strdup_printf ("fifo%u", i);

      g_assert_cmpint (mkfifoat (self->work, name, 0644), ==, 0);
      fixture_give (self, name, GUEST);
    }
  fixture_write (self);
  g_assert_cmpuint (g_strv_length (self->warnings), ==, 101);
  g_assert_true (fixture_warned (self, "400 more warnings"));
}

/* Goes down @levels folders "d", made one by one, so that no path is ever too long. Returns: fd of the last */
static int
nest (Fixture *self, guint levels)
{
  int at = openat (self->work, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  for (guint i = 0; i < levels; i++)
    {
      int below;

      g_assert_cmpint (mkdirat (at, "d", 0755), ==, 0);
      below = openat (at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      g_assert_cmpint (below, >=, 0);
      if (geteuid () == 0)
        g_assert_cmpint (fchown (below, GUEST, GUEST), ==, 0);
      close (at);
      at = below;
    }
  return at;
}

static void
put_at (int folder, const char *name)
{
  g_auto(BjFd) fd = openat (folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

  g_assert_cmpint (fd, >=, 0);
  if (geteuid () == 0)
    g_assert_cmpint (fchown (fd, GUEST, GUEST), ==, 0);
}

static void
test_depth (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) deep = nest (self, 200);
  struct stat st;

  put_at (deep, "leaf");
  put_at (deep, ".git");
  put_at (self->work, "top");
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, 1);
  g_assert_true (fixture_warned (self, "was left out: more than 128 folders deep"));
  g_assert_cmpint (fstatat (deep, ".git", &st, 0), ==, -1); /* moved aside even there */
  g_assert_cmpint (fstatat (deep, "leaf", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, self->uid);
}

static void
test_delete_deep (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_auto(BjFd) deep = nest (self, 5000);
  g_autofree char *folder = g_build_filename (self->dir, "projects", NULL);
  g_autofree char *outside = g_build_filename (self->dir, "outside", NULL);
  g_autoptr(GDir) left = NULL;

  g_assert_true (g_file_set_contents (outside, "kept", -1, NULL));
  put_at (deep, "leaf");
  fixture_put_link (self, "out", outside);
  fixture_put_link (self, "up", "../..");
  for (guint i = 0; i < 10000; i++)
    {
      g_autofree char *name = g_strdup_printf ("f%u", i);

      put_at (self->work, name);
    }
  bj_project_store_delete (self->store, "p", &error);
  g_assert_no_error (error);
  left = g_dir_open (folder, 0, NULL);
  g_assert_null (g_dir_read_name (left));
  g_assert_true (g_file_test (outside, G_FILE_TEST_EXISTS));
  g_assert_null (bj_project_store_lookup (self->store, "p", NULL));
  g_assert_true (bj_project_store_create (self->store, "p", self->uid, self->uid, &error));
}

static void
test_foreign_owners (Fixture *self, gconstpointer data)
{
  struct stat st;

  if (geteuid () != 0)
    {
      g_test_skip ("needs root");
      return;
    }
  fixture_put (self, "closed", "1");
  fixture_put_folder (self, "shut");
  fixture_put (self, "shut/f", "2");
  g_assert_cmpint (fchmodat (self->work, "shut", 0, 0), ==, 0);
  g_assert_cmpint (fchmodat (self->work, "closed", 0, 0), ==, 0);
  fixture_give (self, "closed", 1910000000u + 77);
  fixture_put (self, "roots", "not the guest's");
  fixture_give (self, "roots", 0);
  g_assert_cmpint (fchmodat (self->work, "roots", 0600, 0), ==, 0);
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, 2);
  g_assert_cmpint (fstatat (self->work, "shut/f", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, self->uid);
  g_assert_cmpint (fstatat (self->work, "closed", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, self->uid);
  g_assert_cmpint (fstatat (self->work, "roots", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0600);
  g_assert_true (fixture_warned (self, "\"roots\" belongs to another user of this system"));
  g_assert_true (fixture_warned (self, "\"roots\" was left out: its owner may not read it"));
}

static void
test_hard_links (Fixture *self, gconstpointer data)
{
  g_autofree char *outside = g_build_filename (self->dir, "outside", NULL);
  struct stat st;

  if (geteuid () != 0)
    {
      g_test_skip ("needs root");
      return;
    }
  g_assert_true (g_file_set_contents (outside, "root's", -1, NULL));
  g_assert_cmpint (chmod (outside, 0600), ==, 0);
  g_assert_cmpint (linkat (AT_FDCWD, outside, self->work, "stolen", 0), ==, 0);
  fixture_put (self, "one", "x");
  g_assert_cmpint (linkat (self->work, "one", self->work, "two", 0), ==, 0);
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, 2);
  g_assert_cmpint (stat (outside, &st), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0600);
}

static void
test_caps (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) fd = -1;

  fixture_put (self, "sparse", "");
  fd = openat (self->work, "sparse", O_WRONLY | O_CLOEXEC);
  g_assert_cmpint (ftruncate (fd, (off_t) 1 << 40), ==, 0);
  fixture_put (self, "ok", "x");
  fixture_write (self);
  g_assert_cmpuint (self->files, ==, 1);
  g_assert_true (fixture_warned (self, "\"sparse\" was left out: it is larger than 1 GiB"));
}

static void
test_stream (Fixture *self, gconstpointer data)
{
  g_auto(BjFd) fd = -1;
  g_autofree char *git = NULL;

  fixture_put (self, "large", "head");
  fd = openat (self->work, "large", O_WRONLY | O_CLOEXEC);
  g_assert_cmpint (ftruncate (fd, 20 * 1024 * 1024 + 1), ==, 0);
  fixture_write (self);
  git = fixture_run (self, "projects/p/work",
                     (const char *[]) { "sh", "-c",
                                        "export GIT_DIR=../../../g GIT_WORK_TREE=.; git init -q && git add -A && git write-tree", NULL });
  g_assert_cmpstr (g_strchomp (git), ==, self->tree);
}

/* The message holds a number for people: how long it takes, and git itself. */
static void
test_many_files (Fixture *self, gconstpointer data)
{
  const char *git[] = { "sh", "-c",
                        "export GIT_DIR=../../../g GIT_WORK_TREE=.; git init -q && git add -A && git write-tree", NULL };
  g_autofree char *filler = g_strnfill (1000, '.');
  g_autofree char *tree = NULL;
  gint64 begun, written, again, done;

  for (guint i = 0; i < 100; i++)
    {
      g_autofree char *folder = g_strdup_printf ("d%u", i);

      fixture_put_folder (self, folder);
      for (guint k = 0; k < 100; k++)
        {
          g_autofree char *name = g_strdup_printf ("d%u/f%u", i, k);
          g_autofree char *text = g_strdup_printf ("%u %u %s", i, k, filler);

          fixture_put (self, name, text);
        }
    }
  begun = g_get_monotonic_time ();
  fixture_write (self);
  written = g_get_monotonic_time ();
  g_assert_cmpuint (self->files, ==, 10000);
  fixture_write (self);
  again = g_get_monotonic_time ();
  tree = fixture_run (self, "projects/p/work", git);
  done = g_get_monotonic_time ();
  g_assert_cmpstr (g_strchomp (tree), ==, self->tree);
  g_test_message ("10,000 files of 1 kB: %.2f s, unchanged %.2f s, git add and write-tree %.2f s",
                  (double) (written - begun) / 1e6, (double) (again - written) / 1e6, (double) (done - again) / 1e6);
}

/* Swaps a file for a FIFO, a link and a folder, and its size, as fast as it can. */
static gpointer
churn (gpointer data)
{
  Fixture *self = data;

  for (guint i = 0; !g_atomic_int_get (&self->stop); i++)
    {
      g_auto(BjFd) fd = -1;

      unlinkat (self->work, "moving", 0);
      unlinkat (self->work, "moving", AT_REMOVEDIR);
      if (i % 4 == 0)
        mkfifoat (self->work, "moving", 0666);
      else if (i % 4 == 1)
        (void) !symlinkat ("/etc/shadow", self->work, "moving");
      else if (i % 4 == 2)
        mkdirat (self->work, "moving", 0777);
      else
        fd = openat (self->work, "moving", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
      if (fd >= 0)
        (void) !ftruncate (fd, (i % 7) * 3000000);
    }
  return NULL;
}

static void
test_changes_under_its_feet (Fixture *self, gconstpointer data)
{
  GThread *thread;
  struct stat st;

  for (guint i = 0; i < 200; i++)
    {
      g_autofree char *name = g_strdup_printf ("f%u", i);

      fixture_put (self, name, name);
    }
  thread = g_thread_new ("churn", churn, self);
  for (guint i = 0; i < 20; i++)
    {
      fixture_write (self);
      g_assert_cmpuint (self->files, >=, 200);
      g_assert_cmpuint (self->files, <=, 201);
    }
  g_atomic_int_set (&self->stop, 1);
  g_thread_join (thread);
  g_assert_cmpint (stat ("/etc/shadow", &st), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, 0);
}

static void
test_owner_swaps_folders (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_auto(BjTreeResult) result = { 0 };
  g_autofree char *trap = g_build_filename (self->dir, "trap", NULL);

  g_assert_cmpint (mkdir (trap, 0755), ==, 0);
  fixture_run (self, "projects/p", (const char *[]) { "mv", "repo.git", "real.git", NULL });
  fixture_run (self, "projects/p", (const char *[]) { "ln", "-s", trap, "repo.git", NULL });
  g_assert_false (bj_project_store_write_tree (self->store, "p", &result, NULL, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  fixture_run (self, "projects/p", (const char *[]) { "rm", "repo.git", NULL });
  fixture_run (self, "projects/p", (const char *[]) { "mkdir", "-p", "repo.git/objects", NULL });
  g_assert_null (bj_project_store_commit (self->store, "p", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "p", "m", NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_DENIED);
}

static void
test_cancel (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GCancellable) cancellable = g_cancellable_new ();
  g_auto(BjTreeResult) result = { 0 };

  g_cancellable_cancel (cancellable);
  g_assert_false (bj_project_store_write_tree (self->store, "p", &result, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  fixture_write (self); /* and nothing is held or left */
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  PROJECT_TEST ("/hostile/dot-git", test_dot_git);
  PROJECT_TEST ("/hostile/links", test_links);
  PROJECT_TEST ("/hostile/special-files", test_special_files);
  PROJECT_TEST ("/hostile/names", test_names);
  PROJECT_TEST ("/hostile/warnings-are-printable", test_warnings_are_printable);
  PROJECT_TEST ("/hostile/warnings-are-capped", test_warnings_are_capped);
  PROJECT_TEST ("/hostile/depth", test_depth);
  PROJECT_TEST ("/hostile/delete-deep", test_delete_deep);
  PROJECT_TEST ("/hostile/foreign-owners", test_foreign_owners);
  PROJECT_TEST ("/hostile/hard-links", test_hard_links);
  PROJECT_TEST ("/hostile/caps", test_caps);
  PROJECT_TEST ("/hostile/stream", test_stream);
  PROJECT_TEST ("/hostile/many-files", test_many_files);
  PROJECT_TEST ("/hostile/changes-under-its-feet", test_changes_under_its_feet);
  PROJECT_TEST ("/hostile/owner-swaps-folders", test_owner_swaps_folders);
  PROJECT_TEST ("/hostile/cancel", test_cancel);
  return g_test_run ();
}
