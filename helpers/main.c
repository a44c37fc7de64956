/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree.h"

#include "bj-fd.h"

#include <stdio.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options (void);

/* The sandbox has neither the environment nor the /proc that the leak checker wants. */
const char *
__asan_default_options (void)
{
  return "detect_leaks=0";
}
#endif

typedef gboolean (*BjTreeCommand) (const char *const *args, BjTreeAnswer *answer, GError **error);

static const struct
{
  const char *name;
  int n_args; /* -1: any number above one */
  gboolean raw; /* standard output belongs to the command itself */
  BjTreeCommand run;
} commands[] = {
  { "own", 4, FALSE, bj_tree_own },         { "write", 0, FALSE, bj_tree_write },   { "diff", -1, FALSE, bj_tree_diff },
  { "protect", -1, FALSE, bj_tree_protect }, { "export", 1, FALSE, bj_tree_export }, { "blob", 3, TRUE, bj_tree_blob },
  { "copy", 3, FALSE, bj_tree_copy },        { "status", 2, FALSE, bj_tree_status }, { "patch", 4, TRUE, bj_tree_patch },
};

/* Nothing of the machine's or a person's git configuration counts here. */
static gboolean
start_git (GError **error)
{
  if (git_libgit2_init () < 0)
    return bj_tree_git_error (error, "Starting libgit2");
  for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
    git_libgit2_opts (GIT_OPT_SET_SEARCH_PATH, level, "");
  git_libgit2_opts (GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
  git_libgit2_opts (GIT_OPT_ENABLE_FSYNC_GITDIR, 0);
  return TRUE;
}

static gboolean
run (int argc, char **argv, GError **error)
{
  g_auto(BjTreeAnswer) answer = { 0 };

  bj_tree_answer_init (&answer);
  for (guint i = 0; argc >= 2 && i < G_N_ELEMENTS (commands); i++)
    {
      if (strcmp (argv[1], commands[i].name) != 0)
        continue;
      if (commands[i].n_args >= 0 ? argc - 2 != commands[i].n_args : argc < 4)
        break;
      return start_git (error) && commands[i].run ((const char *const *) argv + 2, &answer, error)
             && (commands[i].raw || bj_tree_answer_print (&answer, error));
    }
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
                       "belljar-tree is started by belljard: own, write, diff, status, patch, protect, export, blob or copy");
  return FALSE;
}

int
main (int argc, char **argv)
{
  g_autoptr(GError) error = NULL;

  if (run (argc, argv, &error))
    return 0;
  fprintf (stderr, "%s\n", error->message);
  return 1;
}
