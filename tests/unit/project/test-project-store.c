/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

#include "bj-error.h"

#include <string.h>

static void
test_create (Fixture *self, gconstpointer data)
{
  static const char *const bad[] = { "", "../x", "a/b", "UPPER", "-x", ".new-1" };
  g_autoptr(GError) error = NULL;
  g_autoptr(BjProjectRow) row = bj_project_store_lookup (self->store, "p", &error);
  struct stat st;

  g_assert_no_error (error);
  g_assert_cmpuint (row->owner_uid, ==, self->uid);
  g_assert_cmpint (fstatat (self->work, ".", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, self->uid);
  g_assert_cmpint (fstatat (self->work, "../repo.git", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_uid, ==, geteuid ());
  g_assert_cmpuint (st.st_mode & 07777, ==, 0700);
  g_assert_cmpint (fstatat (self->work, "..", &st, 0), ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0700);
  g_assert_false (bj_project_store_create (self->store, "p", self->uid, 0, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_EXISTS);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_clear_error (&error);
      g_assert_false (bj_project_store_create (self->store, bad[i], self->uid, 0, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
    }
  g_clear_error (&error);
  g_assert_null (bj_project_store_lookup (self->store, "q", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
}

static void
test_same_tree_as_git (Fixture *self, gconstpointer data)
{
  g_autofree char *git = NULL;

  fixture_put (self, "readme", "hello\n");
  fixture_put (self, "a.b", "1");
  fixture_put_folder (self, "a");
  fixture_put (self, "a/x", "2");
  fixture_put (self, "a-b", "3");
  fixture_put (self, "empty", "");
  fixture_put_folder (self, "nothing");
  fixture_put (self, "run", "#!/bin/sh\n");
  g_assert_cmpint (fchmodat (self->work, "run", 0755, 0), ==, 0);
  fixture_put_link (self, "link", "a/x");
  fixture_write (self);
  g_assert_cmpuint (g_strv_length (self->warnings), ==, 0);
  g_assert_cmpuint (self->files, ==, 7);
  git = fixture_run (self, "projects/p/work",
                     (const char *[]) { "sh", "-c",
                                        "export GIT_DIR=../../../g GIT_WORK_TREE=.; git init -q && git add -A && git write-tree", NULL });
  g_assert_cmpstr (g_strchomp (git), ==, self->tree);
}

static void
test_commit_and_log (Fixture *self, gconstpointer data)
{
  static const char *const trailers[] = { "Belljar-Session: abcdefgh", "Belljar-Verdict: proved", NULL };
  g_autoptr(GError) error = NULL;
  g_autofree char *none = bj_project_store_head (self->store, "p", NULL, &error);
  g_autofree char *first = NULL;
  g_autofree char *second = NULL;
  g_autofree char *head = NULL;
  g_autofree char *tree = NULL;
  g_autofree char *git = NULL;
  g_autoptr(JsonArray) log = NULL;
  g_autoptr(BjProjectRow) row = NULL;
  JsonObject *entry;

  g_assert_no_error (error);
  g_assert_null (none);
  fixture_put (self, "f", "1\n");
  fixture_write (self);
  first = bj_project_store_commit (self->store, "p", self->tree, "owner", "Before the session", NULL, &error);
  g_assert_no_error (error);
  fixture_put (self, "f", "2\n");
  fixture_write (self);
  second = bj_project_store_commit (self->store, "p", self->tree, "p", "Mend it\n\nBelljar-Verdict: forged", trailers, &error);
  g_assert_no_error (error);
  head = bj_project_store_head (self->store, "p", &tree, &error);
  g_assert_cmpstr (head, ==, second);
  g_assert_cmpstr (tree, ==, self->tree);
  row = bj_project_store_lookup (self->store, "p", NULL);
  g_assert_cmpstr (row->head, ==, second);
  log = bj_project_store_log (self->store, "p", 10, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (log), ==, 2);
  entry = json_array_get_object_element (log, 0);
  g_assert_cmpstr (json_object_get_string_member (entry, "commit"), ==, second);
  g_assert_cmpstr (json_object_get_string_member (entry, "subject"), ==, "Mend it");
  g_assert_cmpstr (json_object_get_string_member (entry, "verdict"), ==, "proved");
  g_assert_cmpstr (json_object_get_string_member (entry, "session"), ==, "abcdefgh");
  entry = json_array_get_object_element (log, 1);
  g_assert_cmpstr (json_object_get_string_member (entry, "commit"), ==, first);
  g_assert_cmpstr (json_object_get_string_member (entry, "verdict"), ==, "");
  git = fixture_run (self, "projects/p/repo.git",
                     (const char *[]) { "sh", "-c", "git fsck --strict 2>&1; git log --format='%an <%ae> %s' main; git gc -q", NULL });
  g_assert_true (g_str_has_prefix (git, "p <p@belljar.invalid> Mend it\n"));
  if (geteuid () == 0)
    g_assert_nonnull (strstr (git, "\nuid-1234567 <uid-1234567@belljar.invalid> Before the session\n"));
  g_clear_pointer (&head, g_free);
  head = bj_project_store_head (self->store, "p", NULL, &error); /* now packed */
  g_assert_cmpstr (head, ==, second);
}

static JsonObject *
find_entry (JsonArray *diff, const char *path)
{
  for (guint i = 0; i < json_array_get_length (diff); i++)
    {
      JsonObject *entry = json_array_get_object_element (diff, i);

      if (g_str_equal (json_object_get_string_member (entry, "path"), path))
        return entry;
    }
  return NULL;
}

static void
assert_entry (JsonArray *diff, const char *path, const char *status, int added, int removed)
{
  JsonObject *entry = find_entry (diff, path);

  g_test_message ("%s", path);
  g_assert_nonnull (entry);
  g_assert_cmpstr (json_object_get_string_member (entry, "status"), ==, status);
  g_assert_cmpint (json_object_get_int_member (entry, "added"), ==, added);
  g_assert_cmpint (json_object_get_int_member (entry, "removed"), ==, removed);
}

static void
test_diff (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *old = NULL;
  g_autofree char *large = g_strnfill (3 * 1024 * 1024, 'x');
  g_autoptr(JsonArray) diff = NULL;
  g_autoptr(JsonArray) all = NULL;
  g_auto(BjFd) binary = -1;

  fixture_put (self, "changed", "a\nb\nc\n");
  fixture_put (self, "gone", "1\n2\n");
  fixture_put (self, "kind", "x\n");
  fixture_put (self, "same", "s\n");
  fixture_write (self);
  old = g_strdup (self->tree);
  fixture_put (self, "changed", "a\nB\nc\nd\n");
  g_assert_cmpint (unlinkat (self->work, "gone", 0), ==, 0);
  g_assert_cmpint (unlinkat (self->work, "kind", 0), ==, 0);
  fixture_put_link (self, "kind", "same");
  fixture_put (self, "large", large);
  fixture_put (self, "two\nlines", "1\n");
  fixture_put (self, "bad\xff", "1\n");
  fixture_put (self, "binary", "");
  binary = openat (self->work, "binary", O_WRONLY | O_CREAT, 0644);
  g_assert_true (bj_fd_write_all (binary, "\0\1\2\n", 4, NULL));
  fixture_write (self);
  diff = bj_project_store_diff (self->store, "p", old, self->tree, NULL, NULL, &error);
  g_assert_no_error (error);
  assert_entry (diff, "changed", "modified", 2, 1);
  assert_entry (diff, "gone", "deleted", 0, 2);
  g_assert_cmpstr (json_object_get_string_member (find_entry (diff, "kind"), "status"), ==, "typechange");
  assert_entry (diff, "large", "added", -1, -1);
  assert_entry (diff, "binary", "added", -1, -1);
  assert_entry (diff, "two%0Alines", "added", 1, 0);
  assert_entry (diff, "bad%FF", "added", 1, 0);
  g_assert_true (json_object_get_boolean_member (find_entry (diff, "bad%FF"), "path_encoded"));
  g_assert_false (json_object_get_boolean_member (find_entry (diff, "gone"), "path_encoded"));
  g_assert_cmpuint (json_array_get_length (diff), ==, 7);
  all = bj_project_store_diff (self->store, "p", NULL, old, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (all), ==, 4);
  g_assert_null (bj_project_store_diff (self->store, "p", "main", old, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

/* Behind thousands of empty files nothing hides: all are counted, and what tests rest on and what changed comes first. */
static void
test_diff_is_capped (Fixture *self, gconstpointer data)
{
  static const char *const patterns[] = { "z_check.sh", "tests/", NULL };
  static const char *const first[] = { "tests/z", "unittest.py", "z/Makefile", "z_check.sh", "y_changed", "y_gone" };
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) diff = NULL;
  g_autofree char *old = NULL;
  guint64 total = 0;

  fixture_put_folder (self, "tests");
  fixture_put_folder (self, "z");
  fixture_put (self, "y_changed", "1\n");
  fixture_put (self, "y_gone", "1\n");
  fixture_put (self, "z_check.sh", "1\n");
  fixture_write (self);
  old = g_strdup (self->tree);
  g_assert_cmpint (unlinkat (self->work, "y_gone", 0), ==, 0);
  fixture_put (self, "y_changed", "2\n");
  for (guint i = 0; i < 4; i++)
    fixture_put (self, first[i], "2\n");
  for (guint i = 0; i < 2100; i++)
    {
      g_autofree char *name = g_strdup_printf ("f%u", i);

      fixture_put (self, name, "1\n");
    }
  fixture_write (self);
  diff = bj_project_store_diff (self->store, "p", old, self->tree, patterns, &total, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (diff), ==, 2000);
  g_assert_cmpuint (total, ==, 2106);
  for (guint i = 0; i < G_N_ELEMENTS (first); i++)
    g_assert_cmpstr (json_object_get_string_member (json_array_get_object_element (diff, i), "path"), ==, first[i]);
}

static void
assert_blob (Fixture *self, const char *path, const char *expected)
{
  g_autofree char *text = fixture_blob (self, path);

  g_assert_cmpstr (text, ==, expected);
}

static void
test_protect (Fixture *self, gconstpointer data)
{
  static const char *const patterns[] = { "tests/", "check.py", "test_*.py", "**/conftest.py", NULL };
  g_autoptr(GError) error = NULL;
  g_autofree char *old = NULL;
  g_autofree char *new = NULL;
  g_autofree char *again = NULL;
  g_autofree char *text = NULL;
  g_autofree char *deep = NULL;

  fixture_put (self, "check.py", "strict");
  fixture_put (self, "code.py", "bug");
  fixture_put (self, "belljar.ini", "[check]\ncommand=true\n");
  fixture_put_folder (self, "tests");
  fixture_put (self, "tests/a", "old");
  fixture_put_folder (self, "lib");
  fixture_put_folder (self, "lib/sub");
  fixture_put (self, "lib/sub/test_x.py", "old");
  fixture_write (self);
  old = g_strdup (self->tree);
  fixture_put (self, "check.py", "lax");
  fixture_put (self, "code.py", "fix");
  fixture_put (self, "tests/a", "new");
  fixture_put (self, "tests/b", "added");
  fixture_put (self, "conftest.py", "added");
  g_assert_cmpint (unlinkat (self->work, "belljar.ini", 0), ==, 0);
  g_assert_cmpint (unlinkat (self->work, "lib/sub/test_x.py", 0), ==, 0);
  g_assert_cmpint (unlinkat (self->work, "lib/sub", AT_REMOVEDIR), ==, 0);
  fixture_put (self, "lib/sub", "a file in its place");
  fixture_write (self);
  new = g_strdup (self->tree);
  g_free (self->tree);
  self->tree = bj_project_store_restore_protected (self->store, "p", old, new, patterns, &error);
  g_assert_no_error (error);
  text = fixture_blob (self, "code.py");
  g_assert_cmpstr (text, ==, "fix");
  g_free (text);
  text = fixture_blob (self, "check.py");
  g_assert_cmpstr (text, ==, "strict");
  g_free (text);
  text = fixture_blob (self, "tests/a");
  g_assert_cmpstr (text, ==, "old");
  g_assert_null (fixture_blob (self, "tests/b"));
  g_assert_null (fixture_blob (self, "conftest.py"));
  deep = fixture_blob (self, "lib/sub/test_x.py");
  g_assert_cmpstr (deep, ==, "old");
  g_free (text);
  text = fixture_blob (self, "belljar.ini");
  g_assert_cmpstr (text, ==, "[check]\ncommand=true\n");
  again = bj_project_store_restore_protected (self->store, "p", old, old, patterns, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (again, ==, old);
}

/* What a runner would load before its own, or instead of the test, is not there in the protected run; the change itself is. */
static void
test_protect_runner (Fixture *self, gconstpointer data)
{
  static const struct
  {
    const char *path;
    gboolean stays;
  } added[] = {
    { "unittest.py", FALSE }, { "random.pyc", FALSE }, { "json.cpython-311-x86_64-linux-gnu.so", FALSE },
    { "sitecustomize.py", FALSE }, { "asyncio/__init__.py", FALSE }, { "asyncio/part.py", TRUE }, { "json/__init__.py", FALSE },
    { "json/new.txt", TRUE }, { "src/re.py", FALSE }, { "sub/checks/re.py", FALSE }, { "sub/checks/__init__.py", FALSE },
    { "pytest.ini", FALSE }, { "sub/Makefile", FALSE }, { "node_modules/x/index.js", FALSE }, { "x.egg-info/entry_points.txt", FALSE },
    { "__pycache__/test_slug.cpython-311.pyc", FALSE }, { "test_slug/__init__.py", FALSE }, { "test_slug.abi3.so", FALSE },
    { "run_tests", FALSE }, { "run_tests.o", FALSE }, { "build/run_tests", FALSE }, { "build/old/x.o", FALSE },
    { "slug_impl.py", TRUE }, { "pkg/types.py", TRUE }, { "pkg/json/__init__.py", TRUE }, { "sub/new.c", TRUE }, { "json.md", TRUE },
  };
  static const char *const folders[] = { "asyncio", "json", "src", "sub", "sub/checks", "node_modules", "node_modules/x",
                                         "x.egg-info", "__pycache__", "test_slug", "build", "build/old", "pkg", "pkg/json" };
  static const char *const patterns[] = { "test_*.py", "run_tests.c", "__pycache__/", NULL };
  g_autoptr(GError) error = NULL;
  g_autofree char *old = NULL;
  g_autofree char *new = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (folders); i++)
    fixture_put_folder (self, folders[i]);
  fixture_put (self, "test_slug.py", "strict");
  fixture_put (self, "run_tests.c", "strict");
  fixture_put (self, "json/data.json", "{}");
  fixture_put (self, "build/old/kept", "k");
  fixture_put (self, "sub/checks/test_a.py", "strict");
  fixture_put (self, "pkg/__init__.py", "");
  fixture_put (self, "pkg/test_b.py", "strict");
  fixture_put (self, "queue.py", "bug");
  fixture_write (self);
  old = g_strdup (self->tree);
  fixture_put (self, "queue.py", "fix");
  for (guint i = 0; i < G_N_ELEMENTS (added); i++)
    fixture_put (self, added[i].path, "added");
  fixture_put_link (self, "email", "pkg");
  fixture_write (self);
  new = g_steal_pointer (&self->tree);
  self->tree = bj_project_store_restore_protected (self->store, "p", old, new, patterns, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (added); i++)
    {
      g_autofree char *text = fixture_blob (self, added[i].path);

      if ((text != NULL) != added[i].stays)
        g_test_fail_printf ("%s %s", added[i].path, text != NULL ? "is still there" : "is gone");
    }
  assert_blob (self, "queue.py", "fix");
  assert_blob (self, "build/old/kept", "k");
  g_assert_null (fixture_blob (self, "email"));
}

static void
test_export (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_build_filename (self->dir, "out.tar", NULL);
  g_autofree char *list = NULL;
  g_autofree char *back = NULL;
  g_auto(BjFd) fd = -1;

  fixture_put (self, "plain", "content");
  fixture_put_folder (self, "dir");
  fixture_put (self, "dir/bad\xff\nname", "x");
  fixture_put (self, "dir/\xc3\xa4", "umlaut");
  fixture_put_link (self, "out", "/etc/passwd");
  fixture_put (self, "run", "#!/bin/sh\n");
  g_assert_cmpint (fchmodat (self->work, "run", 0755, 0), ==, 0);
  fixture_write (self);
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bj_project_store_export_tar (self->store, "p", self->tree, fd, NULL, &error);
  g_assert_no_error (error);
  list = fixture_run (self, ".", (const char *[]) { "sh", "-c", "tar -tvf out.tar 2>&1 | tr -s ' '", NULL });
  g_test_message ("%s", list);
  g_assert_nonnull (strstr (list, "-rwxr-xr-x 0/0 10 1970-01-01 00:00 run"));
  g_assert_nonnull (strstr (list, "lrwxrwxrwx 0/0 0 1970-01-01 00:00 out -> /etc/passwd"));
  back = fixture_run (self, ".",
                      (const char *[]) { "sh", "-c",
                                         "mkdir x && tar -xf out.tar -C x && cd x && git init -q . && git add -A"
                                         " && git write-tree", NULL });
  g_assert_cmpstr (g_strchomp (back), ==, self->tree);
}

static void
test_read_blob (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) blob = NULL;

  fixture_put (self, "f", "12345");
  fixture_put_folder (self, "d");
  fixture_put (self, "d/g", "");
  fixture_put_link (self, "l", "f");
  fixture_write (self);
  g_assert_null (fixture_blob (self, "none"));
  g_assert_null (fixture_blob (self, "d"));
  g_assert_null (fixture_blob (self, "l"));
  g_assert_null (fixture_blob (self, ""));
  g_assert_null (fixture_blob (self, "../f"));
  blob = bj_project_store_read_blob (self->store, "p", self->tree, "d/g", 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (g_bytes_get_size (blob), ==, 0);
  g_assert_null (bj_project_store_read_blob (self->store, "p", self->tree, "f", 4, &error));
  g_assert_nonnull (error);
}

static char *
dup_repository (Fixture *self)
{
  return fixture_run (self, "projects/p", (const char *[]) { "sh", "-c", "find repo.git | sort; stat -c '%n %u %a' work/*", NULL });
}

/* What a session's agent is told while its guest still works: nothing may move, change hands or be kept. */
static void
test_status_and_patch (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *before = NULL;
  g_autofree char *after = NULL;
  g_autofree char *commit = NULL;
  g_autoptr(JsonArray) status = NULL;
  g_autoptr(GBytes) patch = NULL;
  g_autoptr(GBytes) one = NULL;
  g_autoptr(GBytes) start = NULL;
  g_autofree char *text = NULL;
  g_auto(GStrv) warnings = NULL;
  guint64 total = 0;
  gboolean cut = TRUE;

  fixture_put_folder (self, "d");
  fixture_put (self, "d/f", "same\n1\n");
  fixture_put (self, "d*", "1\n");
  fixture_write (self);
  commit = bj_project_store_commit (self->store, "p", self->tree, "owner", "Before", NULL, &error);
  g_assert_no_error (error);
  fixture_put (self, "d/f", "same\n2\n");
  fixture_put (self, "d*", "2\n");
  fixture_put (self, "new", "n");
  fixture_put_folder (self, ".git");
  fixture_put (self, ".git/HEAD", "ref: refs/heads/main\n");
  g_assert_cmpint (mkfifoat (self->work, "pipe", 0644), ==, 0);
  before = dup_repository (self);
  status = bj_project_store_status (self->store, "p", &total, &warnings, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (total, ==, 3);
  assert_entry (status, "d/f", "modified", 1, 1);
  assert_entry (status, "d*", "modified", 1, 1);
  assert_entry (status, "new", "added", 1, 0);
  g_assert_cmpuint (g_strv_length (warnings), ==, 2);

  patch = bj_project_store_patch (self->store, "p", NULL, 4096, &cut, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (cut);
  text = g_strndup (g_bytes_get_data (patch, NULL), g_bytes_get_size (patch));
  g_assert_nonnull (strstr (text, "--- a/d/f\n+++ b/d/f\n@@ -1,2 +1,2 @@\n same\n-1\n+2\n"));
  g_assert_nonnull (strstr (text, "+n\n\\ No newline at end of file\n"));
  one = bj_project_store_patch (self->store, "p", "d*", 4096, &cut, NULL, &error);
  g_assert_no_error (error);
  g_clear_pointer (&text, g_free);
  text = g_strndup (g_bytes_get_data (one, NULL), g_bytes_get_size (one));
  g_assert_nonnull (strstr (text, "+++ b/d*\n"));
  g_assert_null (strstr (text, "d/f"));
  start = bj_project_store_patch (self->store, "p", NULL, 7, &cut, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (cut);
  g_assert_cmpuint (g_bytes_get_size (start), ==, 7);
  g_assert_cmpint (memcmp (g_bytes_get_data (start, NULL), g_bytes_get_data (patch, NULL), 7), ==, 0);
  after = dup_repository (self);
  g_assert_cmpstr (after, ==, before);
  g_assert_cmpint (faccessat (self->work, ".git/HEAD", F_OK, 0), ==, 0);
}

/* Without a commit all of it is new. */
static void
test_status_without_commit (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) nothing = NULL;
  g_autoptr(JsonArray) status = NULL;
  g_auto(GStrv) first = NULL;
  g_auto(GStrv) second = NULL;
  guint64 total = 1;

  nothing = bj_project_store_status (self->store, "p", &total, &first, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (total, ==, 0);
  fixture_put (self, "f", "1\n2\n");
  status = bj_project_store_status (self->store, "p", &total, &second, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (total, ==, 1);
  assert_entry (status, "f", "added", 2, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  PROJECT_TEST ("/project/create", test_create);
  PROJECT_TEST ("/project/same-tree-as-git", test_same_tree_as_git);
  PROJECT_TEST ("/project/commit-and-log", test_commit_and_log);
  PROJECT_TEST ("/project/diff", test_diff);
  PROJECT_TEST ("/project/diff-is-capped", test_diff_is_capped);
  PROJECT_TEST ("/project/protect", test_protect);
  PROJECT_TEST ("/project/protect-runner", test_protect_runner);
  PROJECT_TEST ("/project/export", test_export);
  PROJECT_TEST ("/project/read-blob", test_read_blob);
  PROJECT_TEST ("/project/status-and-patch", test_status_and_patch);
  PROJECT_TEST ("/project/status-without-commit", test_status_without_commit);
  return g_test_run ();
}
