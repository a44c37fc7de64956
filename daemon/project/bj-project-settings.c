/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-store.h"

#include "bj-error.h"
#include "bj-units.h"

#include <string.h>

#define FILE_MAX (64 * 1024)
#define COMMAND_MAX 8192
#define PROTECT_MAX 100
#define PATTERN_MAX 512

void
bj_project_settings_clear (BjProjectSettings *settings)
{
  g_clear_pointer (&settings->check, g_free);
  g_clear_pointer (&settings->setup, g_free);
  g_clear_pointer (&settings->protect, g_strfreev);
}

/* Each returns what is wrong with the value, or %NULL when it was taken. */
static const char *
take_text (const char *value, char **text)
{
  if (strlen (value) > COMMAND_MAX)
    return "is longer than 8192 bytes";
  g_free (*text);
  *text = g_strdup (value);
  return NULL;
}

static const char *
take_check (BjProjectSettings *settings, const char *value)
{
  return take_text (value, &settings->check);
}

static const char *
take_setup (BjProjectSettings *settings, const char *value)
{
  return take_text (value, &settings->setup);
}

static gboolean
leaves_project (const char *pattern)
{
  g_auto(GStrv) parts = g_strsplit (pattern, "/", -1);

  return *pattern == '/' || g_strv_contains ((const char *const *) parts, "..");
}

static const char *
take_protect (BjProjectSettings *settings, const char *value)
{
  g_auto(GStrv) words = g_strsplit (value, ";", -1);
  g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; words[i] != NULL; i++)
    {
      g_strstrip (words[i]);
      if (*words[i] == '\0')
        continue;
      if (strlen (words[i]) > PATTERN_MAX)
        return "has an entry longer than 512 bytes";
      if (leaves_project (words[i]))
        return "has an entry that is not below the project: write names relative to its top, without ..";
      g_ptr_array_add (list, g_strdup (words[i]));
    }
  if (list->len > PROTECT_MAX)
    return "has more than 100 entries: name folders instead of files";
  g_ptr_array_add (list, NULL);
  g_strfreev (settings->protect);
  settings->protect = (GStrv) g_ptr_array_free (g_steal_pointer (&list), FALSE);
  return NULL;
}

static const char *
take_network (BjProjectSettings *settings, const char *value)
{
  settings->network = strcmp (value, "true") == 0;
  return settings->network || strcmp (value, "false") == 0 ? NULL : "is neither true nor false";
}

static const char *
take_memory (BjProjectSettings *settings, const char *value)
{
  return bj_units_parse_memory (value, &settings->memory_mib, NULL) ? NULL : "is not " BJ_MEMORY_RANGE;
}

static const struct
{
  const char *group;
  const char *key;
  const char *(*take) (BjProjectSettings *settings, const char *value);
} keys[] = {
  { "check", "command", take_check },     { "check", "setup", take_setup },     { "check", "protect", take_protect },
  { "check", "network", take_network }, { "machine", "memory", take_memory },
};

/* Where the parser stands. */
typedef struct
{
  BjProjectSettings *settings;
  guint line;
  char *group; /* (owned) (nullable) */
  guint seen;  /* a bit for each of the keys */
} BjSettingsParser;

static void
parser_clear (BjSettingsParser *parser)
{
  g_clear_pointer (&parser->group, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjSettingsParser, parser_clear)

static gboolean
parse_group (BjSettingsParser *parser, const char *line, GError **error)
{
  gsize length = strlen (line);
  g_autofree char *name = NULL;

  if (line[length - 1] != ']')
    return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: a group needs a closing bracket", parser->line);
  name = g_strndup (line + 1, length - 2);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (strcmp (keys[i].group, name) == 0)
      {
        g_free (parser->group);
        parser->group = g_steal_pointer (&name);
        return TRUE;
      }
  return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: unknown group [%s]: there are [check] and [machine]",
                       parser->line, name);
}

static gboolean
parse_value (BjSettingsParser *parser, const char *key, const char *value, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const char *wrong;

      if (strcmp (keys[i].group, parser->group) != 0 || strcmp (keys[i].key, key) != 0)
        continue;
      wrong = parser->seen & (1u << i) ? "stands there twice" : keys[i].take (parser->settings, value);
      parser->seen |= 1u << i;
      if (wrong == NULL)
        return TRUE;
      return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: %s %s", parser->line, key, wrong);
    }
  return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: unknown key \"%s\" in group [%s]", parser->line, key,
                       parser->group);
}

static gboolean
parse_line (BjSettingsParser *parser, char *line, GError **error)
{
  char *equals;

  g_strstrip (line);
  if (*line == '\0' || *line == '#' || *line == ';')
    return TRUE;
  for (const char *p = line; *p != '\0'; p++)
    if (g_ascii_iscntrl (*p) && *p != '\t')
      return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: a control character", parser->line);
  if (*line == '[')
    return parse_group (parser, line, error);
  equals = strchr (line, '=');
  if (equals == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: neither a [group] nor key = value", parser->line);
  *equals = '\0';
  if (parser->group == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini, line %u: key \"%s\" stands before the first group",
                         parser->line, g_strchomp (line));
  return parse_value (parser, g_strchomp (line), g_strchug (equals + 1), error);
}

gboolean
bj_project_settings_parse (GBytes *ini, BjProjectSettings *settings, GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (ini, &size);
  g_auto(BjSettingsParser) parser = { .settings = settings };
  g_autofree char *text = NULL;
  g_auto(GStrv) lines = NULL;

  *settings = (BjProjectSettings) { .check = g_strdup (""), .setup = g_strdup (""), .protect = g_new0 (char *, 1) };
  if (size > FILE_MAX)
    return bj_error_set (error, BJ_ERROR_LIMIT, "belljar.ini is larger than 64 KiB");
  text = g_strndup (size > 0 ? data : "", size);
  if (!g_utf8_validate_len (text, size, NULL))
    return bj_error_set (error, BJ_ERROR_INVALID, "belljar.ini is not UTF-8 text");
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    {
      parser.line = i + 1;
      if (!parse_line (&parser, lines[i], error))
        return FALSE;
    }
  return TRUE;
}
