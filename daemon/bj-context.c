/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-context.h"

#include "bj-config-build.h"

/* Where things lie in a build folder (B) or in the source that it was made of (S). */
static const struct
{
  const char *name;
  char where;
  const char *folder;
} in_build[] = {
  { "belljar-agent", 'B', "agent" }, { "belljar-gateway", 'B', "gateway" }, { "belljar-tree", 'B', "helpers" },
  { "guest", 'B', "guest" },         { "agent", 'S', "data/agent" },        { "images", 'S', "images" },
};

/* A program that was installed never lies below a folder with a build.ninja. */
char *
bj_context_find_build_dir (void)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = self != NULL ? g_path_get_dirname (self) : NULL;
  g_autofree char *build = folder != NULL ? g_path_get_dirname (folder) : NULL;
  g_autofree char *mark = build != NULL ? g_build_filename (build, "build.ninja", NULL) : NULL;

  if (mark == NULL || !g_file_test (mark, G_FILE_TEST_IS_REGULAR))
    return NULL;
  return g_steal_pointer (&build);
}

static char *
find_in_build (BjContext *context, const char *name)
{
  for (guint i = 0; context->build_dir != NULL && i < G_N_ELEMENTS (in_build); i++)
    if (g_str_equal (in_build[i].name, name))
      return g_build_filename (in_build[i].where == 'B' ? context->build_dir : BJ_SOURCE_ROOT, in_build[i].folder, NULL);
  return NULL;
}

char *
bj_context_dup_program (BjContext *context, const char *name)
{
  g_autofree char *folder = find_in_build (context, name);

  return g_build_filename (folder != NULL ? folder : BJ_LIBEXECDIR, name, NULL);
}

char *
bj_context_dup_data (BjContext *context, const char *name)
{
  char *folder = find_in_build (context, name);

  return folder != NULL ? folder : g_build_filename (BJ_PKGDATADIR, name, NULL);
}
