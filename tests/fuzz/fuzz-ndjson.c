/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fuzz.h"

#include "bj-answer.h"
#include "bj-json.h"
#include "bj-ndjson.h"

static gboolean
on_line (const char *line, gsize length, gpointer answer, GError **error)
{
  return bj_answer_push_line (answer, line, length, error);
}

/* The input is a stream of /api/chat as it comes off the wire; its first byte says in which pieces. */
int
LLVMFuzzerTestOneInput (const guint8 *data, size_t size)
{
  g_autoptr(BjAnswer) answer = bj_answer_new (256);
  g_autoptr(BjNdjson) lines = bj_ndjson_new (512, on_line, answer);
  g_autoptr(GError) error = NULL;
  const char *bytes = (const char *) data;
  gsize step = size > 0 ? 1 + data[0] % 64 : 1;
  gboolean ok = TRUE;

  for (gsize at = 1; ok && at < size; at += step)
    ok = bj_ndjson_push (lines, bytes + at, MIN (step, size - at), &error);
  ok = ok && bj_ndjson_end (lines, &error);
  g_assert_true (ok == (error == NULL));
  g_assert_cmpuint (answer->content->len, <=, 256);
  g_assert_cmpuint (answer->thinking->len, <=, 256);
  g_assert_true (g_utf8_validate (answer->content->str, (gssize) answer->content->len, NULL));
  for (guint i = 0; i < json_array_get_length (answer->tool_calls); i++)
    {
      g_autofree char *text = bj_json_node_to_string (json_array_get_element (answer->tool_calls, i));

      g_assert_true (g_utf8_validate (text, -1, NULL));
    }
  return 0;
}
