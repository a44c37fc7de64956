/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Names under which a test's runner takes a file of the project instead of its own or instead of the test. Pure. */

/** bj_tree_module_is_file: "unittest.py" in a folder that Python looks through stands before its own module of that name */
gboolean bj_tree_module_is_file (const char *name);
/** bj_tree_module_is_folder: the same for a folder, if there is an __init__ in it, and for a link to one */
gboolean bj_tree_module_is_folder (const char *name);
/** bj_tree_module_is_product: could have been made from a source of the same name: "test_x" and "test_x.o" from "test_x.c" */
gboolean bj_tree_module_is_product (const char *name);

G_END_DECLS
