/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-capture.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * The channel into one guest: qemu-guest-agent through libvirt, and in the guest the small program
 * /usr/lib/belljar/run (guest/), which caps output, enforces timeouts and kills whole process trees, so that neither the
 * agent's nor our memory grows. What comes back is bytes a hostile guest chose: sizes and framing are checked.
 * Every function blocks (worker threads only), takes a deadline from its arguments, may be called from several threads
 * at once, and fails with BJ_ERROR_GUEST_UNREACHABLE (the message says which layer: machine gone, machine paused, agent
 * does not answer, answer malformed) or BJ_ERROR_CANCELLED.
 */
typedef struct _BjGuest BjGuest;

BjGuest *bj_guest_ref (BjGuest *self);
void bj_guest_unref (BjGuest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjGuest, bj_guest_unref)

/* What to run. Strings are bytes, not necessarily UTF-8. */
typedef struct
{
  const char *const *argv;    /* argv[0] absolute or found in the guest's PATH */
  const char *cwd;            /* (nullable): default the user's home */
  const char *const *environ; /* (nullable): NAME=VALUE, added to a clean environment */
  const char *user;           /* (nullable): default root */
  GBytes *input;              /* (nullable): standard input, any size up to 64 MiB; NULL means /dev/null */
  guint timeout_s;            /* 0: the longest there is, one day */
  gsize cap;                  /* bytes kept of each stream, half head and half tail; 0: 256 KiB; at most 1 MiB */
  gboolean no_new_privileges; /* sudo and setuid programs have no effect; for checks */
} BjExec;

typedef struct
{
  int exit;   /* exit code, -1 if it did not exit */
  int signal; /* signal that ended it, 0 if none */
  gboolean timed_out;
  double duration_s;  /* as measured in the guest */
  GBytes *out;        /* (owned): standard output, head and tail */
  GBytes *err;        /* (owned) */
  guint64 out_total;  /* bytes printed, kept or not */
  guint64 err_total;
  char *out_sha256;   /* (owned): of everything printed, as the guest's side computed it, lower-case hex */
  gboolean truncated; /* either stream */
  gboolean sent;      /* also set on failure: the guest was given the command, so that it may have run */
} BjExecResult;

void bj_exec_result_clear (BjExecResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjExecResult, bj_exec_result_clear)

/** bj_guest_exec: Runs a command to its end. A command that fails or times out is a result, not an error. */
gboolean bj_guest_exec (BjGuest *self, const BjExec *exec, BjExecResult *result, GCancellable *cancellable,
                        GError **error);

/**
 * bj_guest_exec_stream:
 * @in: fd of standard input or -1; goes in as the command reads it, any size, flat memory. Where there are only the agent's
 *   ways: at most 64 MiB, read to its end first
 * @out: fd that gets standard output as it comes, any size, flat memory on both sides; -1 discards
 * @err: likewise
 * @result: (out): counts and digest; its out and err are empty
 *
 * A reader that stops reading stops the command, not the daemon. Not owned: the fds stay the caller's.
 */
gboolean bj_guest_exec_stream (BjGuest *self, const BjExec *exec, int in, int out, int err, BjExecResult *result,
                               GCancellable *cancellable, GError **error);

/* Background commands. Output of both streams goes into one ring of 1 MiB in the guest; the oldest is dropped. */
typedef struct
{
  gboolean running;
  int exit;
  int signal;
  GBytes *output;  /* (owned): new since the last poll, at most 256 KiB */
  guint64 dropped; /* bytes lost since the last poll */
} BjPollResult;

void bj_poll_result_clear (BjPollResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjPollResult, bj_poll_result_clear)

/** bj_guest_start: @sent: (out): also set on failure: the guest was given the command, so that it may have run */
gboolean bj_guest_start (BjGuest *self, const BjExec *exec, guint *id, gboolean *sent, GCancellable *cancellable,
                         GError **error);
gboolean bj_guest_poll (BjGuest *self, guint id, guint wait_s, BjPollResult *result, GCancellable *cancellable,
                        GError **error);
gboolean bj_guest_send (BjGuest *self, guint id, GBytes *data, GCancellable *cancellable, GError **error);
gboolean bj_guest_kill (BjGuest *self, guint id, GCancellable *cancellable, GError **error);

/** bj_guest_read_file: @size gets the file's whole size. BJ_ERROR_NOT_FOUND, BJ_ERROR_INVALID (a folder, a device). */
GBytes *bj_guest_read_file (BjGuest *self, const char *path, guint64 offset, gsize limit, guint64 *size,
                            GCancellable *cancellable, GError **error);
/* A file that is there already keeps its permissions, unless this is added to the mode. */
#define BJ_GUEST_MODE_FORCE 010000u
/** bj_guest_write_file: Replaces or appends; makes no folders. */
gboolean bj_guest_write_file (BjGuest *self, const char *path, GBytes *data, guint mode, gboolean append,
                              GCancellable *cancellable, GError **error);

G_END_DECLS
