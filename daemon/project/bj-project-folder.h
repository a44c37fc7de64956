/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * A project's folder belongs to its owner, who can rename and replace what is in it at any moment. So everything goes through
 * descriptors that were checked once.
 */

/** bj_project_folder_open: beneath @parent, no links; @uid: who must own it. Returns: an fd for reading, or -1 */
int bj_project_folder_open (int parent, const char *path, uid_t uid, GError **error);

/** bj_project_folder_open_repo: NAME/repo.git of @projects; must be ours and closed to everybody else */
int bj_project_folder_open_repo (int projects, const char *name, GError **error);

/** bj_project_folder_make: Makes @name in @parent with exactly @mode and opens it. Returns: fd or -1 */
int bj_project_folder_make (int parent, const char *name, mode_t mode, GError **error);

/** bj_project_folder_list: Returns: (transfer full): names in @folder, without "." and ".." */
GPtrArray *bj_project_folder_list (int folder, GError **error);

/**
 * bj_project_folder_remove:
 * Removes @name in @parent with all that is in it, however deep and whatever a guest put there; links are not followed.
 * Nothing of this name is no error.
 */
gboolean bj_project_folder_remove (int parent, const char *name, GError **error);

G_END_DECLS
