/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fixture.h"

#include <string.h>

void
fixture_set_up (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *projects = NULL;
  g_autofree char *work = NULL;

  self->dir = g_dir_make_tmp ("bjproj-XXXXXX", &error);
  g_assert_no_error (error);
  g_assert_cmpint (chmod (self->dir, 0711), ==, 0);
  projects = g_build_filename (self->dir, "projects", NULL);
  self->uid = geteuid () == 0 ? OWNER : geteuid ();
  self->database = bj_store_open (":memory:", &error);
  g_assert_no_error (error);
  self->store = bj_project_store_new (self->database, projects, HELPER);
  bj_project_store_create (self->store, "p", self->uid, geteuid () == 0 ? OWNER : getegid (), &error);
  g_assert_no_error (error);
  work = bj_project_store_dup_work_path (self->store, "p");
  self->work = open (work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_assert_cmpint (self->work, >=, 0);
}

void
fixture_tear_down (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;

  bj_project_folder_remove (AT_FDCWD, self->dir, &error);
  g_assert_no_error (error);
  close (self->work);
  g_clear_object (&self->store);
  g_clear_object (&self->database);
  g_clear_pointer (&self->dir, g_free);
  g_clear_pointer (&self->tree, g_free);
  g_clear_pointer (&self->warnings, g_strfreev);
}

void
fixture_put (Fixture *self, const char *path, const char *content)
{
  g_auto(BjFd) fd = openat (self->work, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

  g_assert_cmpint (fd, >=, 0);
  g_assert_true (bj_fd_write_all (fd, content, strlen (content), NULL));
  fixture_give (self, path, GUEST);
}

void
fixture_give (Fixture *self, const char *path, uid_t uid)
{
  if (geteuid () == 0)
    g_assert_cmpint (fchownat (self->work, path, uid, uid, AT_SYMLINK_NOFOLLOW), ==, 0);
}

void
fixture_put_link (Fixture *self, const char *path, const char *target)
{
  g_assert_cmpint (symlinkat (target, self->work, path), ==, 0);
  fixture_give (self, path, GUEST);
}

void
fixture_put_folder (Fixture *self, const char *path)
{
  g_assert_cmpint (mkdirat (self->work, path, 0755), ==, 0);
  fixture_give (self, path, GUEST);
}

void
fixture_write (Fixture *self)
{
  g_autoptr(GError) error = NULL;
  g_auto(BjTreeResult) result = { 0 };

  bj_project_store_write_tree (self->store, "p", &result, NULL, &error);
  g_assert_no_error (error);
  g_clear_pointer (&self->tree, g_free);
  g_clear_pointer (&self->warnings, g_strfreev);
  self->tree = g_steal_pointer (&result.tree);
  self->warnings = g_steal_pointer (&result.warnings);
  self->files = result.files;
  for (guint i = 0; self->warnings[i] != NULL; i++)
    g_test_message ("warning: %s", self->warnings[i]);
}

gboolean
fixture_warned (Fixture *self, const char *part)
{
  for (guint i = 0; self->warnings[i] != NULL; i++)
    if (strstr (self->warnings[i], part) != NULL)
      return TRUE;
  return FALSE;
}

char *
fixture_blob (Fixture *self, const char *path)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) blob = bj_project_store_read_blob (self->store, "p", self->tree, path, 1024 * 1024, &error);

  g_assert_no_error (error);
  if (blob == NULL)
    return NULL;
  return g_bytes_get_size (blob) > 0 ? g_strndup (g_bytes_get_data (blob, NULL), g_bytes_get_size (blob)) : g_strdup ("");
}

char *
fixture_run (Fixture *self, const char *dir, const char *const *argv)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *cwd = g_build_filename (self->dir, dir, NULL);
  char *output = NULL;
  int status = 0;

  g_spawn_sync (cwd, (char **) argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &output, NULL, &status, &error);
  g_assert_no_error (error);
  g_spawn_check_wait_status (status, &error);
  g_assert_no_error (error);
  return output;
}
