/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-name.h"
#include "bj-tree.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define WHOLE_MAX (8 * 1024 * 1024) /* larger files go through a stream */
#define NAME_MAX_BYTES 255
#define ENTRIES_MAX (2 * BJ_TREE_FILES_MAX) /* of all kinds: what is looked at at all */
#define TRIES 3

/* One run. */
typedef struct
{
  git_odb *odb;
  BjTreeAnswer *answer;
  GByteArray *buffer; /* (owned): reused for each file */
  guint64 files;
  guint64 bytes;
  guint64 entries;
} BjWrite;

typedef enum
{
  BJ_WRITE_DONE,
  BJ_WRITE_LEFT_OUT,
  BJ_WRITE_FAILED,
} BjWriteResult;

static BjWriteResult
leave_out (BjWrite *self, const char *path, const char *name, const char *why)
{
  bj_tree_answer_warn (self->answer, path, name, why);
  return BJ_WRITE_LEFT_OUT;
}

/* Returns: bytes read, at most @length; fewer at the end of the file; -1 on failure */
static gssize
read_fully (int fd, guint8 *data, gsize length)
{
  gsize got = 0;

  while (got < length)
    {
      gssize n = read (fd, data + got, length - got);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return -1;
      if (n == 0)
        break;
      got += (gsize) n;
    }
  return (gssize) got;
}

/* A stream has to know its size first: a file that shrinks meanwhile is tried again. */
static BjWriteResult
stream_once (BjWrite *self, int fd, guint64 size, git_oid *id, GError **error)
{
  git_odb_stream *stream = NULL;
  guint64 left = size;
  BjWriteResult result = BJ_WRITE_DONE;

  g_byte_array_set_size (self->buffer, 1024 * 1024);
  if (lseek (fd, 0, SEEK_SET) < 0 || git_odb_open_wstream (&stream, self->odb, (git_object_size_t) size, GIT_OBJECT_BLOB) < 0)
    {
      bj_tree_git_error (error, "Writing a large file");
      return BJ_WRITE_FAILED;
    }
  while (left > 0 && result == BJ_WRITE_DONE)
    {
      gssize n = read_fully (fd, self->buffer->data, (gsize) MIN (left, self->buffer->len));

      if (n <= 0)
        result = BJ_WRITE_LEFT_OUT;
      else if (git_odb_stream_write (stream, (const char *) self->buffer->data, (size_t) n) < 0)
        result = BJ_WRITE_FAILED;
      else
        left -= (guint64) n;
    }
  if (result == BJ_WRITE_DONE && git_odb_stream_finalize_write (id, stream) < 0)
    result = BJ_WRITE_FAILED;
  if (result == BJ_WRITE_FAILED)
    bj_tree_git_error (error, "Writing a large file");
  git_odb_stream_free (stream);
  return result;
}

static BjWriteResult
write_stream (BjWrite *self, int fd, guint64 *size, git_oid *id, GError **error)
{
  struct stat st;

  for (guint i = 0; i < TRIES; i++)
    {
      BjWriteResult result;

      if (fstat (fd, &st) < 0 || (guint64) st.st_size > BJ_TREE_FILE_MAX)
        return BJ_WRITE_LEFT_OUT;
      *size = (guint64) st.st_size;
      result = stream_once (self, fd, *size, id, error);
      if (result != BJ_WRITE_LEFT_OUT)
        return result;
    }
  return BJ_WRITE_LEFT_OUT;
}

static BjWriteResult
write_whole (BjWrite *self, int fd, guint64 expected, guint64 *size, git_oid *id, GError **error)
{
  gssize n;

  g_byte_array_set_size (self->buffer, (guint) MAX (expected, 1));
  n = read_fully (fd, self->buffer->data, (gsize) expected);
  if (n < 0)
    return BJ_WRITE_LEFT_OUT;
  *size = (guint64) n;
  return bj_tree_put (self->odb, self->buffer->data, (gsize) n, GIT_OBJECT_BLOB, id, error) ? BJ_WRITE_DONE
                                                                                            : BJ_WRITE_FAILED;
}

static BjWriteResult
write_file (BjWrite *self, int folder, const char *path, const char *name, GPtrArray *made, GError **error)
{
  g_auto(BjFd) fd = bj_tree_open (folder, name, O_RDONLY);
  struct stat st;
  guint32 mode;
  guint64 size = 0;
  git_oid id;
  BjWriteResult result;

  if (fd < 0)
    return leave_out (self, path, name, errno == EACCES ? "was left out: its owner may not read it"
                                                        : "was left out: it could not be opened");
  if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode))
    return leave_out (self, path, name, "was left out: it changed while it was read");
  if ((guint64) st.st_size > BJ_TREE_FILE_MAX)
    return leave_out (self, path, name, "was left out: it is larger than 1 GiB");
  if (self->bytes + (guint64) st.st_size > BJ_TREE_BYTES_MAX)
    return leave_out (self, path, name, "was left out: the project is larger than 4 GiB");
  if (self->files >= BJ_TREE_FILES_MAX)
    return leave_out (self, path, name, "was left out: the project has more than a million files");
  if (st.st_size > WHOLE_MAX)
    result = write_stream (self, fd, &size, &id, error);
  else
    result = write_whole (self, fd, (guint64) st.st_size, &size, &id, error);
  if (result == BJ_WRITE_LEFT_OUT)
    return leave_out (self, path, name, "was left out: it changed while it was read, or could not be read");
  if (result == BJ_WRITE_FAILED)
    return result;
  self->files++;
  self->bytes += size;
  mode = st.st_mode & S_IXUSR ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
  g_ptr_array_add (made, bj_tree_entry_new (name, mode, &id));
  return BJ_WRITE_DONE;
}

static BjWriteResult
write_link (BjWrite *self, int folder, const char *path, const char *name, GPtrArray *made, GError **error)
{
  char target[PATH_MAX + 1];
  gssize n = readlinkat (folder, name, target, sizeof target);
  git_oid id;

  if (n <= 0 || n > PATH_MAX)
    return leave_out (self, path, name, "was left out: the link could not be read");
  if (self->files >= BJ_TREE_FILES_MAX)
    return leave_out (self, path, name, "was left out: the project has more than a million files");
  if (!bj_tree_put (self->odb, target, (gsize) n, GIT_OBJECT_BLOB, &id, error))
    return BJ_WRITE_FAILED;
  self->files++;
  self->bytes += (guint64) n;
  g_ptr_array_add (made, bj_tree_entry_new (name, GIT_FILEMODE_LINK, &id));
  return BJ_WRITE_DONE;
}

static BjWriteResult write_folder (BjWrite *self, int folder, const char *path, guint level, git_oid *id, GError **error);

static BjWriteResult
write_subfolder (BjWrite *self, int folder, const char *path, const char *name, guint level, GPtrArray *made,
                 GError **error)
{
  g_autofree char *below = *path != '\0' ? g_strdup_printf ("%s/%s", path, name) : g_strdup (name);
  g_auto(BjFd) fd = -1;
  git_oid id;
  BjWriteResult result;

  if (level >= BJ_TREE_DEPTH_MAX)
    return leave_out (self, path, name, "was left out: more than 128 folders deep");
  fd = bj_tree_open (folder, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0)
    return leave_out (self, path, name, errno == EXDEV ? "was left out: it is on another file system"
                                                       : "was left out: the folder could not be opened");
  result = write_folder (self, fd, below, level + 1, &id, error);
  if (result == BJ_WRITE_DONE)
    g_ptr_array_add (made, bj_tree_entry_new (name, GIT_FILEMODE_TREE, &id));
  return result;
}

static BjWriteResult
write_name (BjWrite *self, int folder, const char *path, const char *name, guint level, GPtrArray *made, GError **error)
{
  struct stat st;

  if (g_str_has_prefix (name, BJ_TREE_ASIDE))
    return leave_out (self, path, name, "was left out: names that begin like this are for what was moved aside");
  if (bj_tree_name_is_refused (name) || strlen (name) > NAME_MAX_BYTES)
    return leave_out (self, path, name, "was left out: git refuses this name");
  if (self->entries++ >= ENTRIES_MAX)
    return leave_out (self, path, name, "was left out: the project has too many files");
  if (fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return leave_out (self, path, name, "was left out: it vanished while the project was read");
  if (S_ISREG (st.st_mode))
    return write_file (self, folder, path, name, made, error);
  if (S_ISLNK (st.st_mode))
    return write_link (self, folder, path, name, made, error);
  if (S_ISDIR (st.st_mode))
    return write_subfolder (self, folder, path, name, level, made, error);
  if (S_ISFIFO (st.st_mode))
    return leave_out (self, path, name, "was left out: it is a FIFO");
  if (S_ISSOCK (st.st_mode))
    return leave_out (self, path, name, "was left out: it is a socket");
  return leave_out (self, path, name, "was left out: it is a device");
}

/* A folder without anything that git can hold is left out, as git does; the top one gives the empty tree. */
static BjWriteResult
write_folder (BjWrite *self, int folder, const char *path, guint level, git_oid *id, GError **error)
{
  g_autoptr(GPtrArray) names = bj_tree_list (folder, NULL);
  g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tree_entry_free);

  if (names == NULL)
    return leave_out (self, path, "", "was left out: the folder could not be listed");
  for (guint i = 0; i < names->len; i++)
    if (write_name (self, folder, path, g_ptr_array_index (names, i), level, made, error) == BJ_WRITE_FAILED)
      return BJ_WRITE_FAILED;
  if (made->len == 0 && level > 1)
    return BJ_WRITE_LEFT_OUT;
  return bj_tree_put_entries (self->odb, made, id, error) ? BJ_WRITE_DONE : BJ_WRITE_FAILED;
}

/* write; fd 3: the folder, 4: for new objects, 5: objects that are there already */
gboolean
bj_tree_write (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (5, 4, error);
  g_autoptr(GByteArray) buffer = g_byte_array_new ();
  BjWrite self = { .odb = odb, .answer = answer, .buffer = buffer };
  char hex[GIT_OID_HEXSZ + 1];
  git_oid id;
  BjWriteResult result;

  if (odb == NULL)
    return FALSE;
  bj_tree_confine ((const int[]) { 3, 4, 5 }, (const gboolean[]) { FALSE, TRUE, FALSE }, 3);
  result = write_folder (&self, 3, "", 1, &id, error);
  if (result == BJ_WRITE_LEFT_OUT)
    return bj_error_set (error, BJ_ERROR_FAILED, "The project's folder cannot be read");
  if (result == BJ_WRITE_FAILED)
    return FALSE;
  git_oid_tostr (hex, sizeof hex, &id);
  bj_tree_answer_add (answer, "tree", "%s", hex);
  bj_tree_answer_add (answer, "files", "%" G_GUINT64_FORMAT, self.files);
  bj_tree_answer_add (answer, "bytes", "%" G_GUINT64_FORMAT, self.bytes);
  return TRUE;
}
