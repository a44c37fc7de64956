/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef void (*BjSpawnLine) (const char *line, gpointer user_data);

/* One program to run to its end. Fields that are zero mean: default. */
typedef struct
{
  const char *const *argv;    /* argv[0] is looked up in PATH */
  const char *const *environ; /* (nullable): NULL inherits */
  GBytes *input;              /* (nullable): standard input */
  guint timeout_s;            /* 0: no deadline; else SIGKILL to its process group and an error */
  gsize max_output;           /* 0: 1 MiB; more output is an error */
  int pass_fd[4];             /* fds that become 3, 4, 5, 6 in the child; 0 ends the list; not closed here */
  BjSpawnLine on_line;        /* (nullable): each line of standard error as it comes, made valid UTF-8 */
  gpointer user_data;
  uid_t uid; /* with set_uid: run with this uid and gid, without supplementary groups */
  gid_t gid;
  gboolean set_uid;
} BjSpawn;

/**
 * bj_spawn_run:
 * @spawn: what to run
 * @output: (out) (optional) (transfer full): standard output
 * @cancellable: (nullable): kills the process group
 * @error: return location; a program that fails gives BJ_ERROR_FAILED with the end of its standard error
 *
 * Blocks until the program ended; for worker threads. The program gets a process group of its own and does not
 * outlive the call.
 *
 * Returns: whether it exited with 0
 */
gboolean bj_spawn_run (const BjSpawn *spawn, GBytes **output, GCancellable *cancellable, GError **error);

G_END_DECLS
