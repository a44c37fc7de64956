/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * Where something that is copied comes to lie here: it is unpacked into a fresh folder beside that place first, so that a copy
 * that breaks off leaves nothing. What is in the fresh folder was written by a guest: no link of it is followed, and none in
 * what an earlier copy left.
 */
typedef struct _BjPlace BjPlace;

/**
 * bj_place_new:
 * @destination: as a person wrote it: an existing folder or one that ends in "/" gets @name in it, else it becomes @destination
 * @name: (nullable): the last part of the source; %NULL when its contents go into @destination
 *
 * Makes the fresh folder. Returns: (transfer full): %NULL with @error
 */
BjPlace *bj_place_new (const char *destination, const char *name, GError **error);
/** bj_place_free: Removes the fresh folder with what is still in it. */
void bj_place_free (BjPlace *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjPlace, bj_place_free)

/** bj_place_get_folder: Returns: (transfer none): path of the fresh folder */
const char *bj_place_get_folder (BjPlace *self);

/**
 * bj_place_finish:
 *
 * Makes folders that are missing and moves what was unpacked where it belongs. A folder that is there already is added to, a file
 * is replaced; what is in the way is found out before anything is moved.
 */
gboolean bj_place_finish (BjPlace *self, GError **error);

/** bj_place_split: Cuts trailing slashes. @folder, @name: (out) (transfer full): @name %NULL for "/", "." and ".." */
void bj_place_split (const char *path, char **folder, char **name);

G_END_DECLS
