/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-ask-note.h"

#include "bj-error.h"
#include "bj-remove.h"

#include <glib/gstdio.h>
#include <string.h>

static void
assert_noted (const char *dir, const char *answer)
{
  g_auto(BjAskNote) note = { 0 };
  g_autoptr(GError) error = NULL;

  g_assert_true (bj_ask_note_read (dir, &note, &error));
  g_assert_no_error (error);
  g_assert_cmpint (note.asked_at, ==, 1764450000);
  g_assert_cmpstr (note.baseline, ==, NULL);
  g_assert_cmpstr (note.baseline_tree, ==, "tree");
  g_assert_cmpstr (note.agent_check, ==, "make \"check\" # ü\n");
  g_assert_cmpstr (note.agent_setup, ==, "");
  g_assert_true (note.network);
  g_assert_cmpstr (note.answer, ==, answer);
  g_assert_cmpuint (note.answer_uid, ==, answer != NULL ? 1000 : 0);
  g_assert_cmpmem (g_bytes_get_data (note.memory, NULL), (int) g_bytes_get_size (note.memory), "{\"a\0b\"}", 8);
}

static void
test_round (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-ask-XXXXXX", NULL);
  g_autoptr(GBytes) memory = g_bytes_new_static ("{\"a\0b\"}", 8);
  const BjAskNote note = { .asked_at = 1764450000, .baseline_tree = (char *) "tree", .agent_check = (char *) "make \"check\" # ü\n",
                           .agent_setup = (char *) "", .network = TRUE, .memory = memory };
  g_auto(BjAskNote) none = { 0 };
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_ask_note_exists (dir));
  g_assert_false (bj_ask_note_read (dir, &none, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_true (bj_ask_note_write (dir, &note, &error));
  assert_noted (dir, NULL);
  g_assert_true (bj_ask_note_set_answer (dir, " two\nlines ", 1000, &error));
  assert_noted (dir, " two\nlines ");
  g_assert_true (bj_ask_note_set_answer (dir, NULL, 0, &error));
  g_assert_true (bj_ask_note_set_answer (dir, NULL, 0, &error));
  assert_noted (dir, NULL);
  bj_ask_note_remove (dir);
  bj_ask_note_remove (dir);
  g_assert_false (bj_ask_note_exists (dir));
  g_assert_true (bj_remove_tree (dir, NULL));
}

/* A note that is not whole is no note to go on with. */
static void
test_cut (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-ask-XXXXXX", NULL);
  g_autofree char *memory_path = g_build_filename (dir, "ask", "memory", NULL);
  g_autoptr(GBytes) memory = g_bytes_new_static ("{}", 2);
  const BjAskNote note = { .memory = memory };
  g_auto(BjAskNote) found = { 0 };
  g_autoptr(GError) error = NULL;

  g_assert_true (bj_ask_note_write (dir, &note, &error));
  g_assert_cmpint (g_unlink (memory_path), ==, 0);
  g_assert_false (bj_ask_note_read (dir, &found, &error));
  g_assert_nonnull (error);
  g_assert_true (bj_remove_tree (dir, NULL));
}

/* Cut at any byte, or overwritten: an error that names the file, never half a question. An answer that was cut is none. */
static void
test_damaged (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-ask-XXXXXX", NULL);
  g_autofree char *ini = g_build_filename (dir, "ask", "ask.ini", NULL);
  g_autofree char *answer = g_build_filename (dir, "ask", "answer.ini", NULL);
  g_autofree char *text = NULL;
  g_autofree char *said = NULL;
  g_autoptr(GBytes) memory = g_bytes_new_static ("{\"a\0b\"}", 8);
  const BjAskNote note = { .asked_at = 1764450000, .baseline_tree = (char *) "tree", .agent_check = (char *) "make \"check\" # ü\n",
                           .agent_setup = (char *) "", .network = TRUE, .memory = memory };
  gsize size, length;

  g_assert_true (bj_ask_note_write (dir, &note, NULL));
  g_assert_true (bj_ask_note_set_answer (dir, "yes", 1000, NULL));
  g_assert_true (g_file_get_contents (ini, &text, &size, NULL));
  g_assert_true (g_file_get_contents (answer, &said, &length, NULL));
  for (gsize i = 0; i < size - 1; i++)
    {
      g_auto(BjAskNote) found = { 0 };
      g_autoptr(GError) error = NULL;

      g_assert_true (g_file_set_contents (ini, text, (gssize) i, NULL));
      g_assert_false (bj_ask_note_read (dir, &found, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
      g_assert_nonnull (strstr (error->message, ini));
    }
  memset (text, 0xa5, size / 2);
  g_assert_true (g_file_set_contents (ini, text, (gssize) size, NULL));
  {
    g_auto(BjAskNote) found = { 0 };

    g_assert_false (bj_ask_note_read (dir, &found, NULL));
  }
  g_assert_true (bj_ask_note_write (dir, &note, NULL));
  assert_noted (dir, "yes");
  g_assert_true (g_file_set_contents (answer, said, (gssize) (strstr (said, "uid") - said), NULL));
  assert_noted (dir, NULL);
  g_assert_true (bj_remove_tree (dir, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/ask-note/round", test_round);
  g_test_add_func ("/session/ask-note/cut", test_cut);
  g_test_add_func ("/session/ask-note/damaged", test_damaged);
  return g_test_run ();
}
