/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-answer.h"

#include "bj-error.h"

#include <string.h>

static void
push (BjAnswer *answer, const char *line)
{
  g_autoptr(GError) error = NULL;

  bj_answer_push_line (answer, line, strlen (line), &error);
  g_assert_no_error (error);
}

static void
test_whole (void)
{
  g_autoptr(BjAnswer) answer = bj_answer_new (1000);

  push (answer, "{\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\"},\"done\":false}");
  push (answer, "{\"message\":{\"content\":\"Hel\"},\"done\":false}");
  push (answer, "{\"message\":{\"content\":\"lo\",\"tool_calls\":[{\"function\":{\"name\":\"a\"}},7]},\"done\":false}");
  g_assert_false (answer->done);
  push (answer, "{\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":12,\"eval_count\":3.0}");
  g_assert_true (answer->done);
  g_assert_false (answer->full);
  g_assert_cmpstr (answer->content->str, ==, "Hello");
  g_assert_cmpstr (answer->thinking->str, ==, "hm");
  g_assert_cmpuint (json_array_get_length (answer->tool_calls), ==, 2);
  g_assert_cmpstr (answer->done_reason, ==, "stop");
  g_assert_cmpint (answer->prompt_tokens, ==, 12);
  g_assert_cmpint (answer->eval_tokens, ==, 3);
}

static void
test_odd (void)
{
  static const char *const harmless[] = { "{}", "{\"message\":null}", "{\"message\":[]}", "{\"message\":{\"content\":7}}",
                                          "{\"message\":{\"tool_calls\":{}}}", "{\"done\":\"true\"}" };
  static const char *const bad[] = { "", "nonsense", "[1]", "{\"error\":\"out of memory\"}", "{\"error\":{}}",
                                     "{\"message\":{\"content\":\"x\"}", "\xff\xfe" };
  g_autoptr(BjAnswer) answer = bj_answer_new (1000);

  for (guint i = 0; i < G_N_ELEMENTS (harmless); i++)
    push (answer, harmless[i]);
  g_assert_cmpuint (answer->content->len, ==, 0);
  g_assert_false (answer->done);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GError) error = NULL;

      g_assert_false (bj_answer_push_line (answer, bad[i], strlen (bad[i]), &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_MODEL_UNREACHABLE);
    }
}

static void
test_caps (void)
{
  g_autoptr(BjAnswer) answer = bj_answer_new (10);
  g_autoptr(BjAnswer) calls = bj_answer_new (10);

  push (answer, "{\"message\":{\"content\":\"123456789\xc3\xbc\"}}");
  g_assert_true (answer->full);
  g_assert_cmpstr (answer->content->str, ==, "123456789");
  for (guint i = 0; i < 200; i++)
    push (calls, "{\"message\":{\"tool_calls\":[{},{}]}}");
  g_assert_true (calls->full);
  g_assert_cmpuint (json_array_get_length (calls->tool_calls), ==, 256);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/agent/answer/whole", test_whole);
  g_test_add_func ("/agent/answer/odd", test_odd);
  g_test_add_func ("/agent/answer/caps", test_caps);
  return g_test_run ();
}
