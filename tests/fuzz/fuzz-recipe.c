/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes as a recipe.ini: refused, or something whose words may stand in a command line. */

#include "bj-name.h"
#include "bj-recipe.h"
#include "fuzz.h"

#include <string.h>

static void
check_words (GStrv words)
{
  for (guint i = 0; words[i] != NULL; i++)
    {
      g_assert_cmpint (*words[i], !=, '-');
      g_assert_null (strpbrk (words[i], "\n'\""));
      g_assert_null (strstr (words[i], "/../"));
    }
}

static void
check_script (const char *script)
{
  g_assert_true (script == NULL || strchr (script, '/') == NULL);
  g_assert_cmpstr (script, !=, "..");
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjRecipe) recipe = bj_recipe_parse ("/r/recipe.ini", size > 0 ? (const char *) data : "", size, &error);

  g_assert_true ((recipe == NULL) == (error != NULL));
  if (recipe == NULL)
    {
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
      return 0;
    }
  g_assert_true (bj_name_is_valid (recipe->name));
  g_assert_cmpuint (recipe->disk_mib, >, 0);
  g_assert_cmpuint (recipe->boot_timeout_s, >, 0);
  check_words (recipe->packages);
  check_words (recipe->modules);
  check_words (recipe->mask);
  check_script (recipe->script);
  check_script (recipe->customize);
  check_script (recipe->smoke);
  return 0;
}
