/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes as a transcript's file, and as what the agent sends for one. Numbers and hashes are put right first where the input leaves
 * them open (@), so that a fuzzer gets behind the chain. */

#include "fuzz.h"

#include "bj-fd.h"
#include "bj-json.h"
#include "bj-record.h"
#include "bj-report.h"
#include "bj-transcript.h"

#include <string.h>

static void
try_file (gconstpointer data, gsize size)
{
  g_autoptr(GBytes) bytes = g_bytes_new_static (data, size);
  g_auto(BjFd) fd = bj_fd_seal_bytes ("fuzz", bytes, NULL);
  g_autofree char *head = NULL;
  guint64 count = 0;
  g_autoptr(JsonArray) records = bj_transcript_read (fd, &head, &count, NULL);
  g_autoptr(JsonObject) report = NULL;
  g_autofree char *text = NULL;

  if (records == NULL)
    return;
  g_assert_cmpuint (json_array_get_length (records), ==, count);
  report = bj_report_build (records, head, NULL);
  if (report == NULL)
    return;
  text = bj_report_to_text (report, "fuzz", 80);
  g_assert_true (g_utf8_validate (text, -1, NULL));
}

/* Lines of "TYPE JSON" become records of a whole chain. */
static void
try_chain (const char *data, gsize size)
{
  g_autofree char *copy = g_strndup (data, size);
  g_auto(GStrv) lines = g_strsplit (copy, "\n", 64);
  g_autoptr(GString) file = g_string_new (NULL);
  g_autofree char *prev = g_strnfill (64, '0');

  for (guint i = 0; lines[i] != NULL; i++)
    {
      char *json = strchr (lines[i], ' ');
      g_autoptr(JsonObject) record = json_object_new ();
      g_autofree char *line = NULL;
      JsonObject *object = json != NULL ? bj_record_from_agent (json + 1, NULL) : NULL;

      if (object == NULL || !g_utf8_validate (lines[i], json - lines[i], NULL))
        {
          g_clear_pointer (&object, json_object_unref);
          continue;
        }
      *json = '\0';
      json_object_set_int_member (record, "n", (gint64) i);
      json_object_set_int_member (record, "at", 1);
      json_object_set_string_member (record, "by", strstr ("finish note turn plan set-check", lines[i]) ? "claimed" : "seen");
      json_object_set_string_member (record, "type", lines[i]);
      json_object_set_string_member (record, "prev", prev);
      json_object_set_object_member (record, "data", object);
      line = bj_json_to_canonical (record);
      g_free (prev);
      prev = g_compute_checksum_for_string (G_CHECKSUM_SHA256, line, -1);
      g_string_append_printf (file, "%s\n", line);
    }
  try_file (file->str, file->len);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  try_file (data, size);
  try_chain ((const char *) data, size);
  return 0;
}
