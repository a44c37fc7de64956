/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A virtiofsd of ours, in a user namespace and a mount namespace of its own. */
typedef struct _BjShare BjShare;

typedef struct
{
  int dir_fd;         /* the folder to share */
  uid_t uid;          /* the guest's root is this user on the host */
  gid_t gid;
  guint slot;         /* the guest's other users are BJ_SHARE_UID_BASE + slot * 65536 + id */
  uid_t machine_uid;  /* may connect to the socket */
  const char *socket; /* path of a socket to be made */
  const char *log;    /* path of a file for what virtiofsd says */
} BjShareSpec;

/** bj_share_start: Returns: (transfer full): a share that listens, or %NULL */
BjShare *bj_share_start (const BjShareSpec *spec, GCancellable *cancellable, GError **error);

/**
 * bj_share_stop:
 * @self: (transfer full) (nullable): %NULL for one that an earlier daemon started: it is found by its socket
 * @socket: path of its socket
 *
 * When this returns, nothing of it runs or is mounted.
 */
gboolean bj_share_stop (BjShare *self, const char *socket, GError **error);

/** bj_share_free: Forgets it; it runs on. */
void bj_share_free (BjShare *self);

G_END_DECLS
