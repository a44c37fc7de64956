/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-apt-sources.h"

#include "bj-error.h"

#include <string.h>

/* One line or paragraph, taken apart. */
typedef struct
{
  GStrv uris;
  GStrv suites;
  GStrv components;
  GString *options; /* "signed-by=… trusted=yes", without brackets */
} BjSource;

static BjSource *
source_new (void)
{
  BjSource *source = g_new0 (BjSource, 1);

  source->options = g_string_new (NULL);
  return source;
}

static void
source_free (BjSource *source)
{
  g_strfreev (source->uris);
  g_strfreev (source->suites);
  g_strfreev (source->components);
  g_string_free (source->options, TRUE);
  g_free (source);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjSource, source_free)

/* Splits at white space, without empty words. */
static GStrv
split_words (const char *text)
{
  g_auto(GStrv) parts = g_strsplit_set (text, " \t\r\n", -1);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();

  for (guint i = 0; parts[i] != NULL; i++)
    if (*parts[i] != '\0')
      g_strv_builder_add (builder, parts[i]);
  return g_strv_builder_end (builder);
}

static gboolean
serves (const char *theirs, const char *suite)
{
  static const char *const endings[] = { "", "-updates", "-security", "/updates" };

  if (!g_str_has_prefix (theirs, suite))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (endings); i++)
    if (g_str_equal (theirs + strlen (suite), endings[i]))
      return TRUE;
  return FALSE;
}

static gboolean
is_fetchable (const char *uri)
{
  static const char *const schemes[] = { "http://", "https://", "file:/", "copy:/" };

  for (guint i = 0; i < G_N_ELEMENTS (schemes); i++)
    if (g_str_has_prefix (uri, schemes[i]))
      return strpbrk (uri, "[] \t\r\n") == NULL;
  return FALSE;
}

static char *
join_common (GStrv theirs, const char *components)
{
  g_auto(GStrv) wanted = split_words (components);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  g_auto(GStrv) common = NULL;

  for (guint i = 0; wanted[i] != NULL; i++)
    if (g_strv_contains ((const char *const *) theirs, wanted[i]))
      g_strv_builder_add (builder, wanted[i]);
  common = g_strv_builder_end (builder);
  return g_strjoinv (" ", common);
}

static void
add_line (GPtrArray *lines, const BjSource *source, const char *uri, const char *suite, const char *components)
{
  g_autofree char *options = NULL;
  g_autofree char *line = NULL;

  if (source->options->len > 0)
    options = g_strdup_printf ("[%s] ", source->options->str);
  line = g_strdup_printf ("deb %s%s %s %s", options ? options : "", uri, suite, components);
  if (!g_ptr_array_find_with_equal_func (lines, line, g_str_equal, NULL))
    g_ptr_array_add (lines, g_steal_pointer (&line));
}

static void
add_source (GPtrArray *lines, const BjSource *source, const char *suite, const char *components)
{
  g_autofree char *common = NULL;

  if (source->uris == NULL || source->suites == NULL || source->components == NULL)
    return;
  common = join_common (source->components, components);
  if (*common == '\0')
    return;
  for (guint i = 0; source->suites[i] != NULL; i++)
    for (guint j = 0; serves (source->suites[i], suite) && source->uris[j] != NULL; j++)
      if (is_fetchable (source->uris[j]))
        add_line (lines, source, source->uris[j], source->suites[i], common);
}

/* Options that change which bytes are trusted or how; architectures and languages are not among them. */
static void
add_option (BjSource *source, const char *name, const char *value)
{
  static const char *const known[] = { "signed-by", "trusted", "check-valid-until", "check-date" };

  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (g_ascii_strcasecmp (name, known[i]) == 0)
      g_string_append_printf (source->options, "%s%s=%s", source->options->len > 0 ? " " : "", known[i], value);
}

static void
parse_line (const char *line, const char *suite, const char *components, GPtrArray *lines)
{
  g_autoptr(BjSource) source = source_new ();
  g_auto(GStrv) words = NULL;
  g_autofree char *rest = g_strdup (line);
  char *open = NULL, *close = NULL;

  rest[strcspn (rest, "#")] = '\0';
  open = strchr (rest, '[');
  close = open ? strchr (open, ']') : NULL;
  if (open != NULL && close == NULL)
    return;
  if (open != NULL)
    {
      g_autofree char *inside = g_strndup (open + 1, (gsize) (close - open - 1));
      g_auto(GStrv) options = split_words (inside);

      memset (open, ' ', (gsize) (close - open + 1));
      for (guint i = 0; options[i] != NULL; i++)
        {
          g_auto(GStrv) pair = g_strsplit (options[i], "=", 2);

          if (pair[0] != NULL && pair[1] != NULL)
            add_option (source, pair[0], pair[1]);
        }
    }
  words = split_words (rest);
  if (g_strv_length (words) < 4 || !g_str_equal (words[0], "deb"))
    return;
  source->uris = g_strdupv ((char *[]) { words[1], NULL });
  source->suites = g_strdupv ((char *[]) { words[2], NULL });
  source->components = g_strdupv (words + 3);
  add_source (lines, source, suite, components);
}

void
bj_apt_sources_parse_list (const char *text, const char *suite, const char *components, GPtrArray *lines)
{
  g_auto(GStrv) all = g_strsplit (text, "\n", -1);

  for (guint i = 0; all[i] != NULL; i++)
    parse_line (all[i], suite, components, lines);
}

static void
take_field (BjSource *source, const char *name, const char *value, gboolean *usable)
{
  g_auto(GStrv) words = split_words (value);
  GStrv *list = NULL;

  if (g_ascii_strcasecmp (name, "Types") == 0 && !g_strv_contains ((const char *const *) words, "deb"))
    *usable = FALSE;
  else if (g_ascii_strcasecmp (name, "Enabled") == 0 && words[0] != NULL && g_ascii_strcasecmp (words[0], "no") == 0)
    *usable = FALSE;
  else if (g_ascii_strcasecmp (name, "URIs") == 0)
    list = &source->uris;
  else if (g_ascii_strcasecmp (name, "Suites") == 0)
    list = &source->suites;
  else if (g_ascii_strcasecmp (name, "Components") == 0)
    list = &source->components;
  else if (g_strv_length (words) == 1)
    /* A key that stands in the file itself has more words: mmdebstrap then finds the suite's key on its own. */
    add_option (source, name, words[0]);
  if (list == NULL)
    return;
  g_strfreev (*list);
  *list = g_steal_pointer (&words);
}

static void
parse_paragraph (const char *text, const char *suite, const char *components, GPtrArray *lines)
{
  g_autoptr(BjSource) source = source_new ();
  g_auto(GStrv) all = g_strsplit (text, "\n", -1);
  gboolean usable = TRUE;

  for (guint i = 0; all[i] != NULL; i++)
    {
      g_autoptr(GString) value = NULL;
      const char *colon = strchr (all[i], ':');
      g_autofree char *name = colon ? g_strndup (all[i], (gsize) (colon - all[i])) : NULL;

      if (name == NULL || *all[i] == '#' || g_ascii_isspace (*all[i]))
        continue;
      value = g_string_new (colon + 1);
      while (all[i + 1] != NULL && (g_ascii_isspace (*all[i + 1]) || *all[i + 1] == '#'))
        if (*all[++i] != '#')
          g_string_append_printf (value, " %s", all[i]);
      take_field (source, name, value->str, &usable);
    }
  if (usable)
    add_source (lines, source, suite, components);
}

void
bj_apt_sources_parse_deb822 (const char *text, const char *suite, const char *components, GPtrArray *lines)
{
  g_auto(GStrv) all = g_strsplit (text, "\n", -1);
  g_autoptr(GString) paragraph = g_string_new (NULL);

  for (guint i = 0; all[i] != NULL; i++)
    {
      g_strchomp (all[i]);
      if (*all[i] != '\0')
        {
          g_string_append_printf (paragraph, "%s\n", all[i]);
          continue;
        }
      parse_paragraph (paragraph->str, suite, components, lines);
      g_string_truncate (paragraph, 0);
    }
  parse_paragraph (paragraph->str, suite, components, lines);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static GPtrArray *
list_files (const char *dir)
{
  g_autofree char *parts = g_build_filename (dir, "sources.list.d", NULL);
  g_autoptr(GDir) open = g_dir_open (parts, 0, NULL);
  GPtrArray *files = g_ptr_array_new_with_free_func (g_free);
  const char *name;

  while (open != NULL && (name = g_dir_read_name (open)) != NULL)
    if (g_str_has_suffix (name, ".list") || g_str_has_suffix (name, ".sources"))
      g_ptr_array_add (files, g_build_filename (parts, name, NULL));
  g_ptr_array_sort (files, compare_names);
  g_ptr_array_insert (files, 0, g_build_filename (dir, "sources.list", NULL));
  return files;
}

GStrv
bj_apt_sources_read (const char *dir, const char *suite, const char *components)
{
  g_autoptr(GPtrArray) files = list_files (dir);
  GPtrArray *lines = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < files->len; i++)
    {
      const char *path = g_ptr_array_index (files, i);
      g_autofree char *text = NULL;

      if (!g_file_get_contents (path, &text, NULL, NULL))
        continue;
      if (g_str_has_suffix (path, ".sources"))
        bj_apt_sources_parse_deb822 (text, suite, components, lines);
      else
        bj_apt_sources_parse_list (text, suite, components, lines);
    }
  g_ptr_array_add (lines, NULL);
  return (GStrv) g_ptr_array_free (lines, FALSE);
}

GStrv
bj_apt_sources_for_mirror (const char *mirror, const char *suite, const char *components, GError **error)
{
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  g_autofree char *line = NULL;

  for (const char *c = mirror; *c != '\0'; c++)
    if (!g_ascii_isgraph (*c) || *c == '#')
      {
        bj_error_set (error, BJ_ERROR_INVALID, "The mirror's address has a character that cannot stand in one");
        return NULL;
      }
  if (!is_fetchable (mirror))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The mirror \"%s\" must be an address such as "
                    "http://deb.debian.org/debian", mirror);
      return NULL;
    }
  line = g_strdup_printf ("deb %s %s %s", mirror, suite, components);
  g_strv_builder_add (builder, line);
  return g_strv_builder_end (builder);
}

char *
bj_apt_options_filter (const char *dump)
{
  static const char *const wanted[] = { "Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::https::CAInfo",
                                        "Acquire::https::CAPath", "Acquire::Check-Valid-Until", "Acquire::Check-Date" };
  g_auto(GStrv) all = g_strsplit (dump, "\n", -1);
  GString *kept = g_string_new (NULL);

  for (guint i = 0; all[i] != NULL; i++)
    for (guint j = 0; j < G_N_ELEMENTS (wanted); j++)
      if (g_ascii_strncasecmp (all[i], wanted[j], strlen (wanted[j])) == 0
          && strchr (" :", all[i][strlen (wanted[j])]) != NULL && g_str_has_suffix (all[i], "\";"))
        g_string_append_printf (kept, "%s\n", all[i]);
  return g_string_free (kept, FALSE);
}
