/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <git2/sys/repository.h>
#include <string.h>

#define CONTEXT_LINES 3
#define PATCH_MAX (16 * 1024 * 1024)

/* A patch that is being written. */
typedef struct
{
  GByteArray *text;
  gsize max;
} BjPatch;

/* Returns: not 0 when there is no room for more, which ends the writing */
static int
on_line (const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *user_data)
{
  BjPatch *self = user_data;
  gsize room = self->max - self->text->len;
  gboolean marked = line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION
                    || line->origin == GIT_DIFF_LINE_DELETION;

  if (marked && room > 0)
    {
      g_byte_array_append (self->text, (const guint8 *) &line->origin, 1);
      room--;
    }
  g_byte_array_append (self->text, (const guint8 *) line->content, (guint) MIN (room, line->content_len));
  return self->text->len >= self->max;
}

static gboolean
print (GByteArray *text, GError **error)
{
  g_autofree char *head = g_strdup_printf ("blob %u\n", text->len);

  return bj_fd_write_all (STDOUT_FILENO, head, strlen (head), error)
         && bj_fd_write_all (STDOUT_FILENO, (const char *) text->data, text->len, error);
}

/* patch OLD NEW MAX PATH; fd 3: the objects, 4: those of NEW that are not among them; PATH: "" for all */
gboolean
bj_tree_patch (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  g_autoptr(git_odb) odb = bj_tree_odb_new (3, BJ_TREE_QUARANTINE, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(git_diff) diff = NULL;
  g_autoptr(GByteArray) text = g_byte_array_new ();
  BjPatch patch = { .text = text };
  char *path = (char *) args[3];
  git_diff_options options;
  guint64 max = 0;
  int result;

  if (odb == NULL || !g_ascii_string_to_unsigned (args[2], 10, 1, PATCH_MAX, &max, error))
    return FALSE;
  bj_tree_confine ((const int[]) { 3, BJ_TREE_QUARANTINE }, (const gboolean[]) { FALSE, FALSE }, 2);
  if (git_repository_wrap_odb (&repository, odb) < 0)
    return bj_tree_git_error (error, "Opening the objects");
  git_diff_options_init (&options, GIT_DIFF_OPTIONS_VERSION);
  options.context_lines = CONTEXT_LINES;
  options.flags = GIT_DIFF_DISABLE_PATHSPEC_MATCH; /* a name is a name, not a pattern */
  if (*path != '\0')
    options.pathspec = (git_strarray) { &path, 1 };
  if (!bj_tree_compare (repository, args, &options, &diff, error))
    return FALSE;
  patch.max = (gsize) max;
  result = git_diff_print (diff, GIT_DIFF_FORMAT_PATCH, on_line, &patch);
  if (result < 0 && text->len < patch.max)
    return bj_tree_git_error (error, "Writing a patch");
  return print (text, error);
}
