/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * bj_project_default_protect:
 * @check_command: (nullable): a check as a person wrote it
 *
 * Pure. What a check rests on even if nobody declared it: the usual test folders and files, belljar.ini, files that the
 * command names, and files that the tools in it read by themselves.
 *
 * Returns: (transfer full): patterns for bj_project_store_restore_protected(), without doubles
 */
GStrv bj_project_default_protect (const char *check_command);

/**
 * bj_project_never_added:
 *
 * Pure. What a session may not add, whatever the check is, for the tools that a script may start: their settings, what is
 * left from building, and names that stand before a runner's own modules.
 *
 * Returns: (transfer full): "+PATTERN" and "python:FOLDER" for the helper's protect
 */
GStrv bj_project_never_added (void);

G_END_DECLS
