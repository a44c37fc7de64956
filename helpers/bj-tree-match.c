/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-match.h"

#include <fnmatch.h>
#include <string.h>

#define PATTERN_MAX 512
#define PARTS_MAX 32
#define STARS_MAX 6 /* in one part: fnmatch() is exponential in them */

/* One pattern: its parts between slashes. */
typedef struct
{
  GStrv parts; /* (owned) */
  gboolean only_folders;
} BjTreePattern;

struct _BjTreeMatch
{
  GPtrArray *patterns; /* (owned) (element-type BjTreePattern) */
};

static void
pattern_free (BjTreePattern *pattern)
{
  g_strfreev (pattern->parts);
  g_free (pattern);
}

static gboolean
is_cheap (const char *part)
{
  guint stars = 0;

  for (const char *p = part; *p != '\0'; p++)
    stars += *p == '*';
  return stars <= STARS_MAX;
}

static gboolean
has_wildcard (const char *text)
{
  return strpbrk (text, "*?[") != NULL;
}

static BjTreePattern *
pattern_new (const char *text)
{
  g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  g_auto(GStrv) split = NULL;
  BjTreePattern *pattern = NULL;
  gboolean only_folders, anchored;

  if (strlen (text) > PATTERN_MAX)
    return NULL;
  split = g_strsplit (text, "/", -1);
  only_folders = g_str_has_suffix (text, "/");
  anchored = *text == '/' || g_str_has_prefix (text, "./");
  for (guint i = 0; split[i] != NULL; i++)
    if (*split[i] != '\0' && strcmp (split[i], ".") != 0)
      g_ptr_array_add (parts, g_strdup (split[i]));
  if (parts->len == 0 || parts->len > PARTS_MAX)
    return NULL;
  for (guint i = 0; i < parts->len; i++)
    if (strcmp (g_ptr_array_index (parts, i), "..") == 0 || !is_cheap (g_ptr_array_index (parts, i)))
      return NULL;
  if (!anchored && parts->len == 1 && (only_folders || has_wildcard (g_ptr_array_index (parts, 0))))
    g_ptr_array_insert (parts, 0, g_strdup ("**"));
  g_ptr_array_add (parts, NULL);
  pattern = g_new0 (BjTreePattern, 1);
  pattern->parts = (GStrv) g_ptr_array_free (g_steal_pointer (&parts), FALSE);
  pattern->only_folders = only_folders;
  return pattern;
}

BjTreeMatch *
bj_tree_match_new (const char *const *patterns)
{
  BjTreeMatch *self = g_new0 (BjTreeMatch, 1);

  self->patterns = g_ptr_array_new_with_free_func ((GDestroyNotify) pattern_free);
  for (guint i = 0; patterns[i] != NULL; i++)
    {
      BjTreePattern *pattern = pattern_new (patterns[i]);

      if (pattern != NULL)
        g_ptr_array_add (self->patterns, pattern);
    }
  return self;
}

void
bj_tree_match_free (BjTreeMatch *self)
{
  g_ptr_array_unref (self->patterns);
  g_free (self);
}

/* Only the last "**" is ever tried again, as with stars in one name: linear times linear. */
static gboolean
match_parts (const char *const *parts, const char *const *path)
{
  const char *const *star = NULL, *const *resume = NULL;

  while (*path != NULL)
    {
      if (*parts != NULL && strcmp (*parts, "**") == 0)
        {
          star = ++parts;
          resume = path;
        }
      else if (*parts != NULL && fnmatch (*parts, *path, 0) == 0)
        {
          parts++;
          path++;
        }
      else if (star != NULL)
        {
          parts = star;
          path = ++resume;
        }
      else
        return FALSE;
    }
  while (*parts != NULL && strcmp (*parts, "**") == 0)
    parts++;
  return *parts == NULL;
}

gboolean
bj_tree_match_path (BjTreeMatch *self, const char *path, gboolean is_folder)
{
  g_auto(GStrv) split = g_strsplit (path, "/", -1);

  for (guint i = 0; i < self->patterns->len; i++)
    {
      BjTreePattern *pattern = g_ptr_array_index (self->patterns, i);

      if ((is_folder || !pattern->only_folders)
          && match_parts ((const char *const *) pattern->parts, (const char *const *) split))
        return TRUE;
    }
  return FALSE;
}
