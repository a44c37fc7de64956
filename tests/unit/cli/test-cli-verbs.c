/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-verbs.h"

#include <string.h>

static void
test_find (void)
{
  static const struct
  {
    const char *words[4];
    const char *name; /* NULL: a usage error */
    guint used;
  } cases[] = {
    { { "task", "x" }, "task", 1 },
    { { "image", "build", "debian" }, "image build", 2 },
    { { "images" }, "images", 1 },
    { { "project", "copy-in", "demo" }, "project copy-in", 2 },
    { { "sessions", "--json" }, "sessions", 1 },
    { { NULL }, NULL, 0 },
    { { "image" }, NULL, 0 },
    { { "image", "paint" }, NULL, 0 },
    { { "image build" }, "image build", 1 },
    { { "tas" }, NULL, 0 },
    { { "" }, NULL, 0 },
    { { "\xff" }, NULL, 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;
      guint used = 0;
      const BjCliVerb *verb = bj_verbs_find ((char **) cases[i].words, &used, &error);

      g_test_message ("case %u", i);
      if (cases[i].name == NULL)
        {
          g_assert_null (verb);
          g_assert_error (error, BJ_USAGE_ERROR, 0);
          g_assert_true (g_utf8_validate (error->message, -1, NULL));
          continue;
        }
      g_assert_nonnull (verb);
      g_assert_cmpstr (verb->name, ==, cases[i].name);
      g_assert_cmpuint (used, ==, cases[i].used);
    }
}

/* Each verb for people has one line, more help, and an example that calls it. */
static void
test_every_verb_teaches (void)
{
  for (const BjCliVerb *verb = bj_verbs_get (); verb->name != NULL; verb++)
    {
      g_autofree char *call = g_strconcat ("\n  belljar ", verb->name, NULL);
      g_autofree char *piped = g_strconcat ("| belljar ", verb->name, NULL);

      g_test_message ("%s", verb->name);
      g_assert_nonnull (verb->run);
      g_assert_nonnull (verb->usage);
      if (verb->summary == NULL)
        continue;
      g_assert_null (strchr (verb->summary, '\n'));
      g_assert_true (strstr (verb->help, call) != NULL || strstr (verb->help, piped) != NULL);
    }
}

static void
test_group_help (void)
{
  g_autofree char *all = bj_verbs_format_help (NULL);
  g_autofree char *images = bj_verbs_format_help ("image");

  g_assert_nonnull (strstr (all, "  task "));
  g_assert_nonnull (strstr (all, "  image build "));
  g_assert_null (strstr (all, "  complete "));
  g_assert_nonnull (strstr (images, "  image build "));
  g_assert_null (strstr (images, "  images "));
  g_assert_null (strstr (images, "  task "));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/find", test_find);
  g_test_add_func ("/cli/every-verb-teaches", test_every_verb_teaches);
  g_test_add_func ("/cli/group-help", test_group_help);
  return g_test_run ();
}
