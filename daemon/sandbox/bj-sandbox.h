/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * Command lines for processes that are not trusted: bubblewrap, every namespace unshared, no network, no home, an empty
 * environment, a uid of its own. Used for the agent and for the helpers that parse what a guest wrote.
 */
typedef struct
{
  uid_t uid; /* only when the daemon is root; otherwise the daemon's own */
  gid_t gid;
  const char *program;           /* absolute path of the program; its folder is visible read-only */
  const char *const *arguments;  /* (nullable): without argv[0] */
  const char *const *read_only;  /* (nullable): more host paths that are visible read-only */
  const char *const *environ;    /* (nullable): NAME=VALUE; nothing else is in the environment */
  gboolean keep_root_for_chown;  /* CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER on the fds it is given, as root; for ownership */
} BjSandbox;

/** bj_sandbox_dup_argv: Returns: (transfer full): argv for bj_spawn_run() or GSubprocess; fds are passed beside it */
GStrv bj_sandbox_dup_argv (const BjSandbox *sandbox);

/**
 * bj_sandbox_open_folder:
 * @folder: an fd of a folder
 * @writable: whether files may be made, changed and removed through it
 *
 * A folder's fd is a door: ".." leads out of it and past the sandbox. As root this gives a detached mount of the folder instead,
 * whose top is the end of the world, without set-uid programs and devices. Otherwise it is a copy of @folder.
 *
 * Returns: an fd to pass on, owned by the caller, or -1
 */
int bj_sandbox_open_folder (int folder, gboolean writable, GError **error);

G_END_DECLS
