/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-error.h"

#include <errno.h>

#define FILE_SECONDS 120

/* The number is the guest's: only what it stands for is used. */
static gboolean
set_file_error (int guest_errno, const char *verb, GError **error)
{
  switch (guest_errno)
    {
    case ENOENT:
    case ENOTDIR:
      return bj_error_set (error, BJ_ERROR_NOT_FOUND, "%s in the guest: there is no such file or folder", verb);
    case EISDIR:
      return bj_error_set (error, BJ_ERROR_INVALID, "%s in the guest: it is a folder", verb);
    case ENXIO:
    case EINVAL:
      return bj_error_set (error, BJ_ERROR_INVALID, "%s in the guest: it is no regular file", verb);
    case ENOSPC:
      return bj_error_set (error, BJ_ERROR_NO_SPACE, "%s in the guest: no space is left", verb);
    case EDQUOT:
      return bj_error_set (error, BJ_ERROR_QUOTA, "%s in the guest: the quota is used up", verb);
    default:
      return bj_error_set (error, BJ_ERROR_FAILED, "%s in the guest: %s", verb, g_strerror (guest_errno));
    }
}

static GBytes *
read_chunk (BjGuest *self, const char *path, guint64 offset, gsize size, guint64 *total, GCancellable *cancellable,
            GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  bj_guest_request_add (request, "path", path);
  bj_guest_request_add_number (request, "offset", offset);
  bj_guest_request_add_number (request, "cap", size);
  if (!bj_guest_ask (self, "read", request, NULL, FILE_SECONDS, &answer, &output, cancellable, error))
    return NULL;
  if (answer.exit != 0)
    {
      set_file_error (answer.exit, "Reading a file", error);
      return NULL;
    }
  if (answer.lengths[0] > size)
    {
      bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest sent more of a file than it was asked for");
      return NULL;
    }
  *total = answer.out_total;
  return g_bytes_new (answer.pieces[0], answer.lengths[0]);
}

GBytes *
bj_guest_read_file (BjGuest *self, const char *path, guint64 offset, gsize limit, guint64 *size,
                    GCancellable *cancellable, GError **error)
{
  g_autoptr(GByteArray) all = g_byte_array_new ();
  guint64 total = 0;

  if (offset > G_MAXINT64 - BJ_RUN_KEEP_MAX - limit)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The offset is beyond the end of any file");
      return NULL;
    }
  do
    {
      gsize want = MIN (limit - all->len, BJ_RUN_KEEP_MAX);
      g_autoptr(GBytes) chunk = read_chunk (self, path, offset + all->len, want, &total, cancellable, error);
      gsize got;

      if (chunk == NULL)
        return NULL;
      got = g_bytes_get_size (chunk);
      g_byte_array_append (all, g_bytes_get_data (chunk, NULL), (guint) got);
      if (got < want)
        break;
    }
  while (all->len < limit);
  if (size != NULL)
    *size = total;
  return g_byte_array_free_to_bytes (g_steal_pointer (&all));
}

gboolean
bj_guest_write_file (BjGuest *self, const char *path, GBytes *data, guint mode, gboolean append,
                     GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  bj_guest_request_add (request, "path", path);
  bj_guest_request_add_number (request, "mode", mode & (BJ_GUEST_MODE_FORCE | 07777));
  bj_guest_request_add (request, "append", append ? "1" : "0");
  if (!bj_guest_ask (self, "write", request, data, FILE_SECONDS, &answer, &output, cancellable, error))
    return FALSE;
  return answer.exit == 0 || set_file_error (answer.exit, "Writing a file", error);
}
