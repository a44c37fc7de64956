/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** bj_tree_name_is_dot_git: whether a folder entry of this name is a repository for a git on this system (".git" in any case) */
gboolean bj_tree_name_is_dot_git (const char *name);

/**
 * bj_tree_name_is_refused: whether git refuses the name in a tree: "", ".", "..", a slash, and what some file system takes for
 * ".git": trailing dots and spaces, an NTFS stream or short name, code points that HFS+ ignores
 */
gboolean bj_tree_name_is_refused (const char *name);

/**
 * bj_tree_name_encode:
 * @encoded: (out): whether the name had to be percent-escaped: it is not UTF-8 or has control characters
 *
 * Returns: (transfer full): the name in one printable line of UTF-8; never empty
 */
char *bj_tree_name_encode (const char *name, gboolean *encoded);

/** bj_tree_name_show: Returns: (transfer full): the name for a sentence: all but plain characters percent-escaped, cut at 200 bytes */
char *bj_tree_name_show (const char *name);

G_END_DECLS
