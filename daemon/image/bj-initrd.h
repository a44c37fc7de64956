/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* A cpio archive ("newc") in memory: same input, same bytes. */
typedef struct _BjCpio BjCpio;

BjCpio *bj_cpio_new (void);
void bj_cpio_free (BjCpio *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjCpio, bj_cpio_free)
/** bj_cpio_add: @name: without a leading slash; @mode: with the file type; owned by root, dated 1970 */
void bj_cpio_add (BjCpio *self, const char *name, guint mode, gconstpointer data, gsize length);
/** bj_cpio_finish: Returns: (transfer full): the whole archive; @self is empty then */
GBytes *bj_cpio_finish (BjCpio *self);

/**
 * bj_initrd_parse_modprobe:
 * @output: of modprobe --show-depends
 * @paths: (element-type filename): gets each module file that it does not have yet
 */
void bj_initrd_parse_modprobe (const char *output, GPtrArray *paths);

/**
 * bj_initrd_write:
 * @path: the new file
 * @root: tree with the kernel's modules
 * @release: the kernel's version, as modules' folder is called
 * @modules: names, in order; what they depend on comes before them
 * @init: program that becomes /init; it reads /modules
 */
gboolean bj_initrd_write (const char *path, const char *root, const char *release, const char *const *modules,
                          const char *init, GCancellable *cancellable, GError **error);

G_END_DECLS
