/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli-copy-flow.h"
#include "bj-cli-status.h"
#include "bj-cli.h"

G_BEGIN_DECLS

/* One copy, while it goes on. */
typedef struct
{
  BjCli *cli;
  BjDBusSession *session; /* (owned) */
  const char *user;       /* (nullable): in the machine */
  BjStatus *status;       /* (owned) */
  BjFlow *flow;           /* (owned) (nullable): while bytes flow */
  GSubprocess *child;     /* (owned) (nullable): the program at our end of it */
  guint64 bytes;          /* that went through */
  gint64 begun;
  gboolean interrupted;
  guint signals[2];       /* sources */
} BjCopy;

/* How the two ends of a transfer ended. */
typedef struct
{
  int guest_code;    /* exit code of the command in the machine */
  char *guest_text;  /* (owned): the first line it complained with */
  int child_code;    /* of the program here; -1: a signal */
  char *child_text;  /* (owned): the first line it complained with */
  char *child_facts; /* (owned): what it printed */
  gboolean broken;   /* the reading end went first */
} BjCopyEnds;

void bj_copy_ends_clear (BjCopyEnds *ends);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjCopyEnds, bj_copy_ends_clear)

/**
 * bj_copy_transfer:
 * @guest: command in the machine
 * @local: command here
 * @folder: (nullable): where that one runs
 * @out: the machine's standard output goes to the command here; else the other way round
 * @ends: (out): what came of both; set if it returns %TRUE
 *
 * Runs both to their ends, with Ctrl-C as %FALSE and BJ_ERROR_CANCELLED.
 */
gboolean bj_copy_transfer (BjCopy *self, const char *const *guest, const char *const *local, const char *folder, gboolean out,
                           BjCopyEnds *ends, GError **error);

/**
 * bj_copy_run_small:
 * @guest: command in the machine
 * @text: (out) (optional) (transfer full): the first line it complained with
 *
 * Returns: its exit code, -1 with @error
 */
int bj_copy_run_small (BjCopy *self, const char *const *guest, char **text, GError **error);

G_END_DECLS
