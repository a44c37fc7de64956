/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-image-info.h"
#include "bj-image-store.h"

G_BEGIN_DECLS

struct _BjImageStore
{
  GObject parent_instance;
  BjStore *store;
  BjEngine *engine; /* (nullable): in tests that boot nothing */
  char *dir;
  GStrv recipe_dirs;
  char *guest_dir;
  char *apt_dir;

  GMutex lock;       /* over busy */
  GHashTable *busy;  /* (element-type utf8 utf8): image → what is being done with it */
};

/** bj_image_store_claim: BJ_ERROR_BUSY if something is being done with the image; @what: "built", "frozen" … */
gboolean bj_image_store_claim (BjImageStore *self, const char *name, const char *what, GError **error);
void bj_image_store_release (BjImageStore *self, const char *name);
void bj_image_store_emit_changed (BjImageStore *self, const char *name);

/** bj_image_store_dup_row: @version: 0: newest. Returns: (transfer full): or BJ_ERROR_NOT_FOUND and what to do */
BjImageRow *bj_image_store_dup_row (BjImageStore *self, const char *name, guint version, GError **error);
char *bj_image_store_get_version_dir (BjImageStore *self, const char *name, guint version);
gboolean bj_image_store_put_state (BjImageStore *self, BjImageRow *row, const char *state, GError **error);

G_END_DECLS
