/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-call.h"

G_BEGIN_DECLS

/** bj_disk_use_list: A BjCallFunc: what the state folder @data (a path) uses, for Manager.DiskUsage. Blocks. */
gboolean bj_disk_use_list (gpointer data, GVariant **reply, GError **error);

G_END_DECLS
