/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-options.h"

#include <string.h>

static gboolean
check_small (GVariant *value, GError **error)
{
  return g_variant_get_uint32 (value) <= 8 || bj_error_set (error, BJ_ERROR_INVALID, "at most 8");
}

static const BjOption table[] = { { "cpus", "u", check_small }, { "network", "s", NULL }, { "cwd", "ay", NULL } };

static const struct
{
  const char *options;
  const char *message; /* NULL: fine */
} cases[] = {
  { "{}", NULL },
  { "{'cpus': <uint32 8>, 'network': <'none'>, 'cwd': <b'/tmp'>}", NULL },
  { "{'cpus': <uint32 9>}", "Option “cpus”: at most 8" },
  { "{'cpus': <8>}", "Option “cpus” must be of type u, not i" },
  { "{'cpus': <<uint32 8>>}", "Option “cpus” must be of type u, not v" },
  { "{'Cpus': <uint32 8>}", "Option “Cpus” is not known: there are cpus, network, cwd" },
  { "{'': <uint32 8>}", "Option “” is not known: there are cpus, network, cwd" },
};

static void
test_cases (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(GVariant) options = g_variant_parse (G_VARIANT_TYPE_VARDICT, cases[i].options, NULL, NULL, &error);
      gboolean fine;

      g_assert_no_error (error);
      fine = bj_options_check (options, table, G_N_ELEMENTS (table), &error);
      g_assert_cmpint (fine, ==, cases[i].message == NULL);
      if (fine)
        continue;
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==, cases[i].message);
    }
}

static void
test_twice (void)
{
  GVariantBuilder builder = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE_VARDICT);
  g_autoptr(GVariant) options = NULL;
  g_autoptr(GError) error = NULL;

  g_variant_builder_add (&builder, "{sv}", "network", g_variant_new_string ("none"));
  g_variant_builder_add (&builder, "{sv}", "network", g_variant_new_string ("internet"));
  options = g_variant_ref_sink (g_variant_builder_end (&builder));
  g_assert_false (bj_options_check (options, table, G_N_ELEMENTS (table), &error));
  g_assert_cmpstr (error->message, ==, "Option “network” is given twice");
}

static void
test_empty_table (void)
{
  g_autoptr(GVariant) options = g_variant_new_parsed ("@a{sv} {'x': <1>}");
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_options_check (options, NULL, 0, &error));
  g_assert_cmpstr (error->message, ==, "Option “x” is not known: this call takes none");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/options/cases", test_cases);
  g_test_add_func ("/options/twice", test_twice);
  g_test_add_func ("/options/empty-table", test_empty_table);
  return g_test_run ();
}
