/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-name.h"
#include "bj-tree.h"

#include "bj-fd.h"

void
bj_tree_answer_init (BjTreeAnswer *answer)
{
  *answer = (BjTreeAnswer) { .text = g_string_new (NULL) };
}

void
bj_tree_answer_clear (BjTreeAnswer *answer)
{
  if (answer->text != NULL)
    g_string_free (answer->text, TRUE);
  answer->text = NULL;
}

void
bj_tree_answer_add (BjTreeAnswer *answer, const char *key, const char *format, ...)
{
  va_list args;

  g_string_append_printf (answer->text, "%s ", key);
  va_start (args, format);
  g_string_append_vprintf (answer->text, format, args);
  va_end (args);
  g_string_append_c (answer->text, '\n');
}

void
bj_tree_answer_warn (BjTreeAnswer *answer, const char *folder, const char *name, const char *what)
{
  g_autofree char *path = *folder != '\0' ? g_strdup_printf ("%s/%s", folder, name) : g_strdup (name);
  g_autofree char *shown = NULL;

  if (answer->warnings >= BJ_TREE_WARNINGS_MAX)
    {
      answer->left_out++;
      return;
    }
  answer->warnings++;
  shown = bj_tree_name_show (path);
  bj_tree_answer_add (answer, "warning", "\"%s\" %s", shown, what);
}

gboolean
bj_tree_answer_print (BjTreeAnswer *answer, GError **error)
{
  if (answer->left_out > 0)
    bj_tree_answer_add (answer, "warning", "%" G_GUINT64_FORMAT " more warnings of this kind", answer->left_out);
  g_string_append (answer->text, "end\n");
  return bj_fd_write_all (STDOUT_FILENO, answer->text->str, answer->text->len, error);
}
