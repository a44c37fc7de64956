/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * The daemon's own side of a project's history: commits and the branch main. Only commits are parsed here, and only the daemon
 * writes them; no configuration, hook, filter or attribute is ever read.
 */

/** bj_project_git_init: Makes a bare repository at @path, whose folder nobody else may be able to change */
gboolean bj_project_git_init (const char *path, GError **error);

/** bj_project_git_head: Returns: (transfer full) (nullable): id of the newest commit; %NULL without error when there is none */
char *bj_project_git_head (int repo, char **tree, GError **error);

/**
 * bj_project_git_commit:
 * @name: of author and committer; their address is NAME@belljar.invalid
 * @trailers: (nullable): "Key: value"
 *
 * Returns: (transfer full): the id of a commit of @tree on top of main, which now points to it
 */
char *bj_project_git_commit (int repo, const char *tree, const char *name, const char *message,
                             const char *const *trailers, GError **error);

/** bj_project_git_log: Returns: (transfer full): see bj_project_store_log() */
JsonArray *bj_project_git_log (int repo, guint count, GError **error);

/** bj_project_git_compose: Pure. @message with @trailers below; no line of the message can pass for one of Belljar's trailers. */
char *bj_project_git_compose (const char *message, const char *const *trailers);

/** bj_project_git_find_trailer: Pure. Returns: (transfer full): the value in the last paragraph, "" if there is none */
char *bj_project_git_find_trailer (const char *message, const char *key);

G_END_DECLS
