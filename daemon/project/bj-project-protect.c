/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-protect.h"

#include <string.h>

#define NAMED_MAX 64
#define WORD_MAX 512

static const char *const always[] = {
  "belljar.ini", "tests/",    "test/",         "spec/",     "__tests__/",   "t/",           "test_*.py",
  "*_test.py",   "*_test.go", "*.test.js",     "*.spec.js", "*.test.ts",    "*.spec.ts",    "**/conftest.py",
};

/* What a tool reads without being told. */
static const struct
{
  const char *tool;
  const char *files[12];
} tools[] = {
  { "make", { "Makefile", "GNUmakefile", "makefile" } },
  { "gmake", { "Makefile", "GNUmakefile", "makefile" } },
  { "npm", { "package.json" } },
  { "npx", { "package.json" } },
  { "yarn", { "package.json" } },
  { "pnpm", { "package.json" } },
  { "node", { "package.json" } },
  /* "python3 -m unittest" runs a unittest.py beside the code, if there is one. */
  { "unittest", { "unittest.py", "unittest/**" } },
  { "doctest", { "doctest.py", "doctest/**" } },
  { "pytest", { "pytest.ini", ".pytest.ini", "setup.cfg", "pyproject.toml", "tox.ini", "**/conftest.py", "pytest.py", "pytest/**",
                "_pytest/**" } },
  { "py.test", { "pytest.ini", ".pytest.ini", "setup.cfg", "pyproject.toml", "tox.ini", "**/conftest.py" } },
  { "tox", { "tox.ini", "setup.cfg", "pyproject.toml" } },
  { "meson", { "meson.build", "meson_options.txt" } },
  { "ninja", { "build.ninja", "meson.build" } },
  { "cmake", { "CMakeLists.txt" } },
  { "ctest", { "CMakeLists.txt" } },
  { "cargo", { "Cargo.toml" } },
  { "go", { "go.mod" } },
  { "just", { "justfile", "Justfile", ".justfile" } },
  { "rake", { "Rakefile" } },
  { "mvn", { "pom.xml" } },
  { "gradle", { "build.gradle", "build.gradle.kts" } },
};

static void
add_once (GPtrArray *list, const char *pattern)
{
  if (!g_ptr_array_find_with_equal_func (list, pattern, g_str_equal, NULL))
    g_ptr_array_add (list, g_strdup (pattern));
}

/* A shell would also split at these; a command that cannot be parsed is still looked at. */
static GStrv
split_command (const char *command)
{
  g_autoptr(GString) text = g_string_new (command);
  char **words = NULL;

  for (gsize i = 0; i < text->len; i++)
    if (strchr (";&|()<>\n\r", text->str[i]) != NULL)
      text->str[i] = ' ';
  if (g_shell_parse_argv (text->str, NULL, &words, NULL))
    return words;
  for (gsize i = 0; i < text->len; i++)
    if (strchr ("'\"\\", text->str[i]) != NULL)
      text->str[i] = ' ';
  return g_strsplit_set (text->str, " \t", -1);
}

static gboolean
is_path_text (const char *word)
{
  gboolean dotted = FALSE, letter = FALSE;

  for (const char *p = word; *p != '\0'; p++)
    {
      if ((guchar) *p < 0x20 || strchr ("*?[]{}$`~!%=:,\"' ", *p) != NULL)
        return FALSE;
      dotted |= *p == '.' || *p == '/';
      letter |= g_ascii_isalpha (*p) || (guchar) *p >= 0x80;
    }
  return dotted && letter;
}

/* Returns: (transfer full) (nullable): @word as a path relative to the top, if it looks like one */
static char *
to_path (const char *word)
{
  g_auto(GStrv) parts = NULL;
  g_autoptr(GPtrArray) kept = g_ptr_array_new ();

  if (*word == '-' || *word == '/' || strlen (word) > WORD_MAX || !is_path_text (word))
    return NULL;
  parts = g_strsplit (word, "/", -1);
  for (guint i = 0; parts[i] != NULL; i++)
    {
      if (strcmp (parts[i], "..") == 0)
        return NULL;
      if (*parts[i] != '\0' && strcmp (parts[i], ".") != 0)
        g_ptr_array_add (kept, parts[i]);
    }
  if (kept->len == 0)
    return NULL;
  g_ptr_array_add (kept, NULL);
  return g_strjoinv ("/", (char **) kept->pdata);
}

/* pytest's "tests/test_a.py::test_x" and an option's "--config=a/b.cfg" name files too. */
static void
add_word (GPtrArray *list, const char *word)
{
  const char *equals = strchr (word, '=');
  const char *from = equals != NULL ? equals + 1 : word;
  const char *colons = strstr (from, "::");
  g_autofree char *text = colons != NULL ? g_strndup (from, (gsize) (colons - from)) : g_strdup (from);
  g_autofree char *path = to_path (text);
  g_autofree char *base = g_path_get_basename (word);

  if (path != NULL)
    add_once (list, path);
  for (guint i = 0; i < G_N_ELEMENTS (tools); i++)
    for (guint k = 0; strcmp (tools[i].tool, base) == 0 && tools[i].files[k] != NULL; k++)
      add_once (list, tools[i].files[k]);
}

/* "sh -c 'python3 check.py'": a word with spaces is a command of its own. */
static void
add_command (GPtrArray *list, const char *command, guint level)
{
  g_auto(GStrv) words = split_command (command);

  for (guint i = 0; words[i] != NULL && i < NAMED_MAX; i++)
    if (level == 0 && strchr (words[i], ' ') != NULL)
      add_command (list, words[i], level + 1);
    else
      add_word (list, words[i]);
}

GStrv
bj_project_default_protect (const char *check_command)
{
  GPtrArray *list = g_ptr_array_new ();

  for (guint i = 0; i < G_N_ELEMENTS (always); i++)
    add_once (list, always[i]);
  if (check_command != NULL && *check_command != '\0')
    add_command (list, check_command, 0);
  g_ptr_array_add (list, NULL);
  return (GStrv) g_ptr_array_free (list, FALSE);
}
