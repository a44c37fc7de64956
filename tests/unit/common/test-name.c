/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-name.h"

#include <string.h>

static void
test_valid (void)
{
  static const struct
  {
    const char *name;
    gboolean valid;
  } cases[] = {
    { "blue-project", TRUE }, { "a", TRUE },      { "0", TRUE },      { "a.b_c-d", TRUE }, { "", FALSE },
    { NULL, FALSE },          { "../etc", FALSE }, { "a/b", FALSE },   { "-rf", FALSE },    { ".hidden", FALSE },
    { "_x", FALSE },          { "Upper", FALSE },  { "a b", FALSE },   { "a\nb", FALSE },   { "ä", FALSE },
    { "a\x7f", FALSE },
    { "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0", TRUE },
    { "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz01", FALSE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_test_message ("%s", cases[i].name ? cases[i].name : "(null)");
      g_assert_cmpint (bj_name_is_valid (cases[i].name), ==, cases[i].valid);
    }
}

static void
test_path_element (void)
{
  static const char *const cases[][2] = { { "abc", "abc" }, { "a.b", "a_2eb" }, { "a-b_c", "a_2db_5fc" }, { "0", "0" } };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *element = bj_name_to_path_element (cases[i][0]);

      g_assert_cmpstr (element, ==, cases[i][1]);
    }
}

static void
test_id (void)
{
  g_autofree char *one = bj_name_new_id ();
  g_autofree char *other = bj_name_new_id ();

  g_assert_true (bj_id_is_valid (one));
  g_assert_cmpstr (one, !=, other);
  g_assert_false (bj_id_is_valid ("abcdefg"));
  g_assert_false (bj_id_is_valid ("abcdefg1"));
  g_assert_false (bj_id_is_valid ("../../ab"));
  g_assert_false (bj_id_is_valid (NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/name/valid", test_valid);
  g_test_add_func ("/name/path-element", test_path_element);
  g_test_add_func ("/name/id", test_id);
  return g_test_run ();
}
