/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_worker_run:
 * @task: (transfer none): a task whose callback runs in the context it was made in
 * @func: blocking work
 *
 * Like g_task_run_in_thread(), but on a thread of its own: GLib's pool has ten threads, and a session blocks one
 * for as long as it lives.
 */
void bj_worker_run (GTask *task, GTaskThreadFunc func);

G_END_DECLS
