/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-engine.h"
#include "bj-progress.h"
#include "bj-recipe.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* One build of one version, in a folder of its own. Everything blocks; whoever calls removes the folder on failure. */
typedef struct
{
  const BjRecipe *recipe;
  guint version;
  const char *mirror;    /* (nullable) */
  const char *guest_dir;
  const char *apt_dir;   /* the host's /etc/apt */
  const char *dir;       /* absolute, empty; gets disk.qcow2 vmlinuz initrd build.log */
  BjEngine *engine;      /* for the smoke boot */
  guint slot;
} BjImageBuild;

/** bj_image_build_check_space: BJ_ERROR_NO_SPACE that says how much is needed and how much is free in @dir */
gboolean bj_image_build_check_space (const BjRecipe *recipe, const char *dir, GError **error);
gboolean bj_image_build_run (const BjImageBuild *build, BjProgress *progress, GCancellable *cancellable,
                             GError **error);

G_END_DECLS
