/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tool-call.h"

#include "bj-json.h"

static const char *const known[] = { "run", "finish", NULL };

/* "run{"command":"ls"};?{problem};" */
static char *
show (GPtrArray *calls)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < calls->len; i++)
    {
      const BjToolCall *call = g_ptr_array_index (calls, i);
      g_autofree char *arguments = call->arguments ? bj_json_to_string (call->arguments) : g_strdup ("!");

      g_assert_cmpint (call->arguments == NULL, ==, call->problem != NULL);
      g_string_append_printf (text, "%s%s;", call->name, arguments);
    }
  return g_string_free (text, FALSE);
}

static void
test_array (void)
{
  static const struct
  {
    const char *json;
    const char *expected;
  } rows[] = {
    { "{\"c\":[]}", "" },
    { "{\"c\":[{\"function\":{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}}]}", "run{\"command\":\"ls\"};" },
    { "{\"c\":[{\"id\":\"x\",\"type\":\"function\",\"function\":{\"name\":\"run\",\"arguments\":\"{\\\"a\\\":1}\"}}]}",
      "run{\"a\":1};" },
    { "{\"c\":[{\"function\":{\"name\":\"run\"}},{\"function\":{\"name\":\"run\",\"arguments\":null}},"
      "{\"function\":{\"name\":\"run\",\"arguments\":\"\"}}]}", "run{};run{};run{};" },
    { "{\"c\":[{\"name\":\"run\",\"arguments\":{}}]}", "run{};" },
    { "{\"c\":[{\"function\":{\"name\":\"run\",\"arguments\":[1]}}]}", "run!;" },
    { "{\"c\":[{\"function\":{\"name\":\"run\",\"arguments\":7}}]}", "run!;" },
    { "{\"c\":[{\"function\":{\"name\":\"run\",\"arguments\":\"rm -rf\"}}]}", "run!;" },
    { "{\"c\":[{\"function\":{\"name\":\"\"}},{\"function\":{\"name\":3}},{},null,5,[],\"x\"]}", "!;!;!;!;!;!;!;" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(JsonObject) object = bj_json_parse_object (rows[i].json, -1, NULL);
      g_autoptr(GPtrArray) calls = bj_tool_calls_from_array (bj_json_get_array (object, "c"));
      g_autofree char *text = show (calls);

      g_assert_cmpstr (text, ==, rows[i].expected);
    }
}

static void
test_text (void)
{
  static const struct
  {
    const char *text;
    const char *expected;
  } rows[] = {
    { "", "" },
    { "I would run ls now.", "" },
    { "<tool_call>{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}</tool_call>", "run{\"command\":\"ls\"};" },
    { "Well.\n<tool_call>\n{\"name\": \"fly\", \"arguments\": {}}\n</tool_call>", "fly{};" },
    { "<tool_call>{\"name\":\"run\",\"arguments\":{}}", "run{};" },
    { "<tool_call>{\"name\":\"run\",\"arguments\":{\"command\":\"echo '</tool_call>\"}}", "run{\"command\":\"echo '</tool_call>\"};" },
    { "<tool_call>{\"name\":\"run\",\"arguments\":{\"command\":\"</tool_call>\"}}</tool_call><tool_call>{\"name\":\"fly\"}</tool_call>",
      "run{\"command\":\"</tool_call>\"};fly{};" },
    { "<tool_call>{\"name\":\"run\",\"arguments\":{}}</tool_call> and <tool_call>{\"name\":\"finish\",\"arguments\":"
      "{\"summary\":\"x\"}}</tool_call>", "run{};finish{\"summary\":\"x\"};" },
    { "<tool_call>run ls</tool_call>", "!;" },
    { "<tool_call>", "" },
    { "<function_call>{\"name\":\"run\",\"parameters\":{\"command\":\"ls\"}}</function_call>", "run{\"command\":\"ls\"};" },
    { "```json\n{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}\n```", "run{\"command\":\"ls\"};" },
    { "```\n[{\"tool\":\"run\",\"args\":{}},{\"name\":\"finish\",\"input\":{}}]\n```", "run{};finish{};" },
    { "```json\n{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}", "run{\"command\":\"ls\"};" },
    { "```json\n{\"name\":\"belljar\",\"version\":1}\n```", "" },
    { "```json\n{\"name\":\"fly\",\"arguments\":{}}\n```", "" },
    { "```json\n{\"name\":\"run\"}\n```", "" },
    { "{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}", "run{\"command\":\"ls\"};" },
    { "I do this:\n  {\"name\": \"run\",\n   \"arguments\": {\"command\": \"a } b\"}}\nThen we see.", "run{\"command\":\"a } b\"};" },
    { "{\"type\":\"function\",\"function\":{\"name\":\"run\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}}",
      "run{\"command\":\"ls\"};" },
    { "The object {\"name\":\"run\",\"arguments\":{}} stands in the middle.", "" },
    { "{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}", "" },
    { "[{\"name\":\"run\",\"arguments\":{}},\n {\"name\":\"finish\",\"arguments\":{}}]", "run{};finish{};" },
    { "{{{{{{", "" },
    { "\"{\"\n}\n{", "" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr(GPtrArray) calls = bj_tool_calls_from_text (rows[i].text, known);
      g_autofree char *text = show (calls);

      g_test_message ("row %u: %s", i, rows[i].text);
      g_assert_cmpstr (text, ==, rows[i].expected);
    }
}

static void
test_many (void)
{
  g_autoptr(GString) text = g_string_new (NULL);
  g_autoptr(GString) braces = g_string_new (NULL);
  g_autoptr(GPtrArray) calls = NULL;
  g_autoptr(GPtrArray) none = NULL;

  for (guint i = 0; i < 10000; i++)
    {
      g_string_append (text, "<tool_call>{\"name\":\"run\",\"arguments\":{}}</tool_call>\n");
      g_string_append (braces, "{\n");
    }
  calls = bj_tool_calls_from_text (text->str, known);
  g_assert_cmpuint (calls->len, ==, 64);
  none = bj_tool_calls_from_text (braces->str, known);
  g_assert_cmpuint (none->len, ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/agent/tool-call/array", test_array);
  g_test_add_func ("/agent/tool-call/text", test_text);
  g_test_add_func ("/agent/tool-call/many", test_many);
  return g_test_run ();
}
