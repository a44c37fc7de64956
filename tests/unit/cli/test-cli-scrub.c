/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-html.h"
#include "bj-cli-scrub.h"
#include "bj-cli-transcript.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define MARK "[a secret was left out]"

static const char *const environ_of_caller[] = { "HOME=/home/somebody", "SHORT_TOKEN=abc", "MY_API_TOKEN=s3cr3t.value+", "X", NULL };

static char *
clean (const char *text, guint *count)
{
  g_autoptr(BjScrubber) scrubber = bj_scrubber_new (environ_of_caller);
  char *out = bj_scrubber_clean_text (scrubber, text);

  *count = bj_scrubber_get_count (scrubber);
  return out;
}

static void
test_secrets (void)
{
  static const struct
  {
    const char *in, *out;
  } cases[] = {
    { "use ghp_0123456789abcdefghij now", "use " MARK " now" },
    { "github_pat_0123456789abcdef_ghij", MARK },
    { "Authorization: Bearer abc.def-ghi", "Authorization: Bearer " MARK },
    { "{\"authorization\":\"token xyz123\"}", "{\"authorization\":\"token " MARK "\"}" },
    { "\"curl -H 'Authorization: Basic dXNlcjpw'\"", "\"curl -H 'Authorization: Basic " MARK "'\"" },
    { "https://me:pass-word@example.org/x", "https://me:" MARK "@example.org/x" },
    { "PASSWORD=correcthorse ls", "PASSWORD=" MARK " ls" },
    { "x -----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\nAAAA==\n-----END OPENSSH PRIVATE KEY-----\ny", "x " MARK "\ny" },
    { "-----BEGIN PRIVATE KEY-----\\nMC4CAQAw\\nBQYDK2", MARK }, /* cut off, in a text in a text */
    { "{\\\"password\\\": \\\"correcthorse\\\"}", "{\\\"password\\\": \\\"" MARK "\\\"}" },
    { "a s3cr3t.value+ b", "a " MARK " b" },
    { "AKIAABCDEFGHIJKLMNOP", MARK },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      guint count;
      g_autofree char *out = clean (cases[i].in, &count);

      g_assert_cmpstr (out, ==, cases[i].out);
      g_assert_cmpuint (count, ==, 1);
    }
}

static void
test_ordinary (void)
{
  static const char *const texts[] = {
    "", "\n\n", "make test\nno newline at the end", "/home/somebody and abc", "https://example.org:8080/a@b",
    "sha256:1ca39c8bba622a0228d49260d923747690ae27dca1d5fd4", "s3cr3tXvalue+", "\xff\xfe bytes \x80",
  };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      guint count;
      g_autofree char *out = clean (texts[i], &count);

      g_assert_cmpstr (out, ==, texts[i]);
      g_assert_cmpuint (count, ==, 0);
    }
}

static void
test_json (void)
{
  g_autoptr(BjScrubber) scrubber = bj_scrubber_new (NULL);
  g_autoptr(JsonNode) node = json_from_string ("{\"n\":12345678,\"Password\":\"short\",\"password\":12345678,"
                                               "\"a\":[true,null,{\"t\":\"ghp_0123456789abcdefghij\"}],\"secret\":\"\"}",
                                               NULL);
  g_autofree char *text = NULL;

  bj_scrubber_clean_node (scrubber, node);
  text = json_to_string (node, FALSE);
  g_assert_cmpstr (text, ==, "{\"n\":12345678,\"Password\":\"" MARK "\",\"password\":12345678,\"a\":[true,null,{\"t\":\"" MARK
                             "\"}],\"secret\":\"\"}");
  g_assert_cmpuint (bj_scrubber_get_count (scrubber), ==, 2);
}

static void
test_html (void)
{
  static const char *const texts[] = { "<b>", "\" onload=\"x", "'", "&lt;", "\x1b[31m", "\xe2\x80\xae", "\xff", "a\nb" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autofree char *out = bj_html_escape (texts[i]);

      g_assert_true (g_utf8_validate (out, -1, NULL));
      g_assert_null (strpbrk (out, "<>\"'\x1b"));
      g_assert_null (strstr (out, "\xe2\x80\xae"));
    }
}

static void
test_matches (void)
{
  const char line[] = "{\"n\":1,\"type\":\"command\",\"data\":{\"a\":[{\"b\":\"Größe <X>\"}],\"c\":42}}";

  g_assert_true (bj_record_matches (line, strlen (line), "grösse <x>"));
  g_assert_true (bj_record_matches (line, strlen (line), "comm"));
  g_assert_false (bj_record_matches (line, strlen (line), "data")); /* a name is not a text */
  g_assert_false (bj_record_matches (line, strlen (line), "nothing"));
  g_assert_false (bj_record_matches ("grösse", 7, "grösse"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/scrub/secrets", test_secrets);
  g_test_add_func ("/scrub/ordinary", test_ordinary);
  g_test_add_func ("/scrub/json", test_json);
  g_test_add_func ("/html/escape", test_html);
  g_test_add_func ("/transcript/matches", test_matches);
  return g_test_run ();
}
