/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* How an image is made: recipe.ini of a recipe folder, checked. Lists are never %NULL. */
typedef struct
{
  char *dir; /* the recipe's folder */
  char *base;           /* (nullable): the recipe it builds on: what it does not say is as there, lists add to those there */
  char *base_dir;       /* (nullable): that one's folder */
  char *base_customize; /* (nullable): its scripts, which run before this one's */
  char *base_smoke;
  char *name;
  char *os;   /* for people, for example "Debian 12" */
  guint api;  /* of the contract between image and daemon */
  gboolean desktop; /* there are windows and a pointer: its machines get a tablet */

  char *script;      /* (nullable): makes the tree itself; without it mmdebstrap does, with the keys down to include */
  char *suite;
  char *components;  /* separated by spaces */
  char *variant;
  GStrv sources;     /* one-line apt sources, used when the host has none for the suite */
  GStrv packages;
  GStrv exclude;     /* dpkg path-exclude */
  GStrv include;     /* dpkg path-include */

  char *kernel_package;
  GStrv modules;     /* for the initrd, in order; what they depend on is found */
  char *cmdline;

  guint disk_mib;    /* as the guest sees it */
  guint space_mib;   /* free space a build needs on the host */

  char *customize;   /* script in dir, runs on the tree */
  GStrv mask;        /* units */
  GStrv idle;        /* TARGET.wants/UNIT that are not started at boot */

  char *smoke;       /* script in dir, runs in the booted guest */
  guint boot_timeout_s;
  guint smoke_timeout_s;
} BjRecipe;

void bj_recipe_free (BjRecipe *recipe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjRecipe, bj_recipe_free)

/**
 * bj_recipe_parse:
 * @path: where @data was read, for messages; its folder becomes the recipe's
 *
 * Returns: (transfer full): the recipe, or %NULL with BJ_ERROR_INVALID that names file, group and key
 */
BjRecipe *bj_recipe_parse (const char *path, const char *data, gsize length, GError **error);

/** bj_recipe_parse_onto: Likewise, for a recipe with [recipe] base; the other must be whole without this one. */
BjRecipe *bj_recipe_parse_onto (const char *path, const char *data, gsize length, const char *base_path, const char *base_data,
                                gsize base_length, GError **error);

/**
 * bj_recipe_load:
 * @dirs: folders that hold recipe folders, searched in order
 * @name: from anywhere
 *
 * Returns: (transfer full): the recipe; BJ_ERROR_NOT_FOUND lists those there are
 */
BjRecipe *bj_recipe_load (const char *const *dirs, const char *name, GError **error);

G_END_DECLS
