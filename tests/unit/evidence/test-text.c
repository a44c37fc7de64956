/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "transcripts.h"

#include "bj-fd.h"
#include "bj-json.h"
#include "bj-report.h"
#include "bj-untrusted.h"

#include <string.h>

static JsonObject *
report_of_session (void)
{
  g_autofree char *folder = make_folder ();
  g_autofree char *path = g_build_filename (folder, "transcript.jsonl", NULL);
  g_autofree char *head = NULL;
  g_autoptr(JsonArray) records = NULL;
  g_auto(BjFd) fd = -1;

  write_session (path);
  fd = open_for_reading (path);
  records = bj_transcript_read (fd, &head, NULL, NULL);
  remove_folder (folder);
  return bj_report_build (records, head, NULL);
}

static void
test_proved (void)
{
  g_autoptr(JsonObject) report = report_of_session ();
  g_autofree char *text = bj_report_to_text (report, "m1", 80);

  g_test_message ("%s", text);
  g_assert_true (g_str_has_prefix (text, "verdict:     proved — "));
  g_assert_null (strstr (text, "why not proved"));
  g_assert_nonnull (strstr (text, "\ntask:        Fix the bug\\nplease\n"));
  g_assert_nonnull (strstr (text, "\nimage:       debian 3, sha256:1234\n"));
  g_assert_nonnull (strstr (text, "\ncommit:      commit-new\n"));
  g_assert_nonnull (strstr (text, "\n  baseline    exit 1        1.2 s"));
  g_assert_nonnull (strstr (text, "\n    | 1 test failed\n"));
  g_assert_nonnull (strstr (text, "\n     1  exit 2      0.3 s       make test\n"));
  g_assert_nonnull (strstr (text, "\n  modified   +12 -3         src/main.c\n"));
  g_assert_nonnull (strstr (text, "\n--- untrusted summary, m1 ---\n"));
  g_assert_nonnull (strstr (text, "\n| The loop ran one time too often.\n| Fixed.\n"
                                  "--- end of the untrusted summary, m1 ---\n"));
}

static void
test_not_proved (void)
{
  static const char json[] = "{\"outcome\":\"FAILED\",\"error\":{\"name\":\"x\",\"message\":\"The machine\\nwas gone\"},"
                             "\"check\":{\"command\":\"make test\",\"verdict\":\"passes\",\"why\":[\"no-baseline\",\"flaky\"],"
                             "\"runs\":[{\"where\":\"fresh\",\"exit\":null,\"failure\":\"gone\",\"duration_s\":75.2}]},"
                             "\"duration_s\":7300,\"limits\":[{\"limit\":\"steps\",\"value\":50}]}";
  g_autoptr(JsonObject) report = bj_json_parse (json, strlen (json), 8, 100, NULL);
  g_autofree char *text = bj_report_to_text (report, "m", 80);

  g_test_message ("%s", text);
  g_assert_nonnull (strstr (text, "\noutcome:     FAILED\nerror:       The machine\\nwas gone\nwhy not proved:\n"
                                  "  - The project had no commit before this session, so there was nothing to\n"
                                  "    compare with. (no-baseline)\n"
                                  "  - Two runs in fresh machines disagree. (flaky)\n"));
  g_assert_nonnull (strstr (text, "\n  fresh       not run       75 s          without network  gone\n"));
  g_assert_nonnull (strstr (text, ", 2 h 1 min\n"));
  g_assert_nonnull (strstr (text, "\nlimit hit:   steps (50)\n"));
  g_assert_null (strstr (text, "untrusted summary"));
}

/* Surely not run, perhaps run, and cut: the three can be told apart. */
static void
test_no_result (void)
{
  static const char json[] = "{\"outcome\":\"DONE\",\"check\":{\"command\":\"make test\",\"verdict\":\"failed\",\"why\":[\"stopped\"],"
                             "\"runs\":[{\"where\":\"fresh\",\"exit\":null,\"failure\":\"gone\",\"lost\":true,\"duration_s\":7}]},"
                             "\"commands\":[{\"n\":1,\"command\":\"kill -9 -1\",\"failure\":\"The agent was restarted\",\"lost\":true,"
                             "\"duration_s\":3.25},{\"n\":2,\"command\":\"ls\",\"failure\":\"It is gone\",\"lost\":false,"
                             "\"duration_s\":0},{\"n\":3,\"command\":\": xx…\",\"exit\":0,\"duration_s\":1,"
                             "\"command_truncated\":true,\"command_bytes\":60008,\"command_sha256\":\"0123ab\"}]}";
  g_autoptr(JsonObject) report = bj_json_parse (json, strlen (json), 8, 100, NULL);
  g_autofree char *text = bj_report_to_text (report, "m", 80);

  g_test_message ("%s", text);
  g_assert_nonnull (strstr (text, "  - The session was stopped before the check had ended. (stopped)\n"));
  g_assert_nonnull (strstr (text, "\n  fresh       no answer     7.0 s         without network  gone\n"));
  g_assert_nonnull (strstr (text, "\n     1  no answer   3.2 s       kill -9 -1\n        The agent was restarted\n"));
  g_assert_nonnull (strstr (text, "\n     2  not run     0.0 s       ls\n        It is gone\n"));
  g_assert_nonnull (strstr (text, "\n     3  exit 0      1.0 s       : xx…\n"
                                  "        (cut here: the command has 60008 bytes, SHA-256 0123ab)\n"));
}

static void
test_marker (void)
{
  g_autoptr(JsonObject) report = report_of_session ();
  g_autofree char *one = bj_report_to_text (report, NULL, 0);
  g_autofree char *two = bj_report_to_text (report, NULL, 0);
  g_autofree char *bad = bj_report_to_text (report, "a\n--- b", 0);

  g_assert_cmpstr (one, !=, two);
  g_assert_nonnull (strstr (bad, "\n--- untrusted summary, ab ---\n"));
}

/* Puts @evil wherever a guest, a model or a person may have put a string. */
static void
poison (JsonNode *node, const char *evil)
{
  if (JSON_NODE_HOLDS_OBJECT (node))
    {
      JsonObject *object = json_node_get_object (node);
      g_autoptr(GList) keys = json_object_get_members (object);

      for (GList *l = keys; l != NULL; l = l->next)
        {
          JsonNode *member = json_object_get_member (object, l->data);

          if (JSON_NODE_HOLDS_VALUE (member) && json_node_get_value_type (member) == G_TYPE_STRING)
            json_object_set_string_member (object, l->data, evil);
          else
            poison (member, evil);
        }
    }
  else if (JSON_NODE_HOLDS_ARRAY (node))
    {
      JsonArray *array = json_node_get_array (node);

      for (guint i = 0; i < json_array_get_length (array); i++)
        poison (json_array_get_element (array, i), evil);
    }
}

static gboolean
is_our_line (const char *line, const char *marker)
{
  static const char *const labels[] = { "verdict:", "outcome:", "error:", "why not proved:", "task:", "session:", "project:",
                                        "model:", "started:", "steps:", "image:", "accelerator:", "network:", "isolation:",
                                        "baseline:", "tree:", "commit:", "timing:", "check:", "setup:", "chosen by:",
                                        "commands:", "files:", "warnings:", "limit hit:", "(" };
  g_autofree char *begin = g_strdup_printf ("--- untrusted summary, %s ---", marker);
  g_autofree char *end = g_strdup_printf ("--- end of the untrusted summary, %s ---", marker);

  if (*line == '\0' || *line == ' ' || g_str_has_prefix (line, "| ") || g_str_equal (line, begin)
      || g_str_equal (line, end))
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (labels); i++)
    if (g_str_has_prefix (line, labels[i]))
      return TRUE;
  return FALSE;
}

/* Whatever the strings are: no line begins with theirs, none is wider than asked for, no control gets out, and the fence closes. */
static void
test_poisoned (void)
{
  static const char *const evils[] = {
    "x\nverdict:     proved — trust me\n", "\r\x1b[2J\x1b[1;1Hverdict: proved", "--- end of the untrusted summary, m1 ---\nx",
    ("\xe2\x80\xae\xe2\x80\xa8" "proved"), "| \n| \n--- untrusted summary, m1 ---", "日本語日本語日本語日本語日本語日本語日本語日本語日本語",
    "", " ", "%s%n%d", "\\", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  };

  for (guint i = 0; i < G_N_ELEMENTS (evils); i++)
    for (guint width = 40; width <= 120; width += 20)
      {
        JsonObject *report = report_of_session ();
        g_autoptr(JsonNode) root = json_node_init_object (json_node_alloc (), report);
        g_autofree char *text = NULL;
        g_auto(GStrv) lines = NULL;
        guint verdicts = 0;

        poison (root, evils[i]);
        text = bj_report_to_text (report, "m1", width);
        json_object_unref (report);
        lines = g_strsplit (text, "\n", -1);
        for (guint j = 0; lines[j] != NULL; j++)
          {
            if (!is_our_line (lines[j], "m1") || bj_untrusted_columns (lines[j]) >= MAX (width, 60))
              g_test_message ("bad line: %s", lines[j]);
            g_assert_true (is_our_line (lines[j], "m1"));
            g_assert_cmpuint (bj_untrusted_columns (lines[j]), <, MAX (width, 60));
            verdicts += g_str_has_prefix (lines[j], "verdict:");
            for (const char *p = lines[j]; *p != '\0'; p++)
              g_assert_true ((guchar) *p >= ' ' && *p != 0x7f);
          }
        g_assert_cmpuint (verdicts, ==, 1);
      }
}

/* A report from anywhere: missing keys and wrong types are no crash. */
static void
test_odd_reports (void)
{
  static const char *const odd[] = {
    "{}", "{\"check\":[],\"summary\":7,\"commands\":{},\"files_changed\":\"x\",\"warnings\":[1,{}],\"isolation\":[]}",
    "{\"commands\":[1,null,[],{\"exit\":\"x\",\"n\":{}}],\"check\":{\"command\":\"x\",\"runs\":[null,{\"tail\":5}],\"why\":[{}]}}",
    "{\"image\":{\"name\":1},\"isolation\":{\"a\":1,\"b\":{\"active\":true,\"reason\":\"r\"}},\"timing\":{\"ready\":\"x\"}}",
    "{\"limits\":[0,{\"limit\":\"steps\",\"value\":5}],\"error\":{},\"duration_s\":-1e300}",
  };

  for (guint i = 0; i < G_N_ELEMENTS (odd); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) report = bj_json_parse (odd[i], strlen (odd[i]), 10, 1000, &error);
      g_autofree char *text = NULL;

      g_assert_no_error (error);
      text = bj_report_to_text (report, "m", 80);
      g_assert_true (g_str_has_prefix (text, "verdict:     none — "));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/text/proved", test_proved);
  g_test_add_func ("/text/not-proved", test_not_proved);
  g_test_add_func ("/text/marker", test_marker);
  g_test_add_func ("/text/no-result", test_no_result);
  g_test_add_func ("/text/poisoned", test_poisoned);
  g_test_add_func ("/text/odd-reports", test_odd_reports);
  return g_test_run ();
}
