/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-json.h"

#include "bj-error.h"

#include <math.h>
#include <string.h>

static const struct { const char *in, *out; } canonical[] = {
  { "{}", "{}" },
  { " { \"b\" : 1 , \"a\" : [ true , false , null ] } ", "{\"a\":[true,false,null],\"b\":1}" },
  { "{\"a\":\"\\u00e9\\n\\t\\u0001\\\"\\\\\\/\"}", "{\"a\":\"é\\n\\t\\u0001\\\"\\\\/\"}" },
  { "{\"a\":1.5,\"b\":0.1,\"c\":1e3,\"d\":-0.0,\"e\":1e300,\"f\":12345678901234}",
    "{\"a\":1.5,\"b\":0.1,\"c\":1000,\"d\":0,\"e\":1e+300,\"f\":12345678901234}" },
  { "{\"é\":1,\"z\":2,\"Z\":3}", "{\"Z\":3,\"z\":2,\"é\":1}" },
  { "{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"😀\"}" },
  { "{\"o\":{\"y\":{},\"x\":[[]]}}", "{\"o\":{\"x\":[[]],\"y\":{}}}" },
};

static void
test_canonical (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (canonical); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) object = bj_json_parse (canonical[i].in, strlen (canonical[i].in), 8, 100, &error);
      g_autofree char *out = NULL;
      g_autoptr(JsonObject) again = NULL;
      g_autofree char *out_again = NULL;

      g_assert_no_error (error);
      out = bj_json_to_canonical (object);
      g_assert_cmpstr (out, ==, canonical[i].out);
      again = bj_json_parse (out, strlen (out), 8, 100, &error);
      g_assert_no_error (error);
      out_again = bj_json_to_canonical (again);
      g_assert_cmpstr (out_again, ==, out);
    }
}

static void
test_numbers (void)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed (3);

  for (guint i = 0; i < 5000; i++)
    {
      double value = ldexp (g_rand_double_range (rand, -1, 1), g_rand_int_range (rand, -300, 300));
      g_autoptr(JsonObject) object = json_object_new ();
      g_autoptr(JsonObject) again = NULL;
      g_autofree char *one = NULL;
      g_autofree char *two = NULL;

      json_object_set_double_member (object, "v", value);
      one = bj_json_to_canonical (object);
      again = bj_json_parse (one, strlen (one), 2, 10, NULL);
      two = bj_json_to_canonical (again);
      g_assert_cmpstr (one, ==, two);
      g_assert_cmpfloat (bj_json_get_double (again, "v", 7), ==, value);
    }
}

static const struct { const char *in; gssize length; BjError code; } bad[] = {
  { "", -1, BJ_ERROR_INVALID },
  { "[]", -1, BJ_ERROR_INVALID },
  { "{", -1, BJ_ERROR_INVALID },
  { "{\"a\":1", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"x}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"x\\", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"x\n\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":1}\0", 8, BJ_ERROR_INVALID },
  { "{/* \" */\"a\":1}", -1, BJ_ERROR_INVALID },
  { "{'a':1}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"\xff\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"\\202\"}", -1, BJ_ERROR_INVALID },        /* C's escapes, which make bytes that are no UTF-8 */
  { "{\"a\":\"\\x41\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"\\u00\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"\\u0000\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"\\ud800\"}", -1, BJ_ERROR_INVALID },      /* halves of pairs */
  { "{\"a\":\"\\ud800\\u0041\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":\"\\udc00\"}", -1, BJ_ERROR_INVALID },
  { "{\"a\":1,\"a\":1}", -1, BJ_ERROR_INVALID },      /* one of them would not count */
  { "{\"b\":[{},{\"a:\":1,\"c\":\":\",\"a\\u003a\":2}]}", -1, BJ_ERROR_INVALID },
  { "{\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}", -1, BJ_ERROR_LIMIT },
  { "{\"a\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]}", -1, BJ_ERROR_LIMIT },
};

static void
test_bad (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GError) error = NULL;
      gsize length = bad[i].length < 0 ? strlen (bad[i].in) : (gsize) bad[i].length;

      g_assert_null (bj_json_parse (bad[i].in, length, 8, 20, &error));
      g_assert_error (error, BJ_ERROR, (int) bad[i].code);
    }
}

static void
test_deep (void)
{
  gsize depth = 5 * 1000 * 1000;
  g_autofree char *deep = g_malloc (depth + 5);
  g_autoptr(GError) error = NULL;

  memcpy (deep, "{\"a\":", 5);
  memset (deep + 5, '[', depth);
  g_assert_null (bj_json_parse (deep, depth + 5, 24, G_MAXUINT, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
}

static void
test_getters (void)
{
  const char *text = "{\"s\":\"x\",\"i\":5,\"d\":1.5,\"b\":true,\"n\":null,\"a\":[\"y\",1,{}],\"o\":{}}";
  g_autoptr(JsonObject) object = bj_json_parse (text, strlen (text), 8, 100, NULL);
  static const char *const keys[] = { "s", "i", "d", "b", "n", "a", "o", "missing" };

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const char *k = keys[i];

      g_assert_cmpstr (bj_json_get_string (object, k, "-"), ==, *k == 's' ? "x" : "-");
      g_assert_cmpint (bj_json_get_int (object, k, -1), ==, *k == 'i' ? 5 : -1);
      g_assert_cmpfloat (bj_json_get_double (object, k, -1), ==, *k == 'i' ? 5 : *k == 'd' ? 1.5 : -1);
      g_assert_cmpint (bj_json_get_boolean (object, k), ==, *k == 'b');
      g_assert_cmpint (bj_json_get_array (object, k) != NULL, ==, *k == 'a');
      g_assert_cmpint (bj_json_get_object (object, k) != NULL, ==, *k == 'o');
      g_assert_cmpint (bj_json_has (object, k), ==, *k != 'n' && *k != 'm');
    }
  g_assert_cmpstr (bj_json_array_get_string (bj_json_get_array (object, "a"), 0), ==, "y");
  g_assert_null (bj_json_array_get_string (bj_json_get_array (object, "a"), 1));
  g_assert_nonnull (bj_json_array_get_object (bj_json_get_array (object, "a"), 2));
  g_assert_null (bj_json_array_get_object (bj_json_get_array (object, "a"), 0));
  g_assert_null (bj_json_get_object (NULL, "x"));
}

/* The canonical form writes them as 3: who reads the signed report sees the same number. */
static void
test_whole_numbers (void)
{
  static const struct { const char *text; gint64 value; } cases[] = {
    { "{\"v\":3.0}", 3 }, { "{\"v\":3e0}", 3 }, { "{\"v\":-0.0}", 0 }, { "{\"v\":-7.0}", -7 }, { "{\"v\":3.5}", -1 },
    { "{\"v\":1e15}", -1 }, { "{\"v\":1e300}", -1 }, { "{\"v\":\"3\"}", -1 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(JsonObject) object = bj_json_parse (cases[i].text, strlen (cases[i].text), 2, 10, NULL);

      g_assert_cmpint (bj_json_get_int (object, "v", -1), ==, cases[i].value);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/json/canonical", test_canonical);
  g_test_add_func ("/json/numbers", test_numbers);
  g_test_add_func ("/json/bad", test_bad);
  g_test_add_func ("/json/deep", test_deep);
  g_test_add_func ("/json/getters", test_getters);
  g_test_add_func ("/json/whole-numbers", test_whole_numbers);
  return g_test_run ();
}
