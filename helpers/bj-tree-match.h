/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/*
 * Patterns for protected files. A pattern with a slash inside, or without any wildcard, is relative to the top ("check.py",
 * "a/b*.txt"); a bare glob ("test_*.py") and a bare folder ("tests/") match at any depth. "**" stands for any folders. What matches is
 * protected with everything below it.
 */
typedef struct _BjTreeMatch BjTreeMatch;

/** bj_tree_match_new: @patterns: %NULL-terminated; those that are empty, too long or have too many wildcards are not used */
BjTreeMatch *bj_tree_match_new (const char *const *patterns);
void bj_tree_match_free (BjTreeMatch *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjTreeMatch, bj_tree_match_free)
/** bj_tree_match_path: @path: relative, raw bytes; @is_folder: whether it is one in either tree */
gboolean bj_tree_match_path (BjTreeMatch *self, const char *path, gboolean is_folder);
/** bj_tree_protect_match_all: what protect's patterns name, whether it may only not be added or not change at all */
BjTreeMatch *bj_tree_protect_match_all (const char *const *patterns);

G_END_DECLS
