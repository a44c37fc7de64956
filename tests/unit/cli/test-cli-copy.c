/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-copy-flow.h"
#include "bj-cli-copy-place.h"
#include "bj-error.h"
#include "bj-remove.h"
#include "bj-unpack.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct
{
  char *old;
  char *top;
} Fixture;

static void
set_up (Fixture *self, gconstpointer data)
{
  self->old = g_get_current_dir ();
  self->top = g_dir_make_tmp ("bj-place-XXXXXX", NULL);
  g_assert_no_errno (g_chdir (self->top));
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  g_assert_no_errno (g_chdir (self->old));
  g_assert_true (bj_remove_tree (self->top, NULL));
  g_free (self->top);
  g_free (self->old);
}

static void
put (const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autofree char *above = g_path_get_dirname (path);

  g_assert_no_errno (g_mkdir_with_parents (above, 0777));
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
assert_text (const char *path, const char *expected)
{
  g_autofree char *text = NULL;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, expected);
}

/* Nothing fresh is left in the working directory, and so many names are there. */
static void
assert_names (guint expected)
{
  g_autoptr(GDir) dir = g_dir_open (".", 0, NULL);
  const char *name;
  guint n = 0;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_assert_false (g_str_has_prefix (name, ".belljar"));
      n++;
    }
  g_assert_cmpuint (n, ==, expected);
}

static void
test_split (void)
{
  static const struct
  {
    const char *path;
    const char *folder;
    const char *name;
  } cases[] = {
    { "a", ".", "a" },        { "a/", ".", "a" },     { "a/b//", "a", "b" },  { "/a", "/", "a" }, { "/", "/", NULL },
    { "///", "/", NULL },     { ".", ".", NULL },     { "a/.", "a", NULL },   { "a/..", "a", NULL },
    { "a/-b", "a", "-b" },    { "./a", ".", "a" },    { "a/b\n", "a", "b\n" }, { "...", ".", "..." },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *folder = NULL;
      g_autofree char *name = NULL;

      bj_place_split (cases[i].path, &folder, &name);
      g_assert_cmpstr (folder, ==, cases[i].folder);
      g_assert_cmpstr (name, ==, cases[i].name);
    }
}

static void
test_leads_out (void)
{
  g_assert_true (bj_unpack_leads_out ("a", "/etc/passwd"));
  g_assert_true (bj_unpack_leads_out ("a", ".."));
  g_assert_true (bj_unpack_leads_out ("./d/a", "../../x"));
  g_assert_true (bj_unpack_leads_out ("d/a", "b/../../../d/x"));
  g_assert_false (bj_unpack_leads_out ("a", "b"));
  g_assert_false (bj_unpack_leads_out ("./d/a", "../x"));
  g_assert_false (bj_unpack_leads_out ("d/e/a", ".././../x"));
  g_assert_false (bj_unpack_leads_out ("a", "..b/x"));
}

static void
test_becomes (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjPlace) place = bj_place_new ("made/deep/new", "file", &error);
  g_autoptr(BjPlace) given_up = bj_place_new ("made/too", "file", &error);

  g_assert_no_error (error);
  put (bj_place_get_folder (place), "file", "new");
  put (bj_place_get_folder (given_up), "file", "half");
  g_assert_true (bj_place_finish (place, &error));
  g_clear_pointer (&place, bj_place_free);
  g_clear_pointer (&given_up, bj_place_free);
  assert_text ("made/deep/new", "new");
  assert_names (1);
}

/* A folder that is there is added to, a file is replaced, and a link is not followed, wherever it leads. */
static void
test_added (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjPlace) place = NULL;
  g_autoptr(BjPlace) second = NULL;

  put ("there/tree/a", "old", "old");
  put ("there/tree", "file", "old");
  put ("outside", "file", "safe");
  g_assert_no_errno (symlink ("../../outside/file", "there/tree/link"));
  g_assert_no_errno (symlink ("../../outside", "there/tree/folder"));
  place = bj_place_new ("there", "tree", &error);
  g_assert_no_error (error);
  put (bj_place_get_folder (place), "tree/a/new", "new");
  put (bj_place_get_folder (place), "tree/file", "new");
  put (bj_place_get_folder (place), "tree/link", "new");
  g_assert_true (bj_place_finish (place, &error));
  assert_text ("there/tree/a/old", "old");
  assert_text ("there/tree/a/new", "new");
  assert_text ("there/tree/file", "new");
  assert_text ("there/tree/link", "new");
  second = bj_place_new ("there", "tree", &error);
  put (bj_place_get_folder (second), "tree/folder/file", "evil");
  put (bj_place_get_folder (second), "tree/b", "new");
  g_assert_false (bj_place_finish (second, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_EXISTS);
  g_assert_false (g_file_test ("there/tree/b", G_FILE_TEST_EXISTS)); /* it was found out before anything moved */
  assert_text ("outside/file", "safe");
  g_clear_pointer (&place, bj_place_free);
  g_clear_pointer (&second, bj_place_free);
  assert_names (2);
}

/* As somebody other than root it takes more to move a read-only folder, or to remove it. */
static void
test_locked (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjPlace) place = bj_place_new ("new", "tree", &error);
  g_autoptr(BjPlace) given_up = bj_place_new ("new", "tree", &error);
  struct stat info;

  g_assert_no_error (error);
  for (int i = 0; i < 2; i++)
    {
      g_autofree char *tree = g_build_filename (bj_place_get_folder (i == 0 ? place : given_up), "tree", NULL);
      g_autofree char *inner = g_build_filename (tree, "inner", NULL);

      put (tree, "inner/file", "x");
      g_assert_no_errno (g_chmod (inner, 0555));
      g_assert_no_errno (g_chmod (tree, i == 0 ? 0555 : 0));
    }
  g_assert_true (bj_place_finish (place, &error));
  g_assert_no_error (error);
  g_clear_pointer (&place, bj_place_free);
  g_clear_pointer (&given_up, bj_place_free);
  g_assert_no_errno (stat ("new", &info));
  g_assert_cmpuint (info.st_mode & 0777, ==, 0555);
  assert_text ("new/inner/file", "x");
  assert_names (1);
}

static void
test_unasked (Fixture *self, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjPlace) place = bj_place_new (".", "file", &error);

  g_assert_no_error (error);
  g_assert_false (bj_place_finish (place, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  put (bj_place_get_folder (place), "file", "new");
  put (bj_place_get_folder (place), ".profile", "evil");
  g_assert_false (bj_place_finish (place, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_DENIED);
  g_clear_pointer (&place, bj_place_free);
  assert_names (0);
}

/* Also a reader that takes nothing, and one that goes. */
static void
test_flow (void)
{
  int first[2];
  int second[2];
  g_autoptr(BjFlow) flow = NULL;
  char block[1000] = "x";

  g_assert_no_errno (pipe2 (first, O_CLOEXEC));
  g_assert_no_errno (pipe2 (second, O_CLOEXEC));
  flow = bj_flow_new (first[0], second[1]);
  g_assert_cmpint (write (first[1], block, sizeof block), ==, sizeof block);
  g_assert_cmpint (read (second[0], block, sizeof block), ==, sizeof block);
  close (second[0]);
  while (!bj_flow_is_done (flow) && write (first[1], block, sizeof block) > 0)
    g_usleep (1000);
  while (!bj_flow_is_done (flow))
    g_main_context_iteration (NULL, TRUE);
  g_assert_true (bj_flow_is_broken (flow));
  g_assert_cmpuint (bj_flow_get_bytes (flow), ==, sizeof block);
  close (first[1]);
  g_clear_pointer (&flow, bj_flow_free);

  g_assert_no_errno (pipe2 (first, O_CLOEXEC));
  g_assert_no_errno (pipe2 (second, O_CLOEXEC));
  flow = bj_flow_new (first[0], second[1]);
  bj_flow_stop (flow);
  while (!bj_flow_is_done (flow))
    g_main_context_iteration (NULL, TRUE);
  g_assert_false (bj_flow_is_broken (flow));
  close (first[1]);
  close (second[0]);
}

int
main (int argc, char **argv)
{
  signal (SIGPIPE, SIG_IGN);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/copy/split", test_split);
  g_test_add_func ("/copy/leads-out", test_leads_out);
  g_test_add_func ("/copy/flow", test_flow);
  g_test_add ("/copy/becomes", Fixture, NULL, set_up, test_becomes, tear_down);
  g_test_add ("/copy/added", Fixture, NULL, set_up, test_added, tear_down);
  g_test_add ("/copy/locked", Fixture, NULL, set_up, test_locked, tear_down);
  g_test_add ("/copy/unasked", Fixture, NULL, set_up, test_unasked, tear_down);
  return g_test_run ();
}
