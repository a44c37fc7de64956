/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-libvirt.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * QEMU's monitor, through libvirt, for what libvirt has no call for. QEMU may have been taken over by its guest: its answers
 * are sized and shallow, or they are an error.
 */

/**
 * bj_monitor_call:
 * @command: for example "query-migrate"
 * @arguments: (transfer full) (nullable)
 * @fd: handed over with the command, or -1; not owned
 *
 * Blocks. Returns: (transfer full): the answer's "return", or %NULL with an error that has QEMU's own words
 */
JsonNode *bj_monitor_call (virDomainPtr domain, const char *command, JsonObject *arguments, int fd, GError **error);

/** bj_monitor_do: Likewise, for a command whose answer says nothing more. */
gboolean bj_monitor_do (virDomainPtr domain, const char *command, JsonObject *arguments, GError **error);

/**
 * bj_monitor_save_state:
 * @fd: a file of its own
 *
 * Writes the paused machine's devices, without its memory, which must be a shared file. Deadline: one minute.
 */
gboolean bj_monitor_save_state (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error);
/**
 * bj_monitor_save_machine:
 * @fd: an empty file
 *
 * Writes the paused machine with all its memory. Deadline: ten minutes.
 */
gboolean bj_monitor_save_machine (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error);
/** bj_monitor_load_machine: Of a machine that was started with -incoming defer. It is paused afterwards. */
gboolean bj_monitor_load_machine (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error);
/** bj_monitor_load_state: Of a machine that was started with -incoming defer. It is paused afterwards. */
gboolean bj_monitor_load_state (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error);

G_END_DECLS
