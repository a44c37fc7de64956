/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-conversation.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

static JsonArray *
one_call (const char *tool, const char *content)
{
  g_autoptr(JsonArray) calls = json_array_new ();
  JsonObject *call = json_object_new ();
  JsonObject *function = json_object_new ();
  JsonObject *arguments = json_object_new ();

  json_object_set_string_member (arguments, "content", content);
  json_object_set_string_member (function, "name", tool);
  json_object_set_object_member (function, "arguments", arguments);
  json_object_set_object_member (call, "function", function);
  json_array_add_object_element (calls, call);
  return g_steal_pointer (&calls);
}

static void
add_turn (BjConversation *conversation, const char *words, gsize result_bytes)
{
  g_autofree char *result = g_strnfill (result_bytes, 'r');
  g_autoptr(JsonArray) calls = one_call ("run", words);

  bj_conversation_add_assistant (conversation, words, calls);
  bj_conversation_add_result (conversation, "run", result, FALSE);
}

static const char *
content_of (JsonArray *messages, guint i)
{
  return bj_json_get_string (bj_json_array_get_object (messages, i), "content");
}

static void
test_shorten (void)
{
  g_autofree char *long_text = g_strnfill (500, 'x');
  g_autofree char *cut = bj_text_shorten (long_text, 10, 5);
  g_autofree char *same = bj_text_shorten ("short", 1, 1);
  g_autofree char *umlauts = g_strnfill (400, 'u');
  g_autofree char *valid = NULL;

  for (gsize i = 0; i < 400; i += 2)
    memcpy (umlauts + i, "\xc3\xbc", 2);
  valid = bj_text_shorten (umlauts, 11, 11);
  g_assert_cmpstr (cut, ==, "xxxxxxxxxx\n[… 485 bytes left out …]\nxxxxx");
  g_assert_cmpstr (same, ==, "short");
  g_assert_true (g_utf8_validate (valid, -1, NULL));
}

static void
test_enough_room (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 100000);
  BjTrimFacts facts;

  add_turn (conversation, "look", 1000);
  g_assert_false (bj_conversation_trim (conversation, NULL, &facts));
  g_assert_cmpuint (facts.before, ==, facts.after);
}

static void
test_results_go_first (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 12000);
  g_autoptr(JsonArray) messages = NULL;
  BjTrimFacts facts;

  for (guint i = 0; i < 5; i++)
    add_turn (conversation, "look", 3000);
  g_assert_true (bj_conversation_trim (conversation, NULL, &facts));
  g_assert_cmpuint (facts.dropped, ==, 0);
  g_assert_cmpuint (facts.shortened, >, 0);
  g_assert_cmpuint (bj_conversation_get_size (conversation), <=, 12000);
  messages = bj_conversation_dup_messages (conversation);
  g_assert_cmpuint (json_array_get_length (messages), ==, 12);
  g_assert_cmpuint (strlen (content_of (messages, 3)), <, 700);
  g_assert_cmpuint (strlen (content_of (messages, 11)), ==, 3000);
}

static void
test_turns_go_next (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 8000);
  g_autoptr(JsonArray) messages = NULL;
  BjTrimFacts facts;
  guint dropped = 0;

  for (guint i = 0; i < 60; i++)
    {
      add_turn (conversation, "look", 2000);
      bj_conversation_trim (conversation, "1 [doing] win", &facts);
      dropped += facts.dropped;
      g_assert_cmpuint (bj_conversation_get_size (conversation), <=, 8000);
    }
  messages = bj_conversation_dup_messages (conversation);
  g_assert_cmpstr (content_of (messages, 0), ==, "system");
  g_assert_cmpstr (content_of (messages, 1), ==, "task");
  g_assert_nonnull (strstr (content_of (messages, 2), "win"));
  g_assert_nonnull (strstr (content_of (messages, 2), "earlier turns"));
  g_assert_cmpstr (bj_json_get_string (bj_json_array_get_object (messages, 3), "role"), ==, "assistant");
  g_assert_cmpuint (dropped + (json_array_get_length (messages) - 3) / 2, ==, 60);
}

static void
test_newest_turn_too_large (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 6000);
  BjTrimFacts facts;

  add_turn (conversation, "look", 100000);
  g_assert_true (bj_conversation_trim (conversation, NULL, &facts));
  g_assert_cmpuint (bj_conversation_get_size (conversation), <=, 6000);
  g_assert_cmpuint (bj_conversation_get_length (conversation), ==, 4);
}

static void
test_written_files_go (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 10000);
  g_autofree char *file = g_strnfill (7000, 'f');
  BjTrimFacts facts;

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr(JsonArray) calls = one_call ("write_file", file);

      bj_conversation_add_assistant (conversation, "", calls);
      bj_conversation_add_result (conversation, "write_file", "{\"ok\":true}", FALSE);
    }
  g_assert_true (bj_conversation_trim (conversation, NULL, &facts));
  g_assert_cmpuint (facts.dropped, ==, 0);
  g_assert_cmpuint (bj_conversation_get_size (conversation), <=, 10000);
}

static void
test_pictures (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 100000);
  g_autoptr(JsonArray) messages = NULL;
  BjTrimFacts facts;

  for (guint i = 0; i < 3; i++)
    {
      add_turn (conversation, "see", 10);
      bj_conversation_add_user (conversation, "picture", "aGVsbG8=");
    }
  g_assert_true (bj_conversation_trim (conversation, NULL, &facts));
  g_assert_cmpuint (facts.images, ==, 2);
  messages = bj_conversation_dup_messages (conversation);
  g_assert_false (json_object_has_member (bj_json_array_get_object (messages, 4), "images"));
  g_assert_true (json_object_has_member (bj_json_array_get_object (messages, 10), "images"));
}

static char *
dup_messages (BjConversation *conversation)
{
  g_autoptr(JsonArray) messages = bj_conversation_dup_messages (conversation);
  g_autoptr(JsonNode) node = json_node_init_array (json_node_alloc (), messages);

  return bj_json_node_to_string (node);
}

/* What was kept is what it was, and is trimmed as it would have been. */
static void
test_kept (void)
{
  g_autoptr(BjConversation) conversation = bj_conversation_new ("system", "task", 4000);
  g_autoptr(BjConversation) again = NULL;
  g_autoptr(JsonObject) kept = NULL;
  g_autoptr(JsonObject) parsed = NULL;
  g_autoptr(GError) error = NULL;
  g_autofree char *text = NULL;
  BjTrimFacts facts, facts_again;

  for (guint i = 0; i < 30; i++)
    add_turn (conversation, "turn", 200);
  bj_conversation_trim (conversation, "plan", &facts);
  bj_conversation_add_user (conversation, "picture", "aGVsbG8=");
  kept = bj_conversation_to_json (conversation);
  text = bj_json_to_string (kept);
  parsed = bj_json_parse_object (text, -1, &error);
  g_assert_no_error (error);
  again = bj_conversation_from_json (parsed, 4000, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < 10; i++)
    {
      g_autofree char *first = dup_messages (conversation);
      g_autofree char *second = dup_messages (again);

      g_assert_cmpstr (first, ==, second);
      g_assert_cmpuint (bj_conversation_get_size (conversation), ==, bj_conversation_get_size (again));
      add_turn (conversation, "more", 500);
      add_turn (again, "more", 500);
      g_assert_cmpint (bj_conversation_trim (conversation, NULL, &facts), ==, bj_conversation_trim (again, NULL, &facts_again));
      g_assert_cmpmem (&facts, sizeof facts, &facts_again, sizeof facts_again);
    }
}

static void
test_damaged (void)
{
  static const char *const cases[] = {
    "{}", "{\"messages\": 7}", "{\"messages\": []}", "{\"messages\": [{\"message\": {\"role\": \"system\", \"content\": \"\"}}]}",
    "{\"messages\": [1, 2, 3]}", "{\"messages\": [{\"message\": {\"role\": 1, \"content\": \"\"}}, {}]}",
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(JsonObject) json = bj_json_parse_object (cases[i], -1, NULL);

      g_assert_null (bj_conversation_from_json (json, 1000, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/agent/conversation/shorten", test_shorten);
  g_test_add_func ("/agent/conversation/enough-room", test_enough_room);
  g_test_add_func ("/agent/conversation/results-go-first", test_results_go_first);
  g_test_add_func ("/agent/conversation/turns-go-next", test_turns_go_next);
  g_test_add_func ("/agent/conversation/newest-turn", test_newest_turn_too_large);
  g_test_add_func ("/agent/conversation/written-files", test_written_files_go);
  g_test_add_func ("/agent/conversation/pictures", test_pictures);
  g_test_add_func ("/agent/conversation/kept", test_kept);
  g_test_add_func ("/agent/conversation/damaged", test_damaged);
  return g_test_run ();
}
