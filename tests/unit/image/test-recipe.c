/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-recipe.h"

#include <glib/gstdio.h>
#include <string.h>

#define GOOD \
  "[recipe]\nname=tiny\nos=Tiny 1\napi=1\n[bootstrap]\nsuite=bookworm\ncomponents=main contrib\nvariant=minbase\n" \
  "sources=deb http://deb.debian.org/debian bookworm main\npackages=git;g++;libc6-dev\n" \
  "[kernel]\npackage=linux-image-amd64\nmodules=virtio_blk;ext4\ncmdline=root=/dev/vda rw\n" \
  "[disk]\nsize-mib=512\nbuild-space-mib=1024\n[customize]\nscript=customize.sh\nmask=modprobe@drm.service\n" \
  "[smoke]\nscript=smoke.sh\nboot-timeout=60\ntimeout=30\n"

/* Each case replaces one piece of a good recipe; the message must hold all of the words. */
static const struct
{
  const char *from, *to;
  const char *words[3];
} cases[] = {
  { "name=tiny\n", "", { "[recipe]", "\"name\"" } },
  { "name=tiny", "name=../tiny", { "name", "must match" } },
  { "api=1", "api=one", { "[recipe] api", "number" } },
  { "api=1", "api=0", { "[recipe] api", "number from 1" } },
  { "api=1", "api=1\ndesktop=perhaps", { "[recipe] desktop", "true or false" } },
  { "[disk]", "[disks]", { "no group [disks]" } },
  { "size-mib=512", "size=512", { "no key \"size\"", "[disk]" } },
  { "size-mib=512", "size-mib=-1", { "size-mib", "number" } },
  { "size-mib=512", "size-mib=99999999999", { "size-mib", "number" } },
  { "packages=git;", "packages=git;--hook=x;", { "[bootstrap] packages", "--hook=x" } },
  { "packages=git;", "packages=git,evil;", { "[bootstrap] packages", "not allowed" } },
  { "packages=git;g++;libc6-dev", "packages=", { "[bootstrap] packages", "empty" } },
  { "suite=bookworm\n", "", { "[bootstrap]", "\"suite\"" } },
  { "suite=bookworm", "suite=-oDpkg", { "[bootstrap] suite", "not allowed" } },
  { "suite=bookworm", "suite=book worm", { "[bootstrap] suite", "not allowed" } },
  { "modules=virtio_blk;", "modules=../../x;", { "[kernel] modules", "not allowed" } },
  { "cmdline=root=/dev/vda rw", "cmdline=a'b", { "[kernel] cmdline", "not allowed" } },
  { "script=customize.sh", "script=/bin/sh", { "[customize] script", "in the recipe's folder" } },
  { "script=smoke.sh", "script=../smoke.sh", { "[smoke] script", "in the recipe's folder" } },
  { "mask=modprobe@drm.service", "mask=../x.service", { "[customize] mask", "not allowed" } },
  { "boot-timeout=60", "boot-timeout=0", { "boot-timeout", "number from 1" } },
  { "[smoke]\n", "[smoke\n", { "/r/recipe.ini" } },
  { "os=Tiny 1", "os=Tiny \\q", { "[recipe] os", "interpreted" } },
  { "modules=virtio_blk;", "modules=virtio\\qblk;", { "[kernel] modules" } },
  { "boot-timeout", "boot-\xedimeout", { "/r/recipe.ini", "not UTF-8" } },
};

static char *
replace (const char *text, const char *from, const char *to)
{
  g_auto(GStrv) parts = g_strsplit (text, from, 2);

  g_assert_nonnull (parts[1]);
  return g_strjoinv (to, parts);
}

static void
test_good (void)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjRecipe) recipe = bj_recipe_parse ("/r/recipe.ini", GOOD, strlen (GOOD), &error);

  g_assert_no_error (error);
  g_assert_cmpstr (recipe->dir, ==, "/r");
  g_assert_cmpstr (recipe->name, ==, "tiny");
  g_assert_cmpuint (recipe->disk_mib, ==, 512);
  g_assert_cmpuint (g_strv_length (recipe->packages), ==, 3);
  g_assert_cmpstr (recipe->packages[1], ==, "g++");
  g_assert_cmpstr (recipe->cmdline, ==, "root=/dev/vda rw");
  g_assert_cmpuint (g_strv_length (recipe->idle), ==, 0);
  g_assert_null (recipe->script);
  g_assert_false (recipe->desktop);
}

static void
test_desktop (void)
{
  g_autofree char *text = replace (GOOD, "api=1\n", "api=1\ndesktop=true\n");
  g_autoptr(GError) error = NULL;
  g_autoptr(BjRecipe) recipe = bj_recipe_parse ("/r/recipe.ini", text, strlen (text), &error);

  g_assert_no_error (error);
  g_assert_true (recipe->desktop);
}

static void
test_bad (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *text = replace (GOOD, cases[i].from, cases[i].to);
      g_autoptr(GError) error = NULL;

      g_test_message ("case %u", i);
      g_assert_null (bj_recipe_parse ("/r/recipe.ini", text, strlen (text), &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "/r/recipe.ini"));
      for (guint j = 0; j < 3 && cases[i].words[j] != NULL; j++)
        g_assert_nonnull (strstr (error->message, cases[i].words[j]));
    }
}

/* A recipe that makes its tree by itself needs no suite, but all the rest. */
static void
test_script (void)
{
  g_autofree char *text = replace (GOOD, "suite=bookworm\n", "script=make.sh\n");
  g_autoptr(GError) error = NULL;
  g_autoptr(BjRecipe) recipe = bj_recipe_parse ("/r/recipe.ini", text, strlen (text), &error);

  g_assert_no_error (error);
  g_assert_cmpstr (recipe->script, ==, "make.sh");
}

#define BASED "[recipe]\nname=based\nbase=tiny\ndesktop=true\n[bootstrap]\npackages=xterm\n[disk]\nsize-mib=900\n" \
              "[customize]\nscript=more.sh\n[smoke]\nscript=look.sh\n"

static BjRecipe *
parse_onto (const char *text, const char *base, GError **error)
{
  return bj_recipe_parse_onto ("/q/recipe.ini", text, strlen (text), "/r/recipe.ini", base, strlen (base), error);
}

/* What it does not say is the other's, lists add up, scripts are of both. */
static void
test_base (void)
{
  static const struct
  {
    const char *from, *to, *base_from, *base_to, *word;
  } wrong[] = {
    { "script=more.sh\n", "", "name", "name", "[customize] needs the key" },
    { "packages=xterm", "packages=a b", "name", "name", "/q/recipe.ini: [bootstrap] packages" },
    { "name", "name", "api=1\n", "", "/r/recipe.ini: [recipe] needs" },
    { "name", "name", "name=tiny\n", "name=tiny\nbase=other\n", "/r/recipe.ini: a recipe with" },
  };
  g_autoptr(GError) error = NULL;
  g_autoptr(BjRecipe) recipe = parse_onto (BASED, GOOD, &error);
  g_autofree char *packages = NULL;

  g_assert_no_error (error);
  packages = g_strjoinv (" ", recipe->packages);
  g_assert_cmpstr (packages, ==, "git g++ libc6-dev xterm");
  g_assert_cmpstr (recipe->name, ==, "based");
  g_assert_cmpstr (recipe->os, ==, "Tiny 1");
  g_assert_cmpuint (recipe->disk_mib, ==, 900);
  g_assert_cmpuint (recipe->space_mib, ==, 1024);
  g_assert_true (recipe->desktop);
  g_assert_cmpstr (recipe->dir, ==, "/q");
  g_assert_cmpstr (recipe->customize, ==, "more.sh");
  g_assert_cmpstr (recipe->base_dir, ==, "/r");
  g_assert_cmpstr (recipe->base_customize, ==, "customize.sh");
  g_assert_cmpstr (recipe->base_smoke, ==, "smoke.sh");
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autofree char *text = replace (BASED, wrong[i].from, wrong[i].to);
      g_autofree char *base = replace (GOOD, wrong[i].base_from, wrong[i].base_to);
      g_autoptr(GError) local = NULL;

      g_assert_null (parse_onto (text, base, &local));
      g_assert_error (local, BJ_ERROR, BJ_ERROR_INVALID);
      g_test_message ("%s", local->message);
      g_assert_nonnull (strstr (local->message, wrong[i].word));
    }
}

static void
test_load (void)
{
  const char *dirs[] = { "/nonexistent", g_getenv ("BELLJAR_RECIPES"), NULL };
  static const char *const missing[] = { "nothere", "", "..", "debian/../debian", "/etc" };
  g_autoptr(GError) error = NULL;
  g_autoptr(BjRecipe) recipe = bj_recipe_load (dirs, "debian", &error);

  g_assert_no_error (error);
  g_assert_cmpstr (recipe->os, ==, "Debian 12");
  for (guint i = 0; i < G_N_ELEMENTS (missing); i++)
    {
      g_autoptr(GError) local = NULL;

      g_assert_null (bj_recipe_load (dirs, missing[i], &local));
      g_assert_error (local, BJ_ERROR, BJ_ERROR_NOT_FOUND);
      g_assert_nonnull (strstr (local->message, "debian"));
    }
}

static void
test_load_other_name (void)
{
  g_autofree char *dir = g_dir_make_tmp ("belljar-recipe-XXXXXX", NULL);
  g_autofree char *folder = g_build_filename (dir, "other", NULL);
  g_autofree char *path = g_build_filename (folder, "recipe.ini", NULL);
  const char *dirs[] = { dir, NULL };
  g_autoptr(GError) error = NULL;

  g_assert_cmpint (g_mkdir (folder, 0755), ==, 0);
  g_assert_true (g_file_set_contents (path, GOOD, -1, NULL));
  g_assert_null (bj_recipe_load (dirs, "other", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "\"tiny\""));
  g_unlink (path);
  g_rmdir (folder);
  g_rmdir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/recipe/good", test_good);
  g_test_add_func ("/recipe/desktop", test_desktop);
  g_test_add_func ("/recipe/base", test_base);
  g_test_add_func ("/recipe/bad", test_bad);
  g_test_add_func ("/recipe/script", test_script);
  g_test_add_func ("/recipe/load", test_load);
  g_test_add_func ("/recipe/load-other-name", test_load_other_name);
  return g_test_run ();
}
