/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-protect.h"

#include <fnmatch.h>
#include <string.h>

#define NAMED_MAX 64
#define WORD_MAX 512

#define PYTHON_FOLDER "python:"

static const char *const always[] = {
  "belljar.ini", "tests/",       "test/",     "spec/",     "__tests__/", "t/",           "test_*.py",
  "*_test.py",   "*_test.go",    "*.test.js", "*.spec.js", "*.test.ts",  "*.spec.ts",    "**/conftest.py",
  "*.test.[cm]js", "*.test.[jt]sx", "*.spec.[cm]js", "*.spec.[jt]sx", "__pycache__/", "*.pyc",
};

/* What a tool reads without being told. */
static const struct
{
  const char *tool; /* a glob */
  const char *files[16];
} tools[] = {
  { "make", { "**/Makefile", "**/GNUmakefile", "**/makefile", "*.mk", "*.mak" } },
  { "gmake", { "**/Makefile", "**/GNUmakefile", "**/makefile", "*.mk", "*.mak" } },
  { "np[mx]", { "**/package.json", "node_modules/", "**/.npmrc" } },
  { "yarn", { "**/package.json", "node_modules/", "**/.yarnrc*", "**/.pnp.*", ".yarn/" } },
  { "pnp[mx]", { "**/package.json", "node_modules/", "**/.npmrc", "**/.pnpmfile.*" } },
  { "node", { "**/package.json", "node_modules/" } },
  { "bun", { "**/package.json", "node_modules/", "**/bunfig.toml" } },
  { "deno", { "**/deno.json*", "node_modules/" } },
  { "mocha", { "**/.mocharc*", "**/package.json", "node_modules/" } },
  { "jest", { "**/jest.config.*", "**/babel.config.*", "**/.babelrc*", "**/package.json", "node_modules/" } },
  { "vitest", { "**/vitest.config.*", "**/vite.config.*", "**/vitest.workspace.*", "**/package.json", "node_modules/" } },
  { "py*test*", { "**/pytest.ini", "**/.pytest.ini", "**/setup.cfg", "**/pyproject.toml", "**/tox.ini", "**/conftest.py",
                  "*.egg-info/", "*.dist-info/", "*.egg-link" } },
  { "nose*", { "**/unittest.cfg", "**/nose.cfg", "**/nose2.cfg", "**/setup.cfg" } },
  { "tox", { "tox.ini", "setup.cfg", "pyproject.toml", "noxfile.py", ".tox/" } },
  { "nox", { "noxfile.py", ".nox/" } },
  { "coverage", { ".coveragerc", "setup.cfg", "tox.ini", "pyproject.toml" } },
  { "flake8", { "**/.flake8", "**/setup.cfg", "**/tox.ini" } },
  { "pylint", { "**/.pylintrc", "**/pylintrc", "**/pyproject.toml", "**/setup.cfg" } },
  { "mypy", { "**/mypy.ini", "**/.mypy.ini", "**/pyproject.toml", "**/setup.cfg" } },
  { "ruff", { "**/ruff.toml", "**/.ruff.toml", "**/pyproject.toml" } },
  { "eslint", { "**/.eslintrc*", "**/eslint.config.*", "**/.eslintignore", "**/package.json", "node_modules/" } },
  { "meson", { "**/meson.build", "meson_options.txt", "meson.options", "build.ninja" } },
  { "ninja", { "**/build.ninja", "**/meson.build" } },
  { "cmake", { "**/CMakeLists.txt", "*.cmake", "**/CMakePresets.json" } },
  { "ctest", { "**/CMakeLists.txt", "*.cmake", "**/CMakePresets.json", "**/CMakeUserPresets.json" } },
  { "cargo", { "**/Cargo.toml", "**/.cargo/", "**/rust-toolchain*" } },
  { "go", { "**/go.mod", "**/go.work", "vendor/" } },
  { "just", { "**/justfile", "**/Justfile", "**/.justfile" } },
  { "rake", { "**/Rakefile", "**/rakefile", "**/Gemfile*", ".bundle/" } },
  { "bundle", { "**/Gemfile*", ".bundle/", "**/Rakefile", "**/.rspec" } },
  { "rspec", { "**/.rspec", "**/Gemfile*", ".bundle/" } },
  { "ruby", { "**/minitest/", "**/minitest.rb", "**/test/unit.rb", "**/rspec.rb" } },
  { "prove", { "**/.proverc", "**/Test/More.pm", "**/Test/Simple.pm", "**/Test/Builder*", "**/Test2/", "**/TAP/" } },
  { "perl", { "**/Test/More.pm", "**/Test/Simple.pm", "**/Test/Builder*", "**/Test2/", "**/strict.pm", "**/warnings.pm",
              "**/Carp.pm", "**/Exporter.pm" } },
  { "phpunit", { "**/phpunit.xml*", "vendor/" } },
  { "composer", { "**/composer.json", "vendor/" } },
  { "mvn*", { "**/pom.xml", ".mvn/", "mvnw" } },
  { "gradle*", { "*.gradle", "*.gradle.kts", "**/gradle.properties", "buildSrc/", "gradle/", "gradlew" } },
  { "ant", { "**/build.xml" } },
  { "scons", { "**/SConstruct", "**/SConscript" } },
};

/* What is left from building is taken for up to date, and what is put into a runner's way is taken for a part of it. */
static const char *const never_added[] = { "build/", "_build/", "target/", "obj/", "cmake-build-*/", "*.pth", "*.egg-info/",
                                           "*.dist-info/", "*.egg-link", "**/pyvenv.cfg", "venv/", ".venv/" };

/* Python often finds its modules here; a package of such a name has an __init__.py and is none of these. */
static const char *const python_folders[] = { PYTHON_FOLDER "src", PYTHON_FOLDER "lib", PYTHON_FOLDER "python" };

/* These run what the word behind them names. */
static const char *const interpreters[] = { "sh", "bash", "dash", "ksh", "zsh", ".", "source", "exec", "python*", "pypy*",
                                            "perl", "ruby", "php", "node", "deno", "bun", "lua*", "tclsh", "Rscript" };

/* The word behind these is a folder. */
static const char *const folder_words[] = { "cd", "pushd", "-C", "-s", "-t", "--start-directory", "--prefix", "--directory",
                                            "--top-level-directory" };

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

static gboolean
is_one_of (const char *word, const char *const *globs, guint n_globs)
{
  for (guint i = 0; i < n_globs; i++)
    if (fnmatch (globs[i], word, 0) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
is_name (const char *word)
{
  return *word != '\0' && *word != '-' && strlen (word) <= WORD_MAX
         && word[strspn (word, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-+.")] == '\0' && strcmp (word, "..") != 0
         && strcmp (word, ".") != 0;
}

/* "a.b.Test.test_x" is in a.py, a/b.py, … or, if that is a folder, in all of it. */
static void
add_module (GPtrArray *list, const char *name)
{
  g_auto(GStrv) parts = g_strsplit (name, ".", 16);
  g_autoptr(GString) path = g_string_new (NULL);

  if (!is_name (name))
    return;
  for (guint i = 0; parts[i] != NULL && *parts[i] != '\0'; i++)
    {
      g_autofree char *file = NULL;

      g_string_append_printf (path, "%s%s", i > 0 ? "/" : "", parts[i]);
      file = g_strconcat (path->str, ".py", NULL);
      add_once (list, file);
    }
  add_once (list, path->str);
}

/* "PYTHONPATH=src:lib", "cd sub": where a runner will look */
static void
add_folders (GPtrArray *list, const char *words)
{
  g_auto(GStrv) folders = g_strsplit (words, ":", 16);

  for (guint i = 0; folders[i] != NULL; i++)
    {
      g_autofree char *inside = g_strconcat ("./", folders[i], "/", NULL);
      g_autofree char *path = *folders[i] != '/' && *folders[i] != '-' ? to_path (inside) : NULL;
      g_autofree char *pattern = path != NULL ? g_strconcat (PYTHON_FOLDER, path, NULL) : NULL;

      if (pattern != NULL)
        add_once (list, pattern);
    }
}

/* "node_modules/.bin/jest", ".venv/bin/python3": the program is only the smallest part of it. */
static void
add_tool_home (GPtrArray *list, const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_autofree char *name = g_path_get_basename (folder);
  g_autofree char *home = g_path_get_dirname (folder);
  g_autofree char *pattern = g_strconcat (home, "/", NULL);

  if ((strcmp (name, "bin") == 0 || strcmp (name, ".bin") == 0) && strcmp (home, ".") != 0)
    add_once (list, pattern);
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
    {
      add_once (list, path);
      add_tool_home (list, path);
    }
  if (g_str_has_prefix (word, "PYTHONPATH=") || g_str_has_prefix (word, "--start-directory="))
    add_folders (list, from);
  for (guint i = 0; i < G_N_ELEMENTS (tools); i++)
    for (guint k = 0; fnmatch (tools[i].tool, base, 0) == 0 && tools[i].files[k] != NULL; k++)
      add_once (list, tools[i].files[k]);
}

/* Whether the word at @at names a test to a runner of modules: "-m unittest test_x" */
static gboolean
is_test_module (char **words, guint at)
{
  static const char *const runners[] = { "unittest", "nose2", "twisted.trial" };
  const char *before = words[at - 1];
  gboolean found = FALSE;

  if (*before == '-' && before[1] != '\0' && strchr ("kstp", before[1]) != NULL)
    return FALSE;
  for (guint i = 1; i < at; i++)
    {
      found |= strcmp (words[i - 1], "-m") == 0 && is_one_of (words[i], runners, G_N_ELEMENTS (runners));
      if (strcmp (words[i], "discover") == 0)
        return FALSE;
    }
  return found && strcmp (words[at], "discover") != 0;
}

/* A word whose meaning is in the words before it. */
static void
add_in_place (GPtrArray *list, char **words, guint at)
{
  const char *before = words[at - 1];
  g_autofree char *base = g_path_get_basename (*before != '\0' ? before : "/");

  if (is_one_of (before, folder_words, G_N_ELEMENTS (folder_words)))
    add_folders (list, words[at]);
  if (strcmp (before, "-m") == 0 || is_test_module (words, at))
    add_module (list, words[at]);
  else if (is_one_of (base, interpreters, G_N_ELEMENTS (interpreters)) && is_name (words[at]))
    add_once (list, words[at]);
}

/* Behind "cd sub", a name is one of that folder. */
static void
add_everywhere (GPtrArray *list, guint from)
{
  guint n = list->len;

  for (guint i = from; i < n; i++)
    {
      const char *pattern = g_ptr_array_index (list, i);
      g_autofree char *anywhere = g_strconcat ("**/", pattern, NULL);

      if (strchr ("*/", *pattern) == NULL && !g_str_has_suffix (pattern, "/") && !g_str_has_prefix (pattern, PYTHON_FOLDER))
        add_once (list, anywhere);
    }
}

/* "sh -c 'python3 check.py'": a word with spaces is a command of its own. */
static void
add_command (GPtrArray *list, const char *command, guint level)
{
  g_auto(GStrv) words = split_command (command);
  guint from = list->len;
  gboolean moves = FALSE;

  for (guint i = 0; words[i] != NULL && i < NAMED_MAX; i++)
    {
      moves |= is_one_of (words[i], folder_words, 3) || g_str_has_prefix (words[i], "--directory=");
      if (level == 0 && strchr (words[i], ' ') != NULL)
        add_command (list, words[i], level + 1);
      else
        {
          add_word (list, words[i]);
          if (i > 0)
            add_in_place (list, words, i);
        }
    }
  if (moves)
    add_everywhere (list, from);
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

/* A check may start any tool by way of a script: what none of them had before the session is taken away for all of them. */
GStrv
bj_project_never_added (void)
{
  GPtrArray *list = g_ptr_array_new ();

  for (guint i = 0; i < G_N_ELEMENTS (tools); i++)
    for (guint k = 0; tools[i].files[k] != NULL; k++)
      {
        g_autofree char *pattern = g_strconcat ("+", tools[i].files[k], NULL);

        add_once (list, pattern);
      }
  for (guint i = 0; i < G_N_ELEMENTS (never_added); i++)
    {
      g_autofree char *pattern = g_strconcat ("+", never_added[i], NULL);

      add_once (list, pattern);
    }
  for (guint i = 0; i < G_N_ELEMENTS (python_folders); i++)
    add_once (list, python_folders[i]);
  g_ptr_array_add (list, NULL);
  return (GStrv) g_ptr_array_free (list, FALSE);
}
