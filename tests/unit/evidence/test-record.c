/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "transcripts.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

static void
assert_data (JsonObject *data, const char *expected)
{
  g_autoptr(JsonObject) owned = data;
  g_autofree char *text = bj_json_to_canonical (owned);

  g_assert_cmpstr (text, ==, expected);
}

static void
test_command (void)
{
  g_autoptr(GBytes) out = g_bytes_new_static ("a\x1b[0m\n", 6);
  g_autoptr(GBytes) err = g_bytes_new_static ("\xff\0x", 3);
  g_autoptr(GBytes) command = g_bytes_new_static ("printf 'a\nb'", 12);
  g_autoptr(GBytes) x = g_bytes_new_static ("x", 1);
  BjCommandFacts facts = { .tool = "run", .command = command, .exit = 3, .duration_s = 1.23456, .out = out, .err = err,
                           .out_total = 6, .err_total = 3, .out_sha256 = "ab", .truncated = TRUE };
  BjCommandFacts gone = { .tool = "run", .command = x, .exit = 0, .failure = "The guest\nis unreachable" };
  BjCommandFacts lost = { .tool = "run", .command = x, .exit = -1, .failure = "gone", .lost = TRUE, .duration_s = 2 };

  assert_data (bj_record_command (&facts),
               "{\"command\":\"printf 'a\\\\nb'\",\"command_bytes\":12,"
               "\"command_sha256\":\"4c379106473ee6978d5dde18b4138e1da23192cd5aa639c071fb05aae2c4db9a\","
               "\"command_truncated\":false,\"duration_s\":1.235,\"exit\":3,\"failure\":null,\"lost\":false,\"signal\":null,"
               "\"stderr\":{\"base64\":\"/wB4\"},\"stderr_bytes\":3,\"stdout\":\"a\\\\x1b[0m\\n\",\"stdout_bytes\":6,"
               "\"stdout_sha256\":\"ab\",\"timed_out\":false,\"tool\":\"run\",\"truncated\":true}");
  assert_data (bj_record_command (&gone),
               "{\"command\":\"x\",\"command_bytes\":1,"
               "\"command_sha256\":\"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\","
               "\"command_truncated\":false,\"duration_s\":0,\"exit\":null,\"failure\":\"The guest\\\\nis unreachable\","
               "\"lost\":false,\"signal\":null,"
               "\"stderr\":\"\",\"stderr_bytes\":0,\"stdout\":\"\",\"stdout_bytes\":0,\"stdout_sha256\":null,"
               "\"timed_out\":false,\"tool\":\"run\",\"truncated\":false}");
  assert_data (bj_record_command (&lost),
               "{\"command\":\"x\",\"command_bytes\":1,"
               "\"command_sha256\":\"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\","
               "\"command_truncated\":false,\"duration_s\":2,\"exit\":null,\"failure\":\"gone\",\"lost\":true,"
               "\"signal\":null,\"stderr\":\"\",\"stderr_bytes\":0,\"stdout\":\"\",\"stdout_bytes\":0,"
               "\"stdout_sha256\":null,\"timed_out\":false,\"tool\":\"run\",\"truncated\":false}");
  assert_data (bj_record_start_failure ("x", TRUE, "gone"),
               "{\"command\":\"x\",\"command_bytes\":1,"
               "\"command_sha256\":\"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\","
               "\"command_truncated\":false,\"event\":\"start\",\"exit\":null,\"failure\":\"gone\",\"id\":0,"
               "\"lost\":true,\"signal\":null}");
}

/* What stands behind a long beginning is in the digest. */
static void
test_long_command (void)
{
  g_autofree char *padding = g_strnfill (60000, 'x');
  g_autofree char *text = g_strconcat (": ", padding, "; evil", NULL);
  g_autofree char *digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  g_autoptr(GBytes) command = g_bytes_new_static (text, strlen (text));
  BjCommandFacts facts = { .tool = "run", .command = command };
  g_autoptr(JsonObject) data = bj_record_command (&facts);
  g_autoptr(JsonObject) started = bj_record_background ("start", 1, text, -1, 0);
  JsonObject *both[] = { data, started };

  for (guint i = 0; i < G_N_ELEMENTS (both); i++)
    {
      g_assert_cmpint (json_object_get_int_member (both[i], "command_bytes"), ==, 60008);
      g_assert_cmpstr (json_object_get_string_member (both[i], "command_sha256"), ==, digest);
      g_assert_true (json_object_get_boolean_member (both[i], "command_truncated"));
      g_assert_true (g_str_has_suffix (json_object_get_string_member (both[i], "command"), "…"));
    }
}

static void
test_small_ones (void)
{
  assert_data (bj_record_state ("running"), "{\"state\":\"running\"}");
  assert_data (bj_record_timing ("ready", 1.0005), "{\"phase\":\"ready\",\"seconds\":1.001}");
  assert_data (bj_record_background ("end", 4, NULL, -1, 9),
               "{\"command\":null,\"event\":\"end\",\"exit\":null,\"id\":4,\"signal\":9}");
  assert_data (bj_record_file ("read", "read_file", "a\xff\n", 5),
               "{\"bytes\":5,\"op\":\"read\",\"path\":\"a%FF%0A\",\"path_encoded\":true,\"tool\":\"read_file\"}");
  assert_data (bj_record_file ("write", "write_file", "ä\x1b", 5),
               "{\"bytes\":5,\"op\":\"write\",\"path\":\"ä\\\\x1b\",\"path_encoded\":false,\"tool\":\"write_file\"}");
  assert_data (bj_record_input ("type_text", "a\n\x1b", NULL), "{\"tool\":\"type_text\",\"what\":\"a\\\\n\\\\x1b\"}");
  assert_data (bj_record_input ("wait", "3 s", "gone"), "{\"failure\":\"gone\",\"tool\":\"wait\",\"what\":\"3 s\"}");
  assert_data (bj_record_screenshot ("1.png", "ab", 7), "{\"bytes\":7,\"file\":\"1.png\",\"sha256\":\"ab\"}");
  assert_data (bj_record_model (2, "/api/chat", 500, 1, "a", 2, "b", 0.5, "bad\r"),
               "{\"duration_s\":0.5,\"error\":\"bad\\\\x0d\",\"path\":\"/api/chat\",\"request_bytes\":1,"
               "\"request_sha256\":\"a\",\"response_bytes\":2,\"response_sha256\":\"b\",\"status\":500,\"turn\":2}");
  assert_data (bj_record_commit ("c", "t", TRUE), "{\"baseline\":true,\"commit\":\"c\",\"tree\":\"t\"}");
  assert_data (bj_record_warning ("already \\x1b escaped, \x1b not"), "{\"text\":\"already \\\\x1b escaped, \\\\x1b not\"}");
  assert_data (bj_record_limit ("steps", G_MAXUINT64), "{\"limit\":\"steps\",\"value\":9223372036854775807}");
  assert_data (bj_record_error ("org.belljar1.Error.Failed", "m\n"),
               "{\"message\":\"m\\\\n\",\"name\":\"org.belljar1.Error.Failed\"}");
  assert_data (bj_record_end ("DONE", NULL, NULL), "{\"message\":null,\"name\":null,\"outcome\":\"DONE\"}");
  assert_data (bj_record_text ("a\n\tb\x07"), "{\"text\":\"a\\n        b\\\\x07\"}");
  assert_data (bj_record_plan (1, "t\n", "todo"), "{\"id\":1,\"status\":\"todo\",\"text\":\"t\\\\n\"}");
  assert_data (bj_record_set_check ("make\ntest", ""), "{\"command\":\"make\\\\ntest\",\"setup\":\"\"}");
}

static void
test_check_run (void)
{
  g_autofree char *big = g_strnfill (100000, 'x');
  g_autoptr(GBytes) output = NULL;
  BjCheckRunFacts facts = { .where = "fresh", .tree = "t", .exit = 1, .command = "c", .source = "caller" };
  g_autoptr(JsonObject) data = NULL;
  const char *tail;

  memcpy (big + 99990, "\nthe end\n", 9);
  output = g_bytes_new_static (big, 99999);
  facts.output = output;
  data = bj_record_check_run (&facts);
  tail = bj_json_get_string (data, "tail", "");
  g_assert_cmpuint (strlen (tail), ==, 8192);
  g_assert_true (g_str_has_suffix (tail, "x\nthe end\n"));
}

static void
test_tree (void)
{
  static const char *const warnings[] = { "one \x1b", "two", NULL };
  g_autoptr(JsonArray) files = one_file ("a\x1b/\xe2\x80\xae\\x41");
  g_autoptr(JsonArray) many = json_array_new ();
  g_autoptr(JsonObject) data = NULL;

  json_array_add_null_element (files);
  assert_data (bj_record_tree ("t", NULL, files, 0, warnings),
               "{\"files_changed\":[{\"added\":12,\"path\":\"a\\\\x1b/\\\\u{202e}\\\\x41\",\"path_encoded\":false,\"removed\":3,"
               "\"status\":\"modified\"},{\"added\":0,\"path\":\"\",\"path_encoded\":false,\"removed\":0,\"status\":\"\"}],"
               "\"files_total\":2,\"protected_tree\":null,\"tree\":\"t\",\"warnings\":[\"one \\\\x1b\",\"two\"]}");
  for (guint i = 0; i < 5000; i++)
    json_array_add_null_element (many);
  data = bj_record_tree ("t", "t", many, 7000, NULL);
  g_assert_cmpint (bj_json_get_int (data, "files_total", 0), ==, 7000);
  g_assert_cmpuint (json_array_get_length (bj_json_get_array (data, "files_changed")), ==, 2000);
}

static void
test_agent (void)
{
  g_autoptr(GError) error = NULL;

  assert_data (bj_record_from_agent ("{\"text\":\"a\\u001b\\nb\",\"k\\u001b\":[1,2.5,true,null,{\"x\":\"\\u202e\"}]}", &error),
               "{\"k\\\\x1b\":[1,2.5,true,null,{\"x\":\"\\\\u{202e}\"}],\"text\":\"a\\\\x1b\\nb\"}");
  g_assert_no_error (error);
}

static void
test_agent_bad (void)
{
  g_autofree char *spaces = g_strnfill (1024 * 1024, ' ');
  g_autofree char *too_long = g_strconcat ("{\"a\":\"", spaces, "\"}", NULL);
  const char *const bad[] = { "", "x", "[]", "{\"a\":1", "{\"a\":[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]}", "{\"a\":\"\xff\"}",
                              too_long };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GError) error = NULL;

      g_assert_null (bj_record_from_agent (bad[i], &error));
      g_assert_nonnull (error);
      g_assert_true (error->domain == BJ_ERROR);
    }
}

/* A megabyte of what grows most when it is escaped stays within a record. */
static void
test_agent_big (void)
{
  g_autoptr(GString) json = g_string_new ("{");
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) data = NULL;
  g_autofree char *out = NULL;

  for (guint i = 0; json->len < 900 * 1024; i++)
    g_string_append_printf (json, "%s\"k%u\":\"%0*d\\u001b\\u202e\\u202e\\u202e\"", i > 0 ? "," : "", i, 900, 0);
  g_string_append_c (json, '}');
  data = bj_record_from_agent (json->str, &error);
  g_assert_no_error (error);
  out = bj_json_to_canonical (data);
  g_assert_cmpuint (strlen (out), <, 700 * 1024);
  g_assert_true (bj_json_get_boolean (data, "cut"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/record/command", test_command);
  g_test_add_func ("/record/long-command", test_long_command);
  g_test_add_func ("/record/small-ones", test_small_ones);
  g_test_add_func ("/record/check-run", test_check_run);
  g_test_add_func ("/record/tree", test_tree);
  g_test_add_func ("/record/agent", test_agent);
  g_test_add_func ("/record/agent-bad", test_agent_bad);
  g_test_add_func ("/record/agent-big", test_agent_big);
  return g_test_run ();
}
