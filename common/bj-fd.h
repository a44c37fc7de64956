/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>
#include <gio/gunixfdlist.h>
#include <unistd.h>

G_BEGIN_DECLS

/* An owned file descriptor: g_auto(BjFd) fd = open (…); g_steal_fd (&fd) hands it on. */
typedef int BjFd;

static inline void
bj_fd_clear (BjFd *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjFd, bj_fd_clear)

/**
 * bj_fd_seal_bytes:
 * @name: shown in /proc, for people
 * @bytes: the content
 * @error: return location for an error
 *
 * Returns: a memfd that nobody can change any more, or -1; owned by the caller
 */
int bj_fd_seal_bytes (const char *name, GBytes *bytes, GError **error);

/**
 * bj_fd_write_all:
 * @fd: where to
 * @data: (array length=length): what
 * @length: bytes
 * @error: return location for an error
 *
 * Returns: whether all of it was written
 */
gboolean bj_fd_write_all (int fd, gconstpointer data, gsize length, GError **error);

/**
 * bj_fd_read_to_end:
 * @fd: where from
 * @max: more than this many bytes is an error (BJ_ERROR_LIMIT)
 * @error: return location for an error
 *
 * Returns: (transfer full): what was there, or %NULL
 */
GBytes *bj_fd_read_to_end (int fd, gsize max, GError **error);

/**
 * bj_fd_take:
 * @fds: (nullable): what came with a message
 * @handle: which of them, as the message says; the sender's choice, so that it may be none
 *
 * Returns: a duplicate owned by the caller, or -1 with BJ_ERROR_INVALID
 */
int bj_fd_take (GUnixFDList *fds, gint32 handle, GError **error);

/**
 * bj_fd_set_io_error:
 * @error: (out) (optional): where to put it
 * @saved_errno: errno as it was
 * @format: printf format of what was tried; ": " and the system's text follow
 *
 * Returns: always %FALSE
 */
gboolean bj_fd_set_io_error (GError **error, int saved_errno, const char *format, ...) G_GNUC_PRINTF (3, 4);

G_END_DECLS
