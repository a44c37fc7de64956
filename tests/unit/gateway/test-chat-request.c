/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-chat-request.h"
#include "bj-error.h"

#include <string.h>

static char *
to_text (GBytes *bytes)
{
  return bytes ? g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes)) : NULL;
}

static void
test_build (void)
{
  static const struct
  {
    const char *body;
    guint context;
    const char *expected; /* NULL: error */
    int error;
  } rows[] = {
    { "{\"model\":\"m\",\"messages\":[]}", 4096, "{\"model\":\"m\",\"messages\":[],\"options\":{\"num_ctx\":4096}}", 0 },
    { "{\"model\":\"m:latest\",\"messages\":[]}", 0, "{\"model\":\"m\",\"messages\":[],\"options\":{}}", 0 },
    { "{\"model\":\"m\",\"options\":{\"num_ctx\":100}}", 4096, "{\"model\":\"m\",\"options\":{\"num_ctx\":100}}", 0 },
    { "{\"model\":\"m\",\"options\":{\"num_ctx\":9999}}", 4096, "{\"model\":\"m\",\"options\":{\"num_ctx\":4096}}", 0 },
    { "{\"model\":\"m\",\"options\":{\"num_ctx\":9999}}", 0, "{\"model\":\"m\",\"options\":{\"num_ctx\":9999}}", 0 },
    { "{\"model\":\"m\",\"options\":{\"num_ctx\":99999999}}", 0, "{\"model\":\"m\",\"options\":{\"num_ctx\":32768}}", 0 },
    { "{\"model\":\"m\",\"options\":{\"num_ctx\":-5}}", 4096, "{\"model\":\"m\",\"options\":{\"num_ctx\":4096}}", 0 },
    { "{\"model\":\"m\",\"options\":{\"num_ctx\":\"5\"}}", 4096, "{\"model\":\"m\",\"options\":{\"num_ctx\":4096}}", 0 },
    { "{\"model\":\"m\",\"options\":[1]}", 4096, "{\"model\":\"m\",\"options\":{\"num_ctx\":4096}}", 0 },
    { "{\"model\":\"m\",\"keep_alive\":0,\"raw\":true,\"think\":true,\"stream\":false,\"options\":{\"seed\":1,"
      "\"num_gpu\":9}}", 0, "{\"model\":\"m\",\"stream\":false,\"think\":true,\"options\":{\"seed\":1}}", 0 },
    { "{\"model\":\"other\"}", 0, NULL, BJ_ERROR_DENIED },
    { "{\"model\":\"m\",\"model\":\"other\"}", 0, NULL, BJ_ERROR_DENIED },
    { "{\"model\":\"M\"}", 0, NULL, BJ_ERROR_DENIED },
    { "{\"model\":\"m:7b\"}", 0, NULL, BJ_ERROR_DENIED },
    { "{\"model\":7}", 0, NULL, BJ_ERROR_INVALID },
    { "{\"messages\":[]}", 0, NULL, BJ_ERROR_INVALID },
    { "[]", 0, NULL, BJ_ERROR_INVALID },
    { "", 0, NULL, BJ_ERROR_INVALID },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GBytes) body = g_bytes_new_static (rows[i].body, strlen (rows[i].body));
      g_autoptr(GError) error = NULL;
      g_autoptr(GBytes) built = bj_chat_request_build (body, "m", rows[i].context, &error);
      g_autofree char *text = to_text (built);

      g_test_message ("row %u", i);
      g_assert_cmpstr (text, ==, rows[i].expected);
      if (rows[i].expected == NULL)
        g_assert_error (error, BJ_ERROR, rows[i].error);
    }
}

static void
test_show (void)
{
  g_autoptr(GBytes) body = g_bytes_new_static ("{\"name\":\"m\",\"verbose\":true}", 27);
  g_autoptr(GBytes) built = bj_show_request_build (body, "m", NULL);
  g_autofree char *text = to_text (built);
  g_autoptr(GError) error = NULL;

  g_assert_cmpstr (text, ==, "{\"model\":\"m\"}");
  g_assert_null (bj_show_request_build (body, "other", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_DENIED);
  g_clear_error (&error);
  g_assert_null (bj_show_request_build (NULL, "m", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

static void
test_tags (void)
{
  static const char *const allow[] = { "a", "b:7b", NULL };
  static const char json[] = "{\"models\":[{\"name\":\"a:latest\"},{\"name\":\"secret\"},7,{},{\"name\":\"b:7b\"},{\"name\":\"b\"}]}";
  g_autoptr(GBytes) body = g_bytes_new_static (json, strlen (json));
  g_autoptr(GBytes) nothing = g_bytes_new_static ("{}", 2);
  g_autoptr(GBytes) some = bj_tags_filter (body, allow, NULL);
  g_autoptr(GBytes) none = bj_tags_filter (nothing, allow, NULL);
  g_autofree char *text = to_text (some);
  g_autofree char *empty = to_text (none);

  g_assert_cmpstr (text, ==, "{\"models\":[{\"name\":\"a:latest\"},{\"name\":\"b:7b\"}]}");
  g_assert_cmpstr (empty, ==, "{\"models\":[]}");
}

static void
test_info (void)
{
  static const struct
  {
    const char *json;
    BjModelInfo info;
  } rows[] = {
    { "{\"capabilities\":[\"completion\",\"tools\",\"thinking\"],\"model_info\":{\"qwen3.context_length\":40960}}",
      { TRUE, TRUE, FALSE, TRUE, 32768 } },
    { "{\"capabilities\":[\"vision\",3,null],\"model_info\":{\"x.context_length\":2048.0}}", { TRUE, FALSE, TRUE, FALSE, 2048 } },
    { "{\"template\":\"{{ if .Tools }}\",\"model_info\":{\"x.context_length\":-1}}", { TRUE, TRUE, FALSE, FALSE, 0 } },
    { "{\"capabilities\":\"tools\",\"model_info\":[]}", { TRUE, FALSE, FALSE, FALSE, 0 } },
    { "{}", { TRUE, FALSE, FALSE, FALSE, 0 } },
  };
  BjModelInfo info;
  g_autoptr(GBytes) junk = g_bytes_new_static ("junk", 4);

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GBytes) body = g_bytes_new_static (rows[i].json, strlen (rows[i].json));

      g_test_message ("row %u", i);
      g_assert_true (bj_model_info_parse (body, &info, NULL));
      g_assert_cmpint (info.tools, ==, rows[i].info.tools);
      g_assert_cmpint (info.vision, ==, rows[i].info.vision);
      g_assert_cmpint (info.thinking, ==, rows[i].info.thinking);
      g_assert_cmpuint (info.context, ==, rows[i].info.context);
    }
  g_assert_false (bj_model_info_parse (junk, &info, NULL));
  g_assert_false (info.found);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gateway/chat-request/build", test_build);
  g_test_add_func ("/gateway/chat-request/show", test_show);
  g_test_add_func ("/gateway/chat-request/tags", test_tags);
  g_test_add_func ("/gateway/chat-request/info", test_info);
  return g_test_run ();
}
