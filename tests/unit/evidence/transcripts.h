/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-record.h"
#include "bj-transcript.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <unistd.h>

/* A folder that a test has for itself. */
static inline char *
make_folder (void)
{
  g_autoptr(GError) error = NULL;
  char *folder = g_dir_make_tmp ("evidence-XXXXXX", &error);

  g_assert_no_error (error);
  return folder;
}

static inline void
remove_folder (const char *folder)
{
  g_autoptr(GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);

      g_assert_cmpint (g_unlink (path), ==, 0);
    }
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static inline int
open_for_reading (const char *path)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);

  g_assert_cmpint (fd, >=, 0);
  return fd;
}

static inline JsonObject *
session_record (const char *check, const char *source, const char *baseline)
{
  static const char *const protect[] = { "tests", NULL };
  BjSessionFacts facts = {
    .session = "abcd2345", .kind = "task", .project = "demo", .image_name = "debian", .image_version = 3,
    .image_digest = "sha256:1234", .baseline = baseline, .baseline_tree = baseline != NULL ? "tree-old" : NULL,
    .task = "Fix the bug\nplease", .check_command = check, .check_source = source, .protect = protect,
    .model = "qwen3:8b", .accelerator = "tcg", .network = "none", .owner_uid = 1000, .steps_limit = 50,
    .wall_clock_s = 1200,
  };

  return bj_record_session (&facts);
}

static inline JsonObject *
run_record (const char *where, const char *tree, int exit, const char *command, const char *source)
{
  g_autoptr(GBytes) output = g_bytes_new_static ("1 test failed\n", 14);
  BjCheckRunFacts facts = { .where = where, .tree = tree, .exit = exit, .duration_s = 1.25, .output = output,
                            .command = command, .source = source };

  return bj_record_check_run (&facts);
}

static inline JsonObject *
command_record (const char *command, int exit)
{
  g_autoptr(GBytes) out = g_bytes_new_static ("ok\n", 3);
  g_autoptr(GBytes) whole = g_bytes_new (command, strlen (command));
  BjCommandFacts facts = { .tool = "run", .command = whole, .exit = exit, .duration_s = 0.3125, .out = out, .out_total = 3,
                           .out_sha256 = "dc51b8c9" };

  return bj_record_command (&facts);
}

static inline JsonArray *
one_file (const char *path)
{
  JsonArray *files = json_array_new ();
  JsonObject *file = json_object_new ();

  json_object_set_string_member (file, "path", path);
  json_object_set_string_member (file, "status", "modified");
  json_object_set_int_member (file, "added", 12);
  json_object_set_int_member (file, "removed", 3);
  json_array_add_object_element (files, file);
  return files;
}

static inline JsonObject *
tree_record (const char *tree, const char *protected_tree)
{
  static const char *const warnings[] = { "A FIFO was left out: work/pipe", NULL };
  g_autoptr(JsonArray) files = one_file ("src/main.c");

  return bj_record_tree (tree, protected_tree, files, 1, warnings);
}

static inline void
append (BjTranscript *transcript, gboolean seen, const char *type, JsonObject *data)
{
  g_autoptr(GError) error = NULL;

  bj_transcript_append (transcript, seen, type, data, &error);
  g_assert_no_error (error);
}

/* A whole session that ends proved. */
static inline void
write_session (const char *path)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjTranscript) transcript = bj_transcript_create (path, &error);

  g_assert_no_error (error);
  append (transcript, TRUE, "session", session_record ("make test", "caller", "commit-old"));
  append (transcript, TRUE, "timing", bj_record_timing ("ready", 7.123));
  append (transcript, TRUE, "state", bj_record_state ("running"));
  append (transcript, TRUE, "model", bj_record_model (1, "/api/chat", 200, 10, "aa", 20, "bb", 0.5, NULL));
  append (transcript, TRUE, "command", command_record ("make test", 2));
  append (transcript, TRUE, "file", bj_record_file ("write", "write_file", "/work/demo/src/main.c", 120));
  append (transcript, TRUE, "command", command_record ("make test", 0));
  append (transcript, FALSE, "note", bj_record_text ("found it"));
  append (transcript, FALSE, "finish", bj_record_text ("The loop ran one time too often.\nFixed."));
  append (transcript, TRUE, "check-run", run_record ("same", NULL, 0, "make test", "caller"));
  append (transcript, TRUE, "tree", tree_record ("tree-new", "tree-new"));
  append (transcript, TRUE, "check-run", run_record ("fresh", "tree-new", 0, "make test", "caller"));
  append (transcript, TRUE, "check-run", run_record ("baseline", "tree-old", 1, "make test", "caller"));
  append (transcript, TRUE, "commit", bj_record_commit ("commit-new", "tree-new", FALSE));
  append (transcript, TRUE, "end", bj_record_end ("DONE", NULL, NULL));
}
