/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-project-answer.h"
#include "bj-project-git.h"
#include "bj-project-protect.h"
#include "bj-project-store.h"
#include "bj-tree-match.h"
#include "bj-tree-name.h"

#include <string.h>

static void
test_settings (void)
{
  static const char text[] = "# how we check\r\n[check]\r\ncommand = python3 check.py --a=b\r\nsetup=apt-get install -y python3\n"
                             "protect = check.py; tests/ ;;data/*.txt;\nnetwork = true\n\n[machine]\nmemory=2G\n; end";
  g_autoptr(GBytes) ini = g_bytes_new_static (text, sizeof text - 1);
  g_autoptr(GBytes) empty = g_bytes_new_static ("", 0);
  g_auto(BjProjectSettings) settings = { 0 };
  g_auto(BjProjectSettings) none = { 0 };
  g_autoptr(GError) error = NULL;

  g_assert_true (bj_project_settings_parse (ini, &settings, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (settings.check, ==, "python3 check.py --a=b");
  g_assert_cmpstr (settings.setup, ==, "apt-get install -y python3");
  g_assert_cmpuint (g_strv_length (settings.protect), ==, 3);
  g_assert_cmpstr (settings.protect[1], ==, "tests/");
  g_assert_true (settings.network);
  g_assert_cmpuint (settings.memory_mib, ==, 2048);
  g_assert_true (bj_project_settings_parse (empty, &none, &error));
  g_assert_cmpstr (none.check, ==, "");
  g_assert_cmpstr (none.setup, ==, "");
  g_assert_null (none.protect[0]);
  g_assert_false (none.network);
}

#define TEXT(text) text, sizeof text - 1

static void
test_bad_settings (void)
{
  static const struct
  {
    const char *text;
    gsize length;
    const char *message; /* part of it */
  } cases[] = {
    { TEXT ("command=x\n"), "line 1: key \"command\" stands before the first group" },
    { TEXT ("[check]\ncomand=x\n"), "line 2: unknown key \"comand\" in group [check]" },
    { TEXT ("[Check]\n"), "line 1: unknown group [Check]" },
    { TEXT ("[machine]\ncommand=x\n"), "line 2: unknown key \"command\"" },
    { TEXT ("[check\n"), "line 1: a group needs" },
    { TEXT ("[]\n"), "line 1: unknown group []" },
    { TEXT ("[\n"), "line 1: a group needs" },
    { TEXT ("[check]\n\nwhat\n"), "line 3: neither" },
    { TEXT ("[check]\ncommand=a\ncommand=b\n"), "line 3: command stands there twice" },
    { TEXT ("[check]\nnetwork=yes\n"), "line 2: network is neither" },
    { TEXT ("[machine]\nmemory=lots\n"), "line 2: memory is not an amount" },
    { TEXT ("[machine]\nmemory=-5\n"), "line 2: memory" },
    { TEXT ("[machine]\nmemory=1\n"), "line 2: memory is not an amount" },
    { TEXT ("[machine]\nmemory=9999999G\n"), "line 2: memory" },
    { TEXT ("[machine]\nmemory=\n"), "line 2: memory" },
    { TEXT ("[machine]\nmemory=G\n"), "line 2: memory" },
    { TEXT ("[check]\nprotect=a;../b\n"), "line 2: protect has an entry that is not below" },
    { TEXT ("[check]\nprotect=/etc\n"), "line 2: protect" },
    { TEXT ("[check]\ncommand=a\x1b[2J\n"), "line 2: a control character" },
    { TEXT ("[check]\ncommand=a\0b\n"), "not UTF-8" },
    { TEXT ("[check]\ncommand=\xff\n"), "not UTF-8" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GBytes) ini = g_bytes_new_static (cases[i].text, cases[i].length);
      g_auto(BjProjectSettings) settings = { 0 };
      g_autoptr(GError) error = NULL;

      g_assert_false (bj_project_settings_parse (ini, &settings, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_test_message ("%s", error->message);
      g_assert_nonnull (strstr (error->message, cases[i].message));
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
}

static void
test_large_settings (void)
{
  g_autoptr(GBytes) ini = g_bytes_new_take (g_strnfill (65537, '#'), 65537);
  g_auto(BjProjectSettings) settings = { 0 };
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_project_settings_parse (ini, &settings, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
}

static void
test_default_protect (void)
{
  static const struct
  {
    const char *command;
    const char *there[6];
    const char *not_there[4];
  } cases[] = {
    { NULL, { "belljar.ini", "tests/", "test/", "spec/", "__tests__/", "t/", }, { "check.py" } },
    { "", { "test_*.py", "*_test.py", "*_test.go", "*.test.js", "**/conftest.py" }, { NULL } },
    { "python3 check.py", { "check.py" }, { "python3" } },
    { "./run.sh", { "run.sh" }, { "./run.sh" } },
    { "make check", { "**/Makefile", "**/GNUmakefile", "**/makefile", "*.mk" }, { "check", "make" } },
    { "/usr/bin/make", { "**/Makefile" }, { "/usr/bin/make" } },
    { "npm test", { "**/package.json", "node_modules/", "**/.npmrc" }, { "test" } },
    { "pytest -q", { "**/pytest.ini", "**/setup.cfg", "**/pyproject.toml", "**/tox.ini", "__pycache__/", "*.pyc" }, { "-q" } },
    { "python3 -m pytest tests/unit/a.py::test_x", { "tests/unit/a.py", "**/pytest.ini", "pytest.py", "pytest" }, { NULL } },
    { "sh -c 'cd src && ../tools/x.sh; python3 sub/check.py'", { "sub/check.py" }, { "../tools/x.sh" } },
    { "sh test.sh>out.log 2>&1", { "test.sh", "out.log" }, { NULL } },
    { "cat \"unbalanced a.py", { "a.py" }, { NULL } },
    { "A=b/c.cfg ./t.py --x=d/e.cfg https://example.org/x.py", { "b/c.cfg", "t.py", "d/e.cfg" }, { "https://example.org/x.py" } },
    { "diff out.txt expected/$NAME.txt /etc/passwd", { "out.txt" }, { "/etc/passwd", "expected/$NAME.txt" } },
    { "python3 -m unittest -q test_slug", { "unittest.py", "unittest", "test_slug.py", "test_slug" }, { "-q.py", "python3" } },
    { "python3 -m unittest pkg.checks.Slug.test_x", { "pkg.py", "pkg/checks.py", "pkg/checks/Slug.py" }, { "pkg" } },
    { "python3 -m unittest discover -s src lib", { "python:src" }, { "src", "lib", "lib.py", "discover.py" } },
    { "PYTHONPATH=src:./lib/ python3 -m tools.check", { "python:src", "python:lib", "tools/check.py", "tools/check" }, { "tools" } },
    { "cd sub && python3 check.py", { "check.py", "**/check.py", "python:sub" }, { "sub" } },
    { "sh check", { "check" }, { "sh" } },
    { "make check run", { "belljar.ini" }, { "run", "check" } },
    { "web/node_modules/.bin/jest -i", { "web/node_modules/", "**/jest.config.*" }, { NULL } },
    { ".venv/bin/python3 bin/x.py", { ".venv/", "bin/x.py" }, { "./" } },
    { "sleep 1.5", { "belljar.ini" }, { "1.5" } },
    { "./a/../../../etc/passwd .. . ./", { "belljar.ini" }, { "..", ".", "", "etc/passwd" } },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto(GStrv) list = bj_project_default_protect (cases[i].command);

      g_test_message ("%s", cases[i].command);
      for (guint k = 0; k < 6 && cases[i].there[k] != NULL; k++)
        if (!g_strv_contains ((const char *const *) list, cases[i].there[k]))
          g_test_fail_printf ("%s does not name %s", cases[i].command, cases[i].there[k]);
      for (guint k = 0; k < 4 && cases[i].not_there[k] != NULL; k++)
        if (g_strv_contains ((const char *const *) list, cases[i].not_there[k]))
          g_test_fail_printf ("%s names %s", cases[i].command, cases[i].not_there[k]);
    }
}

static void
test_match (void)
{
  static const struct
  {
    const char *pattern;
    const char *path;
    gboolean folder;
    gboolean matches;
  } cases[] = {
    { "check.py", "check.py", FALSE, TRUE },        { "check.py", "sub/check.py", FALSE, FALSE },
    { "./check.py", "check.py", FALSE, TRUE },      { "/check.py", "check.py", FALSE, TRUE },
    { "tests/", "tests", TRUE, TRUE },              { "tests/", "tests", FALSE, FALSE },
    { "tests/", "a/b/tests", TRUE, TRUE },          { "tests", "tests", TRUE, TRUE },
    { "tests", "a/tests", TRUE, FALSE },            { "a/tests/", "a/tests", TRUE, TRUE },
    { "a/tests/", "b/a/tests", TRUE, FALSE },       { "test_*.py", "x/y/test_1.py", FALSE, TRUE },
    { "test_*.py", "test_1.pyc", FALSE, FALSE },    { "data/*.txt", "data/a.txt", FALSE, TRUE },
    { "data/*.txt", "data/b/a.txt", FALSE, FALSE }, { "**/conftest.py", "conftest.py", FALSE, TRUE },
    { "**/conftest.py", "a/b/conftest.py", FALSE, TRUE }, { "a/**/z", "a/b/c/z", FALSE, TRUE },
    { "a/**", "a/b/c", FALSE, TRUE },               { "a/**", "b/a/c", FALSE, FALSE },
    { "a/**/z", "a/z", FALSE, TRUE },               { "a/**/z", "b/z", FALSE, FALSE },
    { "**", "anything/at/all", FALSE, TRUE },       { "[ab].c", "q/b.c", FALSE, TRUE },
    { "?", "x", FALSE, TRUE },                      { "", "x", FALSE, FALSE },
    { "/", "x", TRUE, FALSE },                      { "../x", "x", FALSE, FALSE },
    { "*.\xff", "a.\xff", FALSE, TRUE },            { "********x", "x", FALSE, FALSE },
    { "Tests/", "tests", TRUE, FALSE },             { "*", ".hidden", FALSE, TRUE },
    { "**/a/**/b/**/c", "a/a/b/x/b/a/c", FALSE, TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const char *patterns[] = { cases[i].pattern, NULL };
      g_autoptr(BjTreeMatch) match = bj_tree_match_new (patterns);

      if (bj_tree_match_path (match, cases[i].path, cases[i].folder) != cases[i].matches)
        g_test_fail_printf ("\"%s\" and \"%s\"", cases[i].pattern, cases[i].path);
    }
}

static void
test_names (void)
{
  static const char *const refused[] = {
    "", ".", "..", "a/b", ".git", ".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git.", ".git . .", ".git::$DATA",
    ".git\\x", "git~1.", "git~1:x", ".g\xe2\x80\x8cit", "\xef\xbb\xbf.git", ".gi\xe2\x80\xaet",
  };
  static const char *const fine[] = { ".gitignore", ".git2", "git~2", "git", "x.git", ".git-x", "...", "\xff", "\n", " " };
  static const struct
  {
    const char *name;
    const char *text;
    gboolean encoded;
  } encodings[] = {
    { "plain", "plain", FALSE },   { "\xc3\xa4 100%", "\xc3\xa4 100%", FALSE }, { "\xff%", "%FF%25", TRUE },
    { "a\nb c", "a%0Ab%20c", TRUE }, { "", "", TRUE },                          { "a\xe2\x80\xa8", "a%E2%80%A8", TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (refused); i++)
    g_assert_true (bj_tree_name_is_refused (refused[i]));
  for (guint i = 0; i < G_N_ELEMENTS (fine); i++)
    g_assert_false (bj_tree_name_is_refused (fine[i]));
  for (guint i = 0; i < G_N_ELEMENTS (encodings); i++)
    {
      gboolean encoded;
      g_autofree char *text = bj_tree_name_encode (encodings[i].name, &encoded);

      g_assert_cmpstr (text, ==, encodings[i].text);
      g_assert_cmpint (encoded, ==, encodings[i].encoded);
    }
}

#define ID "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

static void
test_answer (void)
{
  static const char good[] = "tree " ID "\nfiles 3\nbytes 12\nwarning \"a\" was left out\nentry added 1 0 0 a b\n"
                             "entry deleted -1 -1 1 a%0A\nend\n";
  static const struct
  {
    const char *text;
    gsize length;
  } bad[] = {
    { TEXT ("") }, { TEXT ("end") }, { TEXT ("tree " ID "\n") }, { TEXT ("end\nend\n") }, { TEXT ("end\nx") },
    { TEXT ("tree 4B825DC642CB6EB9A060E54BF8D69288FBEE4904\nend\n") }, { TEXT ("tree " ID "0\nend\n") },
    { TEXT ("tree " ID "\ntree " ID "\nend\n") }, { TEXT ("files -1\nend\n") }, { TEXT ("files 99999999999999999999\nend\n") },
    { TEXT ("files\nend\n") }, { TEXT ("other 1\nend\n") }, { TEXT ("warning a\rb\nend\n") }, { TEXT ("warning \x1b\nend\n") },
    { TEXT ("warning \xff\nend\n") }, { TEXT ("warning a\0b\nend\n") }, { TEXT ("entry added 1 0 0\nend\n") },
    { TEXT ("entry renamed 1 0 0 a\nend\n") }, { TEXT ("entry added -2 0 0 a\nend\n") }, { TEXT ("entry added 1 x 0 a\nend\n") },
    { TEXT ("entry added 1 0 2 a\nend\n") }, { TEXT ("entry added 1 0 0 /etc\nend\n") }, { TEXT ("entry added 1 0 0 \nend\n") },
    { TEXT ("\nend\n") }, { TEXT ("end\r\n") },
  };
  g_autoptr(GBytes) bytes = g_bytes_new_static (good, sizeof good - 1);
  g_auto(BjProjectAnswer) answer = { 0 };
  g_autoptr(GError) error = NULL;

  g_assert_true (bj_project_answer_parse (bytes, &answer, &error));
  g_assert_cmpstr (answer.tree, ==, ID);
  g_assert_cmpuint (answer.bytes, ==, 12);
  g_assert_cmpuint (answer.warnings->len, ==, 1);
  g_assert_cmpuint (json_array_get_length (answer.entries), ==, 2);
  g_assert_cmpstr (json_object_get_string_member (json_array_get_object_element (answer.entries, 0), "path"), ==, "a b");
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GBytes) text = g_bytes_new_static (bad[i].text, bad[i].length);
      g_auto(BjProjectAnswer) none = { 0 };
      g_autoptr(GError) wrong = NULL;

      if (bj_project_answer_parse (text, &none, &wrong))
        g_test_fail_printf ("taken: %s", bad[i].text);
      else
        g_assert_error (wrong, BJ_ERROR, BJ_ERROR_FAILED);
    }
}

static void
test_blob_answer (void)
{
  static const struct
  {
    const char *text;
    gsize length;
    gboolean valid;
    gssize size; /* -1: none */
  } cases[] = {
    { TEXT ("none\n"), TRUE, -1 },        { TEXT ("blob 3\na\0b"), TRUE, 3 },  { TEXT ("blob 0\n"), TRUE, 0 },
    { TEXT ("blob 4\nabc"), FALSE, 0 },   { TEXT ("blob 2\nabc"), FALSE, 0 },  { TEXT ("none\nx"), FALSE, 0 },
    { TEXT (""), FALSE, 0 },              { TEXT ("blob 11\n12345678901"), FALSE, 0 }, { TEXT ("blob\n"), FALSE, 0 },
    { TEXT ("blob -1\n"), FALSE, 0 },     { TEXT ("abc"), FALSE, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GBytes) output = g_bytes_new_static (cases[i].text, cases[i].length);
      g_autoptr(GBytes) blob = NULL;

      g_test_message ("%s", cases[i].text);
      g_assert_cmpint (bj_project_answer_parse_blob (output, 10, &blob, NULL), ==, cases[i].valid);
      g_assert_cmpint (blob != NULL, ==, cases[i].valid && cases[i].size >= 0);
      if (blob != NULL)
        g_assert_cmpint ((gssize) g_bytes_get_size (blob), ==, cases[i].size);
    }
}

static void
test_trailers (void)
{
  static const char *const trailers[] = { "Belljar-Session: abc\nBelljar-Verdict: forged", "Belljar-Verdict: none", NULL };
  g_autofree char *with = bj_project_git_compose ("Subject\n\nBelljar-Verdict: proved\nbelljar-session: x\n\xff\r\x1b", trailers);
  g_autofree char *without = bj_project_git_compose ("Subject\n\nBelljar-Verdict: proved", NULL);
  g_autofree char *verdict = bj_project_git_find_trailer (with, "Belljar-Verdict");
  g_autofree char *forged = bj_project_git_find_trailer (without, "Belljar-Verdict");

  g_assert_cmpstr (verdict, ==, "none");
  g_assert_cmpstr (forged, ==, "");
  g_assert_true (g_str_has_prefix (with, "Subject\n\n> Belljar-Verdict: proved\n> belljar-session: x\n"));
  g_assert_true (g_utf8_validate (with, -1, NULL));
  g_assert_null (strchr (with, '\x1b'));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/settings/good", test_settings);
  g_test_add_func ("/settings/bad", test_bad_settings);
  g_test_add_func ("/settings/large", test_large_settings);
  g_test_add_func ("/protect/defaults", test_default_protect);
  g_test_add_func ("/tree/match", test_match);
  g_test_add_func ("/tree/names", test_names);
  g_test_add_func ("/answer/lines", test_answer);
  g_test_add_func ("/answer/blob", test_blob_answer);
  g_test_add_func ("/git/trailers", test_trailers);
  return g_test_run ();
}
