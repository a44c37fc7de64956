/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "transcripts.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"
#include "bj-report.h"

#include <string.h>
#include <sys/stat.h>

typedef struct
{
  char *folder;
  char *transcript;
  char *key_path;
  BjReportKey *key;
  char *public_key;
  JsonObject *report; /* signed */
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) records = NULL;
  g_autofree char *head = NULL;
  g_auto(BjFd) fd = -1;

  f->folder = make_folder ();
  f->transcript = g_build_filename (f->folder, "transcript.jsonl", NULL);
  f->key_path = g_build_filename (f->folder, "report.key", NULL);
  write_session (f->transcript);
  f->key = bj_report_key_load (f->key_path, &error);
  g_assert_no_error (error);
  f->public_key = bj_report_key_dup_public (f->key);
  fd = open_for_reading (f->transcript);
  records = bj_transcript_read (fd, &head, NULL, &error);
  g_assert_no_error (error);
  f->report = bj_report_build (records, head, &error);
  g_assert_no_error (error);
  g_assert_true (bj_report_sign (f->report, f->key, &error));
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  json_object_unref (f->report);
  bj_report_key_free (f->key);
  remove_folder (f->folder);
  g_free (f->folder);
  g_free (f->transcript);
  g_free (f->key_path);
  g_free (f->public_key);
}

static void
assert_refused (JsonObject *report, const char *transcript, const char *key, const char *expected)
{
  g_autoptr(GError) error = NULL;
  g_auto(BjFd) fd = open_for_reading (transcript);

  g_assert_false (bj_report_verify (report, fd, key, &error));
  g_assert_error (error, BJ_ERROR, error->code);
  if (strstr (error->message, expected) == NULL)
    g_test_message ("“%s” is not in: %s", expected, error->message);
  g_assert_nonnull (strstr (error->message, expected));
}

static void
assert_holds (JsonObject *report, const char *transcript, const char *key)
{
  g_autoptr(GError) error = NULL;
  g_auto(BjFd) fd = open_for_reading (transcript);

  g_assert_true (bj_report_verify (report, fd, key, &error));
  g_assert_no_error (error);
}

static JsonObject *
copy_of (JsonObject *object)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *text = bj_json_to_canonical (object);
  JsonObject *copy = bj_json_parse (text, strlen (text), 32, 100000, &error);

  g_assert_no_error (error);
  return copy;
}

static void
test_holds (Fixture *f, gconstpointer data)
{
  g_autoptr(JsonObject) parsed = copy_of (f->report);

  assert_holds (f->report, f->transcript, f->public_key);
  assert_holds (parsed, f->transcript, f->public_key);
}

/* Changes each value in the report, wherever it stands, one after the other. Returns whether there was an @n-th. */
static gboolean
tamper (JsonNode *node, guint *n)
{
  if (JSON_NODE_HOLDS_OBJECT (node))
    {
      JsonObject *object = json_node_get_object (node);
      g_autoptr(GList) keys = json_object_get_members (object);

      for (GList *l = keys; l != NULL; l = l->next)
        {
          JsonNode *member = json_object_get_member (object, l->data);

          if (JSON_NODE_HOLDS_OBJECT (member) || JSON_NODE_HOLDS_ARRAY (member))
            {
              if (tamper (member, n))
                return TRUE;
            }
          else if ((*n)-- == 0)
            {
              json_object_set_string_member (object, l->data, "forged");
              return TRUE;
            }
        }
    }
  else if (JSON_NODE_HOLDS_ARRAY (node))
    {
      JsonArray *array = json_node_get_array (node);

      for (guint i = 0; i < json_array_get_length (array); i++)
        if (tamper (json_array_get_element (array, i), n))
          return TRUE;
      if ((*n)-- == 0)
        {
          json_array_add_string_element (array, "forged");
          return TRUE;
        }
    }
  return FALSE;
}

static void
test_every_value (Fixture *f, gconstpointer data)
{
  guint tampered = 0;

  for (;; tampered++)
    {
      g_autoptr(JsonObject) report = copy_of (f->report);
      g_autoptr(JsonNode) root = json_node_init_object (json_node_alloc (), report);
      guint n = tampered;

      if (!tamper (root, &n))
        break;
      assert_refused (report, f->transcript, f->public_key, "sign");
    }
  g_assert_cmpuint (tampered, >, 60);
}

/* The same, but signed again by somebody who has the key: then the records say otherwise. */
static void
test_every_value_signed_again (Fixture *f, gconstpointer data)
{
  json_object_remove_member (f->report, "signature");
  for (guint tampered = 0;; tampered++)
    {
      g_autoptr(JsonObject) report = copy_of (f->report);
      g_autoptr(JsonNode) root = json_node_init_object (json_node_alloc (), report);
      g_autoptr(GError) error = NULL;
      guint n = tampered;

      if (!tamper (root, &n))
        break;
      g_assert_true (bj_report_sign (report, f->key, &error));
      assert_refused (report, f->transcript, f->public_key, "transcript");
    }
}

static void
test_keys_added_and_dropped (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GList) keys = json_object_get_members (f->report);

  for (GList *l = keys; l != NULL; l = l->next)
    {
      g_autoptr(JsonObject) report = copy_of (f->report);

      json_object_remove_member (report, l->data);
      assert_refused (report, f->transcript, f->public_key, g_str_equal (l->data, "signature") ? "not signed" : "sign");
    }
  json_object_set_string_member (f->report, "extra\x1b", "proved");
  assert_refused (f->report, f->transcript, f->public_key, "sign");
  g_assert_true (bj_report_sign (f->report, f->key, &error));
  assert_refused (f->report, f->transcript, f->public_key, "“extra\\x1b” differs");
}

static void
test_signature_itself (Fixture *f, gconstpointer data)
{
  static const struct { const char *key, *value, *message; } cases[] = {
    { "algorithm", "none", "kind" },
    { "key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "another key" },
    { "value", "", "sign" },
    { "value", "AAAA", "sign" },
    { "value", "!", "base64" },
    { "more", "x", "sign" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(JsonObject) report = copy_of (f->report);

      json_object_set_string_member (bj_json_get_object (report, "signature"), cases[i].key, cases[i].value);
      assert_refused (report, f->transcript, f->public_key, cases[i].message);
    }
  assert_refused (f->report, f->transcript, "AAAA", "another key");
  json_object_set_string_member (bj_json_get_object (f->report, "signature"), "key", "AAAA");
  assert_refused (f->report, f->transcript, "AAAA", "32 bytes");
}

static void
test_foreign_key (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_build_filename (f->folder, "other.key", NULL);
  g_autoptr(BjReportKey) other = bj_report_key_load (path, &error);

  g_assert_no_error (error);
  g_assert_true (bj_report_sign (f->report, other, &error));
  assert_refused (f->report, f->transcript, f->public_key, "another key");
  /* and with our key's name on the foreign signature */
  json_object_set_string_member (bj_json_get_object (f->report, "signature"), "key", f->public_key);
  assert_refused (f->report, f->transcript, f->public_key, "does not hold");
}

typedef void (*Edit) (GPtrArray *lines);

static void
drop_middle (GPtrArray *lines)
{
  g_ptr_array_remove_index (lines, 5);
}

static void
drop_last (GPtrArray *lines)
{
  g_ptr_array_remove_index (lines, lines->len - 1);
}

static void
drop_first (GPtrArray *lines)
{
  g_ptr_array_remove_index (lines, 0);
}

static void
swap_two (GPtrArray *lines)
{
  gpointer kept = lines->pdata[4];

  lines->pdata[4] = lines->pdata[6];
  lines->pdata[6] = kept;
}

static void
repeat_last (GPtrArray *lines)
{
  g_ptr_array_add (lines, g_strdup (lines->pdata[lines->len - 1]));
}

static void
edit_line (GPtrArray *lines, guint i, const char *from, const char *to)
{
  g_autoptr(GString) line = g_string_new (lines->pdata[i]);

  g_assert_cmpuint (g_string_replace (line, from, to, 1), ==, 1);
  g_free (lines->pdata[i]);
  lines->pdata[i] = g_string_free (g_steal_pointer (&line), FALSE);
}

static void
edit_exit (GPtrArray *lines)
{
  edit_line (lines, 12, "\"exit\":1", "\"exit\":0");
}

static void
edit_end (GPtrArray *lines)
{
  edit_line (lines, lines->len - 1, "DONE", "DOME");
}

static void
edit_claim (GPtrArray *lines)
{
  edit_line (lines, 8, "claimed", "seen");
}

static void
add_space (GPtrArray *lines)
{
  edit_line (lines, 3, "\":", "\": ");
}

static void
double_key (GPtrArray *lines)
{
  edit_line (lines, 3, "{\"at\"", "{\"at\":1,\"at\"");
}

static void
add_junk (GPtrArray *lines)
{
  g_ptr_array_add (lines, g_strdup ("junk"));
}

static void
empty_it (GPtrArray *lines)
{
  g_ptr_array_set_size (lines, 0);
}

static const struct { const char *name; Edit edit; const char *message; } edits[] = {
  { "a record dropped", drop_middle, "Record 5" },
  { "the last record dropped", drop_last, "14 records, the report counts 15" },
  { "the first record dropped", drop_first, "Record 0" },
  { "two records swapped", swap_two, "Record 4" },
  { "the last record twice", repeat_last, "Record 15" },
  { "an exit status edited", edit_exit, "Record 13" },
  { "the last record edited", edit_end, "another one" },
  { "a claim made a fact", edit_claim, "Record 8" },
  { "white space added", add_space, "Record 3" },
  { "a key doubled", double_key, "Record 3" },
  { "junk added", add_junk, "Record 15" },
  { "emptied", empty_it, "0 records" },
};

static void
test_transcript_tampered (Fixture *f, gconstpointer data)
{
  g_autofree char *text = NULL;
  g_autofree char *forged = g_build_filename (f->folder, "forged.jsonl", NULL);

  g_assert_true (g_file_get_contents (f->transcript, &text, NULL, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (edits); i++)
    {
      g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func (g_free);
      g_auto(GStrv) split = g_strsplit (text, "\n", -1);
      g_autoptr(GString) joined = g_string_new (NULL);

      for (guint j = 0; split[j + 1] != NULL; j++)
        g_ptr_array_add (lines, g_strdup (split[j]));
      edits[i].edit (lines);
      for (guint j = 0; j < lines->len; j++)
        g_string_append_printf (joined, "%s\n", (const char *) lines->pdata[j]);
      g_assert_true (g_file_set_contents (forged, joined->str, -1, NULL));
      g_test_message ("%s", edits[i].name);
      assert_refused (f->report, forged, f->public_key, edits[i].message);
    }
}

/* Cut at every byte: no prefix of the file verifies, nor the file with anything behind it. */
static void
test_transcript_cut (Fixture *f, gconstpointer data)
{
  g_autofree char *text = NULL;
  g_autofree char *longer = NULL;
  g_autofree char *forged = g_build_filename (f->folder, "forged.jsonl", NULL);
  gsize size;

  g_assert_true (g_file_get_contents (f->transcript, &text, &size, NULL));
  for (gsize cut = 0; cut < size; cut += cut + 8 < size ? 7 : 1)
    {
      g_assert_true (g_file_set_contents (forged, text, (gssize) cut, NULL));
      assert_refused (f->report, forged, f->public_key, "transcript");
    }
  longer = g_strconcat (text, " ", NULL);
  g_assert_true (g_file_set_contents (forged, longer, -1, NULL));
  assert_refused (f->report, forged, f->public_key, "not whole");
}

static void
test_key_file (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjReportKey) again = bj_report_key_load (f->key_path, &error);
  g_autofree char *same = bj_report_key_dup_public (again);
  g_autofree char *pub_path = g_strconcat (f->key_path, ".pub", NULL);
  g_autofree char *pub = NULL;
  g_autofree guint8 *bytes = NULL;
  gsize size;
  struct stat st;

  g_assert_no_error (error);
  g_assert_cmpstr (same, ==, f->public_key);
  bytes = g_base64_decode (same, &size);
  g_assert_cmpuint (size, ==, 32);
  g_assert_cmpint (stat (f->key_path, &st), ==, 0);
  g_assert_cmpint (st.st_mode & 07777, ==, 0600);
  g_assert_true (g_file_get_contents (pub_path, &pub, NULL, NULL));
  g_assert_cmpstr (g_strchomp (pub), ==, same);

  g_assert_cmpint (chmod (f->key_path, 0640), ==, 0);
  g_assert_null (bj_report_key_load (f->key_path, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

/* Old reports verify with the old public key only: a new pair is made when somebody has decided so, not by itself. */
static void
test_half_a_pair (Fixture *f, gconstpointer data)
{
  g_autofree char *pub_path = g_strconcat (f->key_path, ".pub", NULL);
  g_autofree char *left = NULL;
  g_autoptr(BjReportKey) key = NULL;
  g_autoptr(GError) error = NULL;

  g_assert_true (g_file_set_contents (pub_path, "b3RoZXI=\n", -1, NULL)); /* another pair's */
  g_assert_null (bj_report_key_load (f->key_path, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "is not the public part of"));
  g_clear_error (&error);
  g_assert_cmpint (unlink (f->key_path), ==, 0);
  g_assert_null (bj_report_key_load (f->key_path, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "missing"));
  g_assert_nonnull (strstr (error->message, pub_path));
  g_clear_error (&error);
  g_assert_false (g_file_test (f->key_path, G_FILE_TEST_EXISTS));
  g_assert_true (g_file_get_contents (pub_path, &left, NULL, NULL));
  g_assert_cmpstr (left, ==, "b3RoZXI=\n");

  g_assert_cmpint (unlink (pub_path), ==, 0);
  key = bj_report_key_load (f->key_path, &error);
  g_assert_no_error (error);
  g_assert_nonnull (key);
}

static void
test_bad_key_files (Fixture *f, gconstpointer data)
{
  static const char *const bad[] = { "", "junk\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" };
  g_autofree char *path = g_build_filename (f->folder, "bad.key", NULL);
  g_autofree char *link_path = g_build_filename (f->folder, "link.key", NULL);
  g_autofree char *missing = g_build_filename (f->folder, "no", "such.key", NULL);
  g_autoptr(GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autofree char *left = NULL;

      g_assert_true (g_file_set_contents_full (path, bad[i], -1, 0, 0600, NULL));
      g_assert_null (bj_report_key_load (path, &error));
      g_assert_nonnull (error);
      g_clear_error (&error);
      g_assert_true (g_file_get_contents (path, &left, NULL, NULL)); /* never replaced */
      g_assert_cmpstr (left, ==, bad[i]);
    }
  g_assert_cmpint (symlink (f->key_path, link_path), ==, 0);
  g_assert_null (bj_report_key_load (link_path, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  g_assert_null (bj_report_key_load (missing, &error));
  g_assert_nonnull (error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) g_test_add (name, Fixture, NULL, set_up, func, tear_down)
  ADD ("/verify/holds", test_holds);
  ADD ("/verify/every-value", test_every_value);
  ADD ("/verify/every-value-signed-again", test_every_value_signed_again);
  ADD ("/verify/keys-added-and-dropped", test_keys_added_and_dropped);
  ADD ("/verify/signature-itself", test_signature_itself);
  ADD ("/verify/foreign-key", test_foreign_key);
  ADD ("/verify/transcript-tampered", test_transcript_tampered);
  ADD ("/verify/transcript-cut", test_transcript_cut);
  ADD ("/verify/key-file", test_key_file);
  ADD ("/verify/bad-key-files", test_bad_key_files);
  ADD ("/verify/half-a-pair", test_half_a_pair);
  return g_test_run ();
}
