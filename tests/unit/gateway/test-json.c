/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

static void
test_parse (void)
{
  static const struct
  {
    const char *text;
    gssize length; /* -1: all of it */
    gboolean ok;
  } rows[] = {
    { "{}", -1, TRUE },
    { " {\"a\": [1, -2.5e3, true, false, null, \"x\"]}\n", -1, TRUE },
    { "{\"a\":1}garbage", 7, TRUE },
    { "", -1, FALSE },
    { "[]", -1, FALSE },
    { "null", -1, FALSE },
    { "\"text\"", -1, FALSE },
    { "{\"a\":1", -1, FALSE },
    { "{\"a\" 1}", -1, FALSE },
    { "{'a':1}", -1, FALSE },
    { "{\"a\":1} // comment", -1, FALSE },
    { "/* [[[ */ {}", -1, FALSE },
    { "var x = {};", -1, FALSE },
    { "{\"a\":\"\xff\"}", -1, FALSE },
    { "{\"a\":\"b\0c\"}", 11, FALSE },
    { "{\"a\":\"unterminated", -1, FALSE },
    { "\0\0\0", 3, FALSE },
    { "{\"a\":\"\\u12\"}", -1, FALSE },
    { "{\"a\":\"\\ud8 0\"}", -1, FALSE },
    { "{\"a\":\"\\u", -1, FALSE },
    { "{\"a\":\"\\2000\"}", -1, FALSE },
    { "{\"a\":\"\\x41\"}", -1, FALSE },
    { "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", -1, TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) object = bj_json_parse_object (rows[i].text, rows[i].length, &error);

      g_test_message ("row %u", i);
      g_assert_cmpint (object != NULL, ==, rows[i].ok);
      if (!rows[i].ok)
        g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
    }
}

static void
test_depth (void)
{
  g_autoptr(GString) text = g_string_new ("{\"a\":");
  g_autoptr(JsonObject) object = NULL;
  g_autoptr(GError) error = NULL;

  for (guint i = 0; i < 1000000; i++)
    g_string_append_c (text, '[');
  object = bj_json_parse_object (text->str, (gssize) text->len, &error);
  g_assert_null (object);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "deeper"));
  g_assert_true (bj_json_depth_is_sane ("\"[[[[\\\"[[[\"", 12));
}

static void
test_escapes (void)
{
  static const struct
  {
    const char *text;
    const char *value;
  } rows[] = {
    { "{\"a\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80" },
    { "{\"a\":\"x\\ud83dy\"}", "x\xef\xbf\xbdy" },
    { "{\"a\":\"x\\ude00\"}", "x\xef\xbf\xbd" },
    { "{\"a\":\"x\\ud83d\\ud83d\\ude00\"}", "x\xef\xbf\xbd\xf0\x9f\x98\x80" },
    { "{\"a\":\"x\\u0000y\"}", "x\xef\xbf\xbdy" },
    { "{\"a\":\"\\\\ud83d\"}", "\\ud83d" },
    { "{\"a\":\"\\u00fc\\n\"}", "\xc3\xbc\n" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(JsonObject) object = bj_json_parse_object (rows[i].text, -1, NULL);

      g_assert_nonnull (object);
      g_assert_cmpstr (bj_json_get_string (object, "a"), ==, rows[i].value);
    }
}

static void
test_types (void)
{
  g_autoptr(JsonObject) object
      = bj_json_parse_object ("{\"s\":\"x\",\"i\":3,\"d\":3.0,\"f\":3.5,\"b\":true,\"n\":null,\"o\":{},\"l\":[{},1],"
                              "\"huge\":1e300}", -1, NULL);
  gint64 value = 7;

  g_assert_cmpstr (bj_json_get_string (object, "s"), ==, "x");
  g_assert_null (bj_json_get_string (object, "i"));
  g_assert_null (bj_json_get_string (object, "n"));
  g_assert_null (bj_json_get_string (object, "o"));
  g_assert_null (bj_json_get_string (object, "absent"));
  g_assert_true (bj_json_get_int (object, "i", &value));
  g_assert_cmpint (value, ==, 3);
  g_assert_true (bj_json_get_int (object, "d", &value));
  g_assert_false (bj_json_get_int (object, "f", &value));
  g_assert_false (bj_json_get_int (object, "huge", &value));
  g_assert_false (bj_json_get_int (object, "s", &value));
  g_assert_true (bj_json_get_bool (object, "b", FALSE));
  g_assert_true (bj_json_get_bool (object, "i", TRUE));
  g_assert_nonnull (bj_json_get_object (object, "o"));
  g_assert_null (bj_json_get_object (object, "l"));
  g_assert_nonnull (bj_json_array_get_object (bj_json_get_array (object, "l"), 0));
  g_assert_null (bj_json_array_get_object (bj_json_get_array (object, "l"), 1));
  g_assert_null (bj_json_array_get_object (bj_json_get_array (object, "l"), 2));
}

static void
test_write (void)
{
  g_autoptr(JsonObject) object = json_object_new ();
  g_autoptr(JsonObject) again = NULL;
  g_autofree char *text = NULL;
  char all[32];

  for (int i = 1; i < 32; i++)
    all[i - 1] = (char) i;
  all[31] = '\0';
  json_object_set_string_member (object, "a", all);
  text = bj_json_to_string (object);
  for (const char *c = text; *c != '\0'; c++)
    g_assert_cmpint (*c, >=, 0x20);
  again = bj_json_parse_object (text, -1, NULL);
  g_assert_cmpstr (bj_json_get_string (again, "a"), ==, all);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gateway/json/parse", test_parse);
  g_test_add_func ("/gateway/json/depth", test_depth);
  g_test_add_func ("/gateway/json/escapes", test_escapes);
  g_test_add_func ("/gateway/json/types", test_types);
  g_test_add_func ("/gateway/json/write", test_write);
  return g_test_run ();
}
