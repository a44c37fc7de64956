/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* What a session leaves as proof: its transcript and its report. */

#include "bj-session-private.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"
#include "bj-record.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#define TRANSCRIPT_MAX (64ull * 1024 * 1024)
#define PLAN_TEXT_MAX 2000
#define EVIDENCE_NAME_MAX 128
#define SEARCH_CHUNK 65536

/* Those of an earlier daemon: equal pictures are one file. */
static void
count_screenshots (BjSession *self)
{
  g_autofree char *folder = bj_session_dup_dir (self, "evidence/screenshots");
  g_autoptr(GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  self->screenshots = 0;
  self->screenshot_bytes = 0;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      GStatBuf info;

      self->screenshots++;
      if (g_lstat (path, &info) == 0)
        self->screenshot_bytes += (guint64) info.st_size;
    }
}

gboolean
bj_session_open_transcript (BjSession *self, GError **error)
{
  g_autofree char *path = bj_session_dup_transcript_path (self);
  BjTranscript *transcript;

  if (g_file_test (path, G_FILE_TEST_EXISTS))
    {
      transcript = bj_transcript_open (path, error);
      count_screenshots (self);
    }
  else
    transcript = bj_transcript_create (path, error);
  if (transcript == NULL)
    return FALSE;
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->transcript, bj_transcript_free);
  self->transcript = transcript;
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* Returns: whether the transcript has room for more */
static gboolean
append (BjSession *self, gboolean seen, const char *type, JsonObject *data)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->record_lock);
  g_autoptr(GError) error = NULL;
  gboolean full = self->transcript != NULL && bj_transcript_get_length (self->transcript) > TRANSCRIPT_MAX;

  if (self->transcript == NULL || self->sealed || (full && !seen))
    json_object_unref (data);
  else if (!bj_transcript_append (self->transcript, seen, type, data, &error))
    {
      g_warning ("Session %s: its transcript cannot be written: %s", self->plan->id, error->message);
      bj_session_end_work (self, BJ_END_AGENT, bj_error_get_name (BJ_ERROR_FAILED), error->message);
    }
  self->sealed = self->sealed || g_str_equal (type, "end");
  return !full;
}

void
bj_session_record (BjSession *self, gboolean seen, const char *type, JsonObject *data)
{
  if (!append (self, seen, type, data))
    bj_session_end_work (self, BJ_END_TRANSCRIPT, NULL, NULL);
  g_mutex_lock (&self->lock);
  bj_session_sync_later (self);
  g_mutex_unlock (&self->lock);
}

void
bj_session_warn (BjSession *self, const char *format, ...)
{
  va_list args;
  g_autofree char *text = NULL;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_message ("Session %s: %s", self->plan->id, text);
  bj_session_record (self, TRUE, "warning", bj_record_warning (text));
}

void
bj_session_note_time (BjSession *self, const char *phase, gint64 begun_us)
{
  double seconds = (double) (g_get_monotonic_time () - begun_us) / G_USEC_PER_SEC;

  bj_session_record (self, TRUE, "timing", bj_record_timing (phase, seconds));
}

void
bj_session_note_queue (BjSession *self)
{
  bj_session_note_time (self, "queue", self->begun_us);
}

void
bj_session_note_command (BjSession *self)
{
  gboolean first;

  g_mutex_lock (&self->lock);
  first = !self->had_command;
  self->had_command = TRUE;
  g_mutex_unlock (&self->lock);
  if (first)
    bj_session_note_time (self, "first_command", self->begun_us);
}

JsonArray *
bj_session_dup_records (BjSession *self, char **head, GError **error)
{
  g_autofree char *path = bj_session_dup_transcript_path (self);
  g_auto(BjFd) fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  if (fd < 0)
    {
      bj_error_set (error, BJ_ERROR_NOT_FOUND, "Session %s has no transcript yet", self->plan->id);
      return NULL;
    }
  return bj_transcript_read (fd, head, NULL, error);
}

static char *
object_to_text (JsonObject *object)
{
  g_autoptr(JsonNode) node = json_node_init_object (json_node_alloc (), object);

  return json_to_string (node, FALSE);
}

char *
bj_session_dup_report (BjSession *self, GError **error)
{
  g_autofree char *path = bj_session_dup_report_path (self);
  g_autofree char *head = NULL;
  g_autoptr(JsonArray) records = NULL;
  g_autoptr(JsonObject) report = NULL;
  char *text = NULL;

  if (bj_session_is_over (self) && g_file_get_contents (path, &text, NULL, NULL))
    return text;
  records = bj_session_dup_records (self, &head, error);
  if (records == NULL)
    return NULL;
  report = bj_report_build (records, head, error);
  return report != NULL ? object_to_text (report) : NULL;
}

/* Always returns %FALSE. The report is told once. */
static gboolean
refuse_screenshot (BjSession *self, const char *limit, guint64 most, GError **error)
{
  gboolean told;

  g_mutex_lock (&self->lock);
  told = self->screenshots_told;
  self->screenshots_told = TRUE;
  g_mutex_unlock (&self->lock);
  if (!told)
    bj_session_record (self, TRUE, "limit", bj_record_limit (limit, most));
  return bj_error_set (error, BJ_ERROR_LIMIT,
                       "Session %s has the screenshots that it may have: [limits] %s is %" G_GUINT64_FORMAT, self->plan->id, limit,
                       most);
}

/* Whether one more may be taken; it is counted. */
static gboolean
begin_screenshot (BjSession *self, GError **error)
{
  guint most = self->context->config->screenshots;
  gboolean full;

  g_mutex_lock (&self->lock);
  full = self->screenshots >= most;
  self->screenshots += !full;
  g_mutex_unlock (&self->lock);
  return !full || refuse_screenshot (self, "screenshots", most, error);
}

/* It is in its place then. Equal pictures are one file. */
static gboolean
keep_screenshot (BjSession *self, const char *path, gconstpointer data, gsize size, GError **error)
{
  guint64 most = self->context->config->screenshot_bytes;
  gboolean full;

  if (g_file_test (path, G_FILE_TEST_EXISTS))
    return TRUE;
  g_mutex_lock (&self->lock);
  full = size > most || self->screenshot_bytes > most - size;
  self->screenshot_bytes += full ? 0 : size;
  g_mutex_unlock (&self->lock);
  if (full)
    return refuse_screenshot (self, "screenshot-bytes", most, error);
  return g_file_set_contents_full (path, data, (gssize) size, G_FILE_SET_CONTENTS_CONSISTENT, 0600, error);
}

GBytes *
bj_session_take_screenshot (BjSession *self, GError **error)
{
  g_autoptr(BjMachine) machine = bj_session_dup_machine (self, error);
  g_autoptr(GBytes) png = NULL;
  g_autofree char *sha256 = NULL;
  g_autofree char *file = NULL;
  g_autofree char *path = NULL;
  gsize size;
  gconstpointer data;

  bj_session_touch (self);
  if (machine == NULL || !begin_screenshot (self, error) || (png = bj_machine_screenshot (machine, error)) == NULL)
    return NULL;
  data = g_bytes_get_data (png, &size);
  sha256 = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, png);
  file = g_strdup_printf ("screenshots/%.16s.png", sha256);
  path = g_build_filename (self->context->state_dir, "sessions", self->plan->id, "evidence", file, NULL);
  if (!keep_screenshot (self, path, data, size, error))
    return NULL;
  bj_session_record (self, TRUE, "screenshot", bj_record_screenshot (file, sha256, size));
  return g_steal_pointer (&png);
}

/* A name that leads nowhere but down: no part of it begins with a dot. */
static gboolean
is_evidence_name (const char *name)
{
  return strlen (name) <= EVIDENCE_NAME_MAX
         && g_regex_match_simple ("^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*\\z", name, G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT);
}

/* Looks for @text in what can be read from @fd, a chunk at a time; the end of one may be the beginning of it. */
static gboolean
has_text (int fd, const char *text)
{
  g_autoptr(GString) window = g_string_new (NULL);
  g_autofree char *chunk = g_malloc (SEARCH_CHUNK);
  gsize length = strlen (text);
  ssize_t got;

  while ((got = read (fd, chunk, SEARCH_CHUNK)) > 0 || (got < 0 && errno == EINTR))
    {
      g_string_append_len (window, chunk, MAX (got, 0));
      if (memmem (window->str, window->len, text, length) != NULL)
        return TRUE;
      if (window->len >= length)
        g_string_erase (window, 0, (gssize) (window->len - length + 1));
    }
  return FALSE;
}

/* In a transcript's one form, no text inside a value can look like a member. */
static gboolean
is_in_transcript (BjSession *self, const char *name)
{
  g_autofree char *path = bj_session_dup_transcript_path (self);
  g_autofree char *member = g_strdup_printf ("\"file\":\"%s\"", name);
  g_auto(BjFd) fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  return fd >= 0 && has_text (fd, member);
}

int
bj_session_open_evidence (BjSession *self, const char *name, GError **error)
{
  g_autofree char *folder = bj_session_dup_dir (self, "evidence");
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_auto(BjFd) fd = -1;
  struct stat info;

  if (is_evidence_name (name) && is_in_transcript (self, name))
    fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0 && fstat (fd, &info) == 0 && S_ISREG (info.st_mode))
    return g_steal_fd (&fd);
  bj_error_set (error, BJ_ERROR_NOT_FOUND, "Session %s has no evidence of that name: its transcript has the names", self->plan->id);
  return -1;
}

GVariant *
bj_session_list_plan (BjSession *self, GError **error)
{
  g_auto(GVariantBuilder) list = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));
  g_autoptr(GPtrArray) plan = bj_store_list_plan (self->context->store, self->plan->id, error);

  if (plan == NULL)
    return NULL;
  for (guint i = 0; i < plan->len; i++)
    {
      const BjPlanRow *row = g_ptr_array_index (plan, i);

      g_variant_builder_open (&list, G_VARIANT_TYPE_VARDICT);
      g_variant_builder_add (&list, "{sv}", "id", g_variant_new_uint32 (row->id));
      g_variant_builder_add (&list, "{sv}", "text",
                             g_variant_new_take_string (bj_untrusted_escape (row->text, -1, PLAN_TEXT_MAX)));
      g_variant_builder_add (&list, "{sv}", "status", g_variant_new_string (row->status));
      g_variant_builder_close (&list);
    }
  return g_variant_builder_end (&list);
}

static gboolean
write_report (BjSession *self, GError **error)
{
  g_autofree char *head = NULL;
  g_autofree char *path = bj_session_dup_report_path (self);
  g_autofree char *text = NULL;
  g_autoptr(JsonArray) records = bj_session_dup_records (self, &head, error);
  g_autoptr(JsonObject) report = records != NULL ? bj_report_build (records, head, error) : NULL;
  BjVerdictFacts facts;

  if (report == NULL || !bj_report_sign (report, self->key, error))
    return FALSE;
  bj_report_get_verdict_facts (records, &facts);
  g_mutex_lock (&self->lock);
  g_free (self->verdict);
  self->verdict = g_strdup (bj_verdict_to_string (bj_verdict_decide (&facts, NULL)));
  self->steps = (guint) bj_json_get_int (report, "steps", 0); /* one number everywhere: what the records show */
  g_mutex_unlock (&self->lock);
  text = object_to_text (report);
  return g_file_set_contents_full (path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE, 0600,
                                   error);
}

gboolean
bj_session_seal (BjSession *self, const char *outcome, const char *error_name, const char *message, GError **error)
{
  const char *state = g_str_equal (outcome, "DONE") ? "finished" : g_str_equal (outcome, "CANCELLED") ? "cancelled" : "failed";
  g_autoptr(GError) settle_error = NULL;
  gboolean ok;

  bj_session_record (self, TRUE, "end", bj_record_end (outcome, error_name, message));
  if (self->transcript != NULL)
    bj_transcript_close (self->transcript); /* a session that is over stays in the list, and must not hold a file */
  ok = write_report (self, error);
  g_mutex_lock (&self->lock);
  g_free (self->outcome);
  self->outcome = g_strdup (outcome);
  self->finished = g_get_real_time () / G_USEC_PER_SEC;
  g_mutex_unlock (&self->lock);
  bj_session_set_state (self, state);
  if (!bj_store_settle_tasks (self->context->store, &settle_error))
    g_warning ("Session %s: the task list cannot be written: %s", self->plan->id, settle_error->message);
  return ok;
}
