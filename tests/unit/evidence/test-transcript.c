/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "transcripts.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"

#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

typedef struct
{
  char *folder;
  char *path;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->folder = make_folder ();
  f->path = g_build_filename (f->folder, "transcript.jsonl", NULL);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  remove_folder (f->folder);
  g_free (f->folder);
  g_free (f->path);
}

static JsonArray *
read_all (const char *path, char **head, guint64 *count, GError **error)
{
  g_auto(BjFd) fd = open_for_reading (path);

  return bj_transcript_read (fd, head, count, error);
}

static void
assert_bad (const char *path, BjError code, const char *message)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjTranscript) opened = NULL;

  g_assert_null (read_all (path, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, (int) code);
  if (strstr (error->message, message) == NULL)
    g_test_message ("“%s” is not in: %s", message, error->message);
  g_assert_nonnull (strstr (error->message, message));
  opened = bj_transcript_open (path, NULL);
  g_assert_null (opened);
}

static void
test_chain (Fixture *f, gconstpointer data)
{
  g_autofree char *text = NULL;
  g_autofree char *head = NULL;
  g_auto(GStrv) lines = NULL;
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) records = NULL;
  g_autofree char *expected = g_strdup (ZEROS);
  guint64 count = 0;
  struct stat st;

  write_session (f->path);
  g_assert_cmpint (stat (f->path, &st), ==, 0);
  g_assert_cmpint (st.st_mode & 07777, ==, 0600);
  records = read_all (f->path, &head, &count, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count, ==, 15);
  g_assert_true (g_file_get_contents (f->path, &text, NULL, NULL));
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; i < count; i++)
    {
      JsonObject *record = bj_json_array_get_object (records, i);

      g_assert_cmpint (bj_json_get_int (record, "n", -1), ==, i);
      g_assert_cmpstr (bj_json_get_string (record, "prev", ""), ==, expected);
      g_free (expected);
      expected = g_compute_checksum_for_string (G_CHECKSUM_SHA256, lines[i], -1);
    }
  g_assert_cmpstr (head, ==, expected);
}

static void
test_continued (Fixture *f, gconstpointer data)
{
  g_autofree char *head = NULL;
  g_autofree char *head_read = NULL;
  g_autoptr(GError) error = NULL;
  g_autoptr(BjTranscript) transcript = NULL;
  g_autoptr(JsonArray) records = NULL;
  guint64 count = 0;
  struct stat st;

  write_session (f->path);
  transcript = bj_transcript_open (f->path, &error);
  g_assert_no_error (error);
  append (transcript, TRUE, "warning", bj_record_warning ("restarted"));
  head = bj_transcript_dup_head (transcript);
  records = read_all (f->path, &head_read, &count, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (count, ==, 16);
  g_assert_cmpuint (bj_transcript_get_count (transcript), ==, 16);
  g_assert_cmpstr (head, ==, head_read);
  g_assert_cmpint (stat (f->path, &st), ==, 0);
  g_assert_cmpuint (bj_transcript_get_length (transcript), ==, (guint64) st.st_size);
  bj_transcript_close (transcript);
  g_assert_false (bj_transcript_append (transcript, TRUE, "warning", bj_record_warning ("too late"), &error));
  g_clear_error (&error);
  g_assert_cmpuint (bj_transcript_get_count (transcript), ==, 16);
  g_assert_cmpuint (bj_transcript_get_length (transcript), ==, (guint64) st.st_size);
  g_assert_null (bj_transcript_create (f->path, &error)); /* never over another one */
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_EXISTS);
}

/* A crash at any byte of the last record: it is cut off, and the chain goes on. */
static void
test_torn (Fixture *f, gconstpointer data)
{
  g_autofree char *text = NULL;
  gsize size, last;

  write_session (f->path);
  g_assert_true (g_file_get_contents (f->path, &text, &size, NULL));
  last = (gsize) ((char *) memrchr (text, '\n', size - 1) - text) + 1;
  for (gsize cut = last; cut < size; cut++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(BjTranscript) transcript = NULL;
      g_autoptr(JsonArray) torn = NULL;
      g_autoptr(JsonArray) whole = NULL;

      g_assert_true (g_file_set_contents (f->path, text, (gssize) cut, NULL));
      torn = read_all (f->path, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (json_array_get_length (torn), ==, 14);
      transcript = bj_transcript_open (f->path, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (bj_transcript_get_length (transcript), ==, last);
      append (transcript, TRUE, "end", bj_record_end ("FAILED", NULL, NULL));
      whole = read_all (f->path, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (json_array_get_length (whole), ==, 15);
    }
}

/* Blocks that a power cut left as zeros are a torn record too. */
static void
test_zeros (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjTranscript) transcript = NULL;
  struct stat st;
  g_auto(BjFd) fd = -1;

  write_session (f->path);
  g_assert_cmpint (stat (f->path, &st), ==, 0);
  fd = open (f->path, O_WRONLY);
  g_assert_cmpint (ftruncate (fd, st.st_size + 4096), ==, 0);
  transcript = bj_transcript_open (f->path, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (bj_transcript_get_length (transcript), ==, (guint64) st.st_size);
  g_assert_cmpuint (bj_transcript_get_count (transcript), ==, 15);
}

static void
test_wrong_kinds (Fixture *f, gconstpointer data)
{
  static const struct { gboolean seen; const char *type; } wrong[] = {
    { FALSE, "session" }, { FALSE, "command" }, { FALSE, "check-run" }, { FALSE, "end" }, { FALSE, "commit" },
    { TRUE, "finish" },   { TRUE, "note" },     { TRUE, "turn" },       { TRUE, "" },     { TRUE, "invented" },
  };
  g_autoptr(BjTranscript) transcript = bj_transcript_create (f->path, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr(GError) error = NULL;

      g_assert_false (bj_transcript_append (transcript, wrong[i].seen, wrong[i].type, bj_record_text ("x"), &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
    }
  g_assert_cmpuint (bj_transcript_get_length (transcript), ==, 0);
}

#define RECORD(n, by, type, data) \
  "{\"at\":1,\"by\":\"" by "\",\"data\":" data ",\"n\":" n ",\"prev\":\"" ZEROS "\",\"type\":\"" type "\"}\n"
#define GOOD RECORD ("0", "seen", "state", "{}")

static const struct { const char *name, *text; gssize length; const char *message; } hostile[] = {
  { "no JSON", "hello\n", -1, "Record 0" },
  { "empty line", "\n", -1, "Record 0" },
  { "wrong number", RECORD ("1", "seen", "state", "{}"), -1, "number" },
  { "number as text", RECORD ("\"0\"", "seen", "state", "{}"), -1, "number" },
  { "number with a fraction", RECORD ("0.0", "seen", "state", "{}"), -1, "not written as" },
  { "by nobody", RECORD ("0", "god", "state", "{}"), -1, "neither" },
  { "a claim of what must be seen", RECORD ("0", "claimed", "check-run", "{}"), -1, "no such type" },
  { "unknown type", RECORD ("0", "seen", "proof", "{}"), -1, "no such type" },
  { "data is no object", RECORD ("0", "seen", "state", "[]"), -1, "missing" },
  { "double key", RECORD ("0", "seen", "state", "{},\"data\":{\"x\":1}"), -1, "stands twice" },
  { "double key inside", RECORD ("0", "seen", "state", "{\"x\":1,\"x\":2}"), -1, "stands twice" },
  { "another key", RECORD ("0", "seen", "state", "{},\"extra\":1"), -1, "not written as" },
  { "white space", RECORD ("0", "seen", "state", "{ }"), -1, "not written as" },
  { "carriage return", "{\"at\":1,\"by\":\"seen\"}\r\n", -1, "Record 0" },
  { "a NUL", "{\"at\":1,\0}\n", 11, "0x00" },
  { "an escaped NUL", RECORD ("0", "seen", "state", "{\"x\":\"a\\u0000b\"}"), -1, "Record 0" },
  { "escapes that need not be", RECORD ("0", "seen", "state", "{\"x\":\"\\u0041\"}"), -1, "not written as" },
  { "bad UTF-8", RECORD ("0", "seen", "state", "{\"x\":\"\xff\"}"), -1, "Record 0" },
  { "a number written otherwise", RECORD ("0", "seen", "state", "{\"x\":1.50}"), -1, "not written as" },
  { "a number too big", RECORD ("0", "seen", "state", "{\"x\":99999999999999999999}"), -1, "not written as" },
  { "a comment", RECORD ("0", "seen", "state", "{/* x */}"), -1, "does not belong" },
  { "deep", RECORD ("0", "seen", "state", "{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"), -1, "levels" },
  { "the second does not follow", GOOD RECORD ("1", "seen", "state", "{}"), -1, "Record 1 of the transcript is bad: it does not follow" },
  { "the first twice", GOOD GOOD, -1, "Record 1" },
};

static void
test_hostile (Fixture *f, gconstpointer data)
{
  g_autoptr(JsonArray) good = NULL;

  g_assert_true (g_file_set_contents (f->path, GOOD, -1, NULL));
  good = read_all (f->path, NULL, NULL, NULL);
  g_assert_cmpuint (json_array_get_length (good), ==, 1);
  for (guint i = 0; i < G_N_ELEMENTS (hostile); i++)
    {
      g_test_message ("%s", hostile[i].name);
      g_assert_true (g_file_set_contents (f->path, hostile[i].text, hostile[i].length, NULL));
      assert_bad (f->path, BJ_ERROR_INVALID, hostile[i].message);
    }
}

static long
max_rss_kib (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* A line of a gigabyte (a hole in the file) is refused after a few megabytes. */
static void
test_huge_line (Fixture *f, gconstpointer data)
{
  long before = max_rss_kib ();
  g_auto(BjFd) fd = -1;

  write_session (f->path);
  fd = open (f->path, O_WRONLY | O_APPEND);
  g_assert_cmpint (ftruncate (fd, 1024 * 1024 * 1024), ==, 0);
  g_assert_cmpint (write (fd, "\n", 1), ==, 1);
  assert_bad (f->path, BJ_ERROR_LIMIT, "Record 15 of the transcript is too long");
  g_assert_cmpint (max_rss_kib () - before, <, 64 * 1024);
}

static void
test_no_file (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *link_path = g_build_filename (f->folder, "link", NULL);
  int pipes[2];

  g_assert_cmpint (pipe (pipes), ==, 0);
  g_assert_null (bj_transcript_read (pipes[0], NULL, NULL, &error)); /* and does not wait for it */
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);
  close (pipes[0]);
  close (pipes[1]);
  g_assert_null (bj_transcript_read (-1, NULL, NULL, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  g_assert_null (bj_transcript_open (f->path, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_cmpint (symlink ("/etc/passwd", link_path), ==, 0);
  g_assert_null (bj_transcript_open (link_path, &error));
  g_assert_nonnull (error);
}

/* Full for the work, but not for what ends a session. */
static void
test_full (Fixture *f, gconstpointer data)
{
  g_autoptr(BjTranscript) transcript = bj_transcript_create (f->path, NULL);
  g_autofree char *text = g_strnfill (3000 * 1000, 'x');
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) records = NULL;
  guint added = 0;

  for (;; added++)
    {
      JsonObject *data_object = json_object_new ();

      json_object_set_string_member (data_object, "text", text);
      if (!bj_transcript_append (transcript, FALSE, "note", data_object, &error))
        break;
    }
  g_assert_error (error, BJ_ERROR, BJ_ERROR_LIMIT);
  g_clear_error (&error);
  g_assert_cmpuint (added, ==, 22);
  append (transcript, TRUE, "limit", bj_record_limit ("transcript", 0));
  append (transcript, TRUE, "tree", tree_record ("t", "t"));
  append (transcript, TRUE, "end", bj_record_end ("DONE", NULL, NULL));
  records = read_all (f->path, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (records), ==, added + 3);
}

/* What the disk has no room for is not half there. */
static void
test_no_space (Fixture *f, gconstpointer data)
{
  g_autoptr(BjTranscript) transcript = bj_transcript_create (f->path, NULL);
  struct rlimit old, small = { 300, RLIM_INFINITY };
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) records = NULL;
  g_autofree char *text = g_strnfill (1000, 'x');

  append (transcript, FALSE, "note", bj_record_text ("fits"));
  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &old), ==, 0);
  small.rlim_max = old.rlim_max;
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &small), ==, 0);
  g_assert_false (bj_transcript_append (transcript, FALSE, "note", bj_record_text (text), &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &old), ==, 0);
  append (transcript, FALSE, "note", bj_record_text (text));
  records = read_all (f->path, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (records), ==, 2);
}

static gpointer
append_many (gpointer data)
{
  for (guint i = 0; i < 200; i++)
    append (data, FALSE, "note", bj_record_text ("from a thread"));
  return NULL;
}

static void
test_threads (Fixture *f, gconstpointer data)
{
  g_autoptr(BjTranscript) transcript = bj_transcript_create (f->path, NULL);
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonArray) records = NULL;
  GThread *threads[4];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("append", append_many, transcript);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  records = read_all (f->path, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (records), ==, 800);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) g_test_add (name, Fixture, NULL, set_up, func, tear_down)
  ADD ("/transcript/chain", test_chain);
  ADD ("/transcript/continued", test_continued);
  ADD ("/transcript/torn", test_torn);
  ADD ("/transcript/zeros", test_zeros);
  ADD ("/transcript/wrong-kinds", test_wrong_kinds);
  ADD ("/transcript/hostile", test_hostile);
  ADD ("/transcript/huge-line", test_huge_line);
  ADD ("/transcript/no-file", test_no_file);
  ADD ("/transcript/full", test_full);
  ADD ("/transcript/no-space", test_no_space);
  ADD ("/transcript/threads", test_threads);
  return g_test_run ();
}
