/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"

#include <string.h>

static gboolean
find (const char *const *names, const char *name, gsize length, const char **value)
{
  for (guint i = 0; names[i] != NULL; i += 2)
    if (strlen (names[i]) == length && strncmp (names[i], name, length) == 0)
      {
        *value = names[i + 1] ? names[i + 1] : "";
        return TRUE;
      }
  return FALSE;
}

/* What is put in is not looked at again: a task that says {{folder}} stays as it is. */
static gboolean
fill_line (GString *out, const char *line, const char *const *names, GError **error)
{
  const char *open;

  while ((open = strstr (line, "{{")) != NULL)
    {
      const char *close = strstr (open, "}}");
      const char *value;

      if (close == NULL || !find (names, open + 2, (gsize) (close - open - 2), &value))
        return bj_error_set (error, BJ_ERROR_INVALID, "“%.40s” is no parameter of this text", open);
      g_string_append_len (out, line, open - line);
      g_string_append (out, value);
      line = close + 2;
    }
  g_string_append (out, line);
  return TRUE;
}

char *
bj_prompt_fill (const char *template, const char *const *names, GError **error)
{
  g_auto(GStrv) lines = g_strsplit (template, "\n", -1);
  g_autoptr(GString) out = g_string_new (NULL);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      const char *line = lines[i];
      const char *colon = *line == '?' ? strstr (line, ": ") : NULL;
      const char *value = "";

      if (colon != NULL)
        {
          if (!find (names, line + 1, (gsize) (colon - line - 1), &value))
            {
              bj_error_set (error, BJ_ERROR_INVALID, "“%.40s” is no parameter of this text", line);
              return NULL;
            }
          if (*value == '\0')
            continue;
          line = colon + 2;
        }
      if (!fill_line (out, line, names, error))
        return NULL;
      if (lines[i + 1] != NULL)
        g_string_append_c (out, '\n');
    }
  return g_string_free (g_steal_pointer (&out), FALSE);
}
