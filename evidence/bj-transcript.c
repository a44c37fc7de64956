/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-transcript.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define NO_HEAD "0000000000000000000000000000000000000000000000000000000000000000"
#define DEPTH_MAX 24
#define VALUES_MAX 65536                      /* in a line */
#define ALL_VALUES_MAX (2 * 1024 * 1024)      /* in a transcript */
#define RESERVE_BYTES (4 * 1024 * 1024)       /* for the records that end a session */
#define RESERVE_VALUES (128 * 1024)
#define READ_SIZE (64 * 1024)
#define AHEAD_BYTES (1024 * 1024) /* of the disk kept for what comes: a full one must not end a session */

struct _BjTranscript
{
  GMutex   lock;
  int      fd;
  char    *path;
  guint64  length;
  guint64  count;
  guint64  values;
  guint64  kept; /* bytes of the file that the disk has room for */
  char     head[65];
  gboolean broken; /* a write failed and could not be undone */
};

typedef struct
{
  const char *name;
  gboolean    seen;
  gboolean    durable; /* on the disk before the call returns */
  gboolean    ends;    /* may use the reserve */
} RecordType;

static const RecordType record_types[] = {
  { "session", TRUE, TRUE, FALSE },
  { "state", TRUE, FALSE, TRUE },
  { "timing", TRUE, FALSE, TRUE },
  { "machine", TRUE, FALSE, TRUE },
  { "command", TRUE, FALSE, FALSE },
  { "background", TRUE, FALSE, FALSE },
  { "file", TRUE, FALSE, FALSE },
  { "input", TRUE, FALSE, FALSE },
  { "screenshot", TRUE, FALSE, FALSE },
  { "model", TRUE, FALSE, FALSE },
  { "tree", TRUE, TRUE, TRUE },
  { "check-run", TRUE, TRUE, TRUE },
  { "commit", TRUE, TRUE, TRUE },
  { "answer", TRUE, TRUE, FALSE },
  { "park", TRUE, FALSE, FALSE },
  { "warning", TRUE, FALSE, TRUE },
  { "limit", TRUE, FALSE, TRUE },
  { "error", TRUE, FALSE, TRUE },
  { "end", TRUE, TRUE, TRUE },
  { "turn", FALSE, FALSE, FALSE },
  { "tool-error", FALSE, FALSE, FALSE },
  { "textual-call", FALSE, FALSE, FALSE },
  { "retry", FALSE, FALSE, FALSE },
  { "trim", FALSE, FALSE, FALSE },
  { "plan", FALSE, FALSE, FALSE },
  { "note", FALSE, FALSE, FALSE },
  { "set-check", FALSE, FALSE, FALSE },
  { "ask", FALSE, FALSE, FALSE },
  { "finish", FALSE, FALSE, TRUE },
};

/* What a pass over the lines of a file keeps between two lines. */
typedef struct
{
  guint64    count;
  guint64    values;
  guint64    length; /* of the whole lines */
  char       head[65];
  JsonArray *records; /* (nullable) */
} Chain;

static const RecordType *
find_type (const char *name, gboolean seen)
{
  for (guint i = 0; i < G_N_ELEMENTS (record_types); i++)
    if (g_strcmp0 (record_types[i].name, name) == 0)
      return record_types[i].seen == seen ? &record_types[i] : NULL;
  return NULL;
}

static void
hash_line (const char *line, gsize length, char head[65])
{
  g_autofree char *sum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) line, length);

  g_strlcpy (head, sum, 65);
}

static void
chain_init (Chain *chain, gboolean keep)
{
  *chain = (Chain) { .records = keep ? json_array_new () : NULL };
  g_strlcpy (chain->head, NO_HEAD, sizeof chain->head);
}

static void
chain_clear (Chain *chain)
{
  g_clear_pointer (&chain->records, json_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chain, chain_clear)

static char *
format_line (guint64 n, double at, gboolean seen, const char *type, const char *prev, JsonObject *data)
{
  g_autoptr(JsonObject) record = json_object_new ();
  json_object_set_int_member (record, "n", (gint64) n);
  bj_json_set_seconds (record, "at", at);
  json_object_set_string_member (record, "by", seen ? "seen" : "claimed");
  json_object_set_string_member (record, "type", type);
  json_object_set_string_member (record, "prev", prev);
  json_object_set_object_member (record, "data", json_object_ref (data));
  return bj_json_to_canonical (record);
}

/* The one form a record may have is the one that its values give again: anything added, doubled or left out shows here. */
static gboolean
check_form (Chain *chain, JsonObject *record, const char *line, gsize length, GError **error)
{
  const char *by = bj_json_get_string (record, "by", "");
  const char *type = bj_json_get_string (record, "type", "");
  double at = bj_json_get_double (record, "at", -1);
  JsonObject *data = bj_json_get_object (record, "data");
  gboolean seen = g_str_equal (by, "seen");
  g_autofree char *again = NULL;

  if (!seen && !g_str_equal (by, "claimed"))
    return bj_error_set (error, BJ_ERROR_INVALID, "it is neither seen nor claimed");
  if (find_type (type, seen) == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "there is no such type of record among those that are %s", by);
  if (data == NULL || !(at >= 0 && at < 1e12))
    return bj_error_set (error, BJ_ERROR_INVALID, "its time or its data is missing");
  if (bj_json_get_int (record, "n", -1) != (gint64) chain->count)
    return bj_error_set (error, BJ_ERROR_INVALID, "its number is another");
  if (!g_str_equal (bj_json_get_string (record, "prev", ""), chain->head))
    return bj_error_set (error, BJ_ERROR_INVALID, "it does not follow from the record before");
  again = format_line (chain->count, at, seen, type, chain->head, data);
  if (strlen (again) != length || memcmp (again, line, length) != 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "it is not written as Belljar writes records");
  return TRUE;
}

static gboolean
chain_add (Chain *chain, const char *line, gsize length, GError **error)
{
  g_autoptr(JsonObject) record = NULL;
  g_autoptr(GError) local_error = NULL;
  guint values = 0;

  if (bj_json_scan (line, length, DEPTH_MAX, VALUES_MAX, &values, &local_error))
    record = bj_json_parse (line, length, DEPTH_MAX, VALUES_MAX, &local_error);
  chain->values += values;
  if (chain->values > ALL_VALUES_MAX)
    return bj_error_set (error, BJ_ERROR_LIMIT, "Record %" G_GUINT64_FORMAT " of the transcript is one too many",
                         chain->count);
  if (record == NULL || !check_form (chain, record, line, length, &local_error))
    return bj_error_set (error, BJ_ERROR_INVALID, "Record %" G_GUINT64_FORMAT " of the transcript is bad: %s",
                         chain->count, local_error->message);
  hash_line (line, length, chain->head);
  chain->count++;
  chain->length += length + 1;
  if (chain->records != NULL)
    json_array_add_object_element (chain->records, g_steal_pointer (&record));
  return TRUE;
}

/* Takes the whole lines out of @buffer. */
static gboolean
chain_take_lines (Chain *chain, GByteArray *buffer, GError **error)
{
  gsize at = 0;
  const char *newline;

  while ((newline = memchr (buffer->data + at, '\n', buffer->len - at)) != NULL)
    {
      const char *line = (const char *) buffer->data + at;
      gsize length = (gsize) (newline - line);

      if (length > BJ_TRANSCRIPT_LINE_MAX)
        break;
      if (!chain_add (chain, line, length, error))
        return FALSE;
      at += length + 1;
    }
  if (buffer->len - at > BJ_TRANSCRIPT_LINE_MAX || chain->length + buffer->len - at > BJ_TRANSCRIPT_MAX)
    return bj_error_set (error, BJ_ERROR_LIMIT, "Record %" G_GUINT64_FORMAT " of the transcript is too long",
                         chain->count);
  if (at > 0)
    g_byte_array_remove_range (buffer, 0, (guint) at);
  return TRUE;
}

/* @torn: (out): bytes after the last newline */
static gboolean
chain_read (Chain *chain, int fd, gsize *torn, GError **error)
{
  g_autoptr(GByteArray) buffer = g_byte_array_new ();
  g_autofree guint8 *chunk = g_malloc (READ_SIZE);
  struct stat st;
  off_t at = 0;

  if (fstat (fd, &st) < 0)
    return bj_fd_set_io_error (error, errno, "Reading the transcript");
  if (!S_ISREG (st.st_mode))
    return bj_error_set (error, BJ_ERROR_INVALID, "The transcript is not a regular file");
  for (;;)
    {
      gssize n = pread (fd, chunk, READ_SIZE, at);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return bj_fd_set_io_error (error, errno, "Reading the transcript");
      if (n == 0)
        break;
      g_byte_array_append (buffer, chunk, (guint) n);
      at += n;
      if (memchr (chunk, '\n', (gsize) n) != NULL || buffer->len > BJ_TRANSCRIPT_LINE_MAX)
        if (!chain_take_lines (chain, buffer, error))
          return FALSE;
    }
  *torn = buffer->len;
  return TRUE;
}

static JsonArray *
read_records (int fd, gboolean strict, char **head, guint64 *count, GError **error)
{
  g_auto(Chain) chain = { 0 };
  gsize torn = 0;

  chain_init (&chain, TRUE);
  if (!chain_read (&chain, fd, &torn, error))
    return NULL;
  if (strict && torn > 0)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "Record %" G_GUINT64_FORMAT " of the transcript is not whole", chain.count);
      return NULL;
    }
  if (head != NULL)
    *head = g_strdup (chain.head);
  if (count != NULL)
    *count = chain.count;
  return g_steal_pointer (&chain.records);
}

JsonArray *
bj_transcript_read (int fd, char **head, guint64 *count, GError **error)
{
  return read_records (fd, FALSE, head, count, error);
}

JsonArray *
bj_transcript_read_strict (int fd, char **head, guint64 *count, GError **error)
{
  return read_records (fd, TRUE, head, count, error);
}

static BjTranscript *
transcript_new (int fd, const char *path, const Chain *chain)
{
  BjTranscript *self = g_new0 (BjTranscript, 1);

  g_mutex_init (&self->lock);
  self->fd = fd;
  self->path = g_strdup (path);
  self->length = chain->length;
  self->count = chain->count;
  self->values = chain->values;
  g_strlcpy (self->head, chain->head, sizeof self->head);
  return self;
}

/* A new file's name is only safe when its folder is on the disk too. */
static gboolean
sync_folder (const char *path, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);
  g_auto(BjFd) fd = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0 || fsync (fd) < 0)
    return bj_fd_set_io_error (error, errno, "Writing the folder %s", folder);
  return TRUE;
}

BjTranscript *
bj_transcript_create (const char *path, GError **error)
{
  g_auto(Chain) chain = { 0 };
  g_auto(BjFd) fd = open (path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Making the transcript %s", path);
      return NULL;
    }
  if (!sync_folder (path, error))
    {
      unlink (path);
      return NULL;
    }
  chain_init (&chain, FALSE);
  return transcript_new (g_steal_fd (&fd), path, &chain);
}

BjTranscript *
bj_transcript_open (const char *path, GError **error)
{
  g_auto(Chain) chain = { 0 };
  g_auto(BjFd) fd = open (path, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  gsize torn = 0;

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Opening the transcript %s", path);
      return NULL;
    }
  chain_init (&chain, FALSE);
  if (!chain_read (&chain, fd, &torn, error))
    {
      g_prefix_error (error, "%s: ", path);
      return NULL;
    }
  if (torn > 0 && ftruncate (fd, (off_t) chain.length) < 0)
    {
      bj_fd_set_io_error (error, errno, "Cutting an unfinished record off %s", path);
      return NULL;
    }
  return transcript_new (g_steal_fd (&fd), path, &chain);
}

void
bj_transcript_close (BjTranscript *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->fd >= 0 && self->kept > self->length && ftruncate (self->fd, (off_t) self->length) < 0)
    g_debug ("%s: giving back the room behind it: %s", self->path, g_strerror (errno));
  self->broken = TRUE;
  bj_fd_clear (&self->fd);
}

void
bj_transcript_free (BjTranscript *self)
{
  bj_transcript_close (self);
  g_mutex_clear (&self->lock);
  g_free (self->path);
  g_free (self);
}

static gboolean
check_room (BjTranscript *self, const RecordType *type, const char *line, gsize length, guint *values, GError **error)
{
  guint64 max_bytes = BJ_TRANSCRIPT_MAX - (type->ends ? 0 : RESERVE_BYTES);
  guint64 max_values = ALL_VALUES_MAX - (type->ends ? 0 : RESERVE_VALUES);

  if (self->broken)
    return bj_error_set (error, BJ_ERROR_FAILED, "The transcript %s cannot be written any more after a failed write",
                         self->path);
  if (!bj_json_scan (line, length, DEPTH_MAX, VALUES_MAX, values, error))
    return FALSE;
  if (length > BJ_TRANSCRIPT_LINE_MAX || self->length + length + 1 > max_bytes || self->values + *values > max_values)
    return bj_error_set (error, BJ_ERROR_LIMIT, "The transcript is full; no more can be recorded in this session");
  return TRUE;
}

/* Best effort: not every file system can, and a full one may still take the line. */
static void
keep_room (BjTranscript *self, gsize length)
{
  guint64 needed = self->length + length;

  if (needed + AHEAD_BYTES / 2 > self->kept
      && fallocate (self->fd, FALLOC_FL_KEEP_SIZE, (off_t) self->length, (off_t) (length + AHEAD_BYTES)) == 0)
    self->kept = needed + AHEAD_BYTES;
}

static gboolean
append_line (BjTranscript *self, const RecordType *type, const char *line, gsize length, GError **error)
{
  g_autofree char *whole = g_strconcat (line, "\n", NULL);
  guint values = 0;

  if (!check_room (self, type, line, length, &values, error))
    return FALSE;
  keep_room (self, length + 1);
  if (!bj_fd_write_all (self->fd, whole, length + 1, error))
    {
      self->kept = 0; /* what follows takes it away */
      g_prefix_error (error, "Transcript %s: ", self->path);
      self->broken = ftruncate (self->fd, (off_t) self->length) < 0;
      return FALSE;
    }
  if (type->durable && fdatasync (self->fd) < 0)
    {
      self->broken = TRUE;
      return bj_fd_set_io_error (error, errno, "Writing the transcript %s to the disk", self->path);
    }
  hash_line (line, length, self->head);
  self->length += length + 1;
  self->values += values;
  self->count++;
  return TRUE;
}

gboolean
bj_transcript_append (BjTranscript *self, gboolean seen, const char *type, JsonObject *data, GError **error)
{
  g_autoptr(JsonObject) owned = data;
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  const RecordType *known = find_type (type, seen);
  double now = (double) g_get_real_time () / G_USEC_PER_SEC;
  g_autofree char *line = NULL;

  if (known == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no type of record that is %s", type,
                         seen ? "seen" : "claimed");
  line = format_line (self->count, now, seen, type, self->head, owned);
  return append_line (self, known, line, strlen (line), error);
}

guint64
bj_transcript_get_length (BjTranscript *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->length;
}

guint64
bj_transcript_get_count (BjTranscript *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return self->count;
}

char *
bj_transcript_dup_head (BjTranscript *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  return g_strdup (self->head);
}
