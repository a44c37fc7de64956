/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-apt-sources.h"
#include "bj-error.h"

#include <glib/gstdio.h>

static const struct
{
  const char *text;
  const char *expected; /* lines, joined */
} list_cases[] = {
  { "deb http://m/debian bookworm main", "deb http://m/debian bookworm main" },
  { "deb http://m/debian bookworm main contrib non-free # x", "deb http://m/debian bookworm main" },
  { "deb [signed-by=/k.gpg arch=amd64] https://m/d bookworm-updates main",
    "deb [signed-by=/k.gpg] https://m/d bookworm-updates main" },
  { "deb [ trusted=yes   check-valid-until=no ] file:/m bookworm main",
    "deb [trusted=yes check-valid-until=no] file:/m bookworm main" },
  { "deb\thttp://s/ds\tbookworm-security\tmain", "deb http://s/ds bookworm-security main" },
  { "deb http://m/d bookworm/updates main", "deb http://m/d bookworm/updates main" },
  { "deb http://m/d bookworm main\ndeb http://m/d bookworm main", "deb http://m/d bookworm main" },
  { "deb http://m/d bookworm-backports main", "" },
  { "deb http://m/d bookworm-proposed-updates main", "" },
  { "deb http://m/d trixie main", "" },
  { "deb http://m/d bookworm contrib", "" },
  { "deb-src http://m/d bookworm main", "" },
  { "# deb http://m/d bookworm main", "" },
  { "deb cdrom:[Debian]/ bookworm main", "" },
  { "deb mirror+file:/x bookworm main", "" },
  { "deb [signed-by=/k http://m/d bookworm main", "" },
  { "deb http://m/d bookworm", "" },
  { "deb", "" },
  { "", "" },
  { "[", "" },
};

static const struct
{
  const char *text;
  const char *expected;
} deb822_cases[] = {
  { "Types: deb\nURIs: http://m/d\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n",
    "deb [signed-by=/k.gpg] http://m/d bookworm main|deb [signed-by=/k.gpg] http://m/d bookworm-updates main" },
  { "types: deb deb-src\nuris: http://a/d\n  http://b/d\n# a remark\nsuites: bookworm\ncomponents: main\n",
    "deb http://a/d bookworm main|deb http://b/d bookworm main" },
  { "Types: deb\n# remark\nURIs: http://m/d\nSuites:\n bookworm-security\nComponents: main\n\n\n"
    "Types: deb\nURIs: http://n/d\nSuites: trixie\nComponents: main\n",
    "deb http://m/d bookworm-security main" },
  { "Types: deb\nURIs: http://m/d\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
    " .\n mQINB\n", "deb http://m/d bookworm main" },
  { "Types: deb\nURIs: http://m/d\nSuites: bookworm\nComponents: main\nTrusted: yes\nArchitectures: amd64\n",
    "deb [trusted=yes] http://m/d bookworm main" },
  { "Types: deb\nEnabled: no\nURIs: http://m/d\nSuites: bookworm\nComponents: main\n", "" },
  { "Types: deb-src\nURIs: http://m/d\nSuites: bookworm\nComponents: main\n", "" },
  { "Types: deb\nURIs: http://m/d\nSuites: bookworm\n", "" },
  { "Types: deb\nSuites: bookworm\nComponents: main\n", "" },
  { "Types: deb\nURIs: http://m/[x]\nSuites: bookworm\nComponents: main\n", "" },
  { ":::\n:\n\n:", "" },
  { "", "" },
};

typedef void (*Parse) (const char *text, const char *suite, const char *components, GPtrArray *lines);

static char *
parse (Parse func, const char *text)
{
  g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);

  func (text, "bookworm", "main", lines);
  g_ptr_array_add (lines, NULL);
  return g_strjoinv ("|", (char **) lines->pdata);
}

static void
test_list (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (list_cases); i++)
    {
      g_autofree char *got = parse (bj_apt_sources_parse_list, list_cases[i].text);

      g_assert_cmpstr (got, ==, list_cases[i].expected);
    }
}

static void
test_deb822 (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (deb822_cases); i++)
    {
      g_autofree char *got = parse (bj_apt_sources_parse_deb822, deb822_cases[i].text);

      g_assert_cmpstr (got, ==, deb822_cases[i].expected);
    }
}

static void
write_file (const char *dir, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

/* As on a host: both formats, a disabled file, sources of others. */
static void
test_read (void)
{
  static const char *const files[][2] = {
    { "sources.list", "deb http://one/d bookworm main\n" },
    { "sources.list.d/b.sources", "Types: deb\nURIs: http://two/d\nSuites: bookworm-security\nComponents: main\n" },
    { "sources.list.d/a.list", "deb http://three/d bookworm-updates main\n" },
    { "sources.list.d/c.list.disabled", "deb http://four/d bookworm main\n" },
  };
  g_autofree char *dir = g_dir_make_tmp ("belljar-apt-XXXXXX", NULL);
  g_autofree char *parts = g_build_filename (dir, "sources.list.d", NULL);
  g_auto(GStrv) lines = NULL, none = NULL;
  g_autofree char *joined = NULL;

  g_assert_cmpint (g_mkdir (parts, 0755), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    write_file (dir, files[i][0], files[i][1]);
  lines = bj_apt_sources_read (dir, "bookworm", "main");
  joined = g_strjoinv ("|", lines);
  g_assert_cmpstr (joined, ==, "deb http://one/d bookworm main|deb http://three/d bookworm-updates main|"
                   "deb http://two/d bookworm-security main");
  none = bj_apt_sources_read ("/nonexistent", "bookworm", "main");
  g_assert_cmpuint (g_strv_length (none), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (dir, files[i][0], NULL);

      g_unlink (path);
    }
  g_rmdir (parts);
  g_rmdir (dir);
}

static void
test_mirror (void)
{
  static const char *const bad[] = { "", "deb.debian.org", "-x", "ftp://m/d", "http://m/d bookworm main\ndeb http://e",
                                     "http://m/[trusted=yes]", "http://m/\xc3\xa4", "http://m/#x", "cdrom:/x" };
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) lines = bj_apt_sources_for_mirror ("http://m:3142/debian", "bookworm", "main", &error);

  g_assert_no_error (error);
  g_assert_cmpstr (lines[0], ==, "deb http://m:3142/debian bookworm main");
  g_assert_null (lines[1]);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GError) local = NULL;

      g_assert_null (bj_apt_sources_for_mirror (bad[i], "bookworm", "main", &local));
      g_assert_error (local, BJ_ERROR, BJ_ERROR_INVALID);
    }
}

static void
test_options (void)
{
  g_autofree char *kept = bj_apt_options_filter (
    "APT \"\";\nAcquire::http::Proxy \"http://p:3128\";\nAcquire::http::Proxy::deb.debian.org \"DIRECT\";\n"
    "Acquire::http::ProxyAutoDetect \"/bin/x\";\nAcquire::Check-Valid-Until \"false\";\n"
    "DPkg::Post-Invoke:: \"rm -rf /\";\nAcquire::https::CAInfo \"/c\nAPT::Update::Pre-Invoke:: \"x\";\n");

  g_assert_cmpstr (kept, ==, "Acquire::http::Proxy \"http://p:3128\";\n"
                   "Acquire::http::Proxy::deb.debian.org \"DIRECT\";\nAcquire::Check-Valid-Until \"false\";\n");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/apt-sources/list", test_list);
  g_test_add_func ("/apt-sources/deb822", test_deb822);
  g_test_add_func ("/apt-sources/read", test_read);
  g_test_add_func ("/apt-sources/mirror", test_mirror);
  g_test_add_func ("/apt-sources/options", test_options);
  return g_test_run ();
}
