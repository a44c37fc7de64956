/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-scrub.h"

#include <string.h>

#define MARK "[a secret was left out]"
#define VALUE_MIN 8 /* a shorter value would be found everywhere */

/* What group 1 matches stays. A quote may stand there with backslashes: one text may hold another. */
#define QUOTE "(?:\\\\*[\"'])?"
static const char *const patterns[] = {
  "\\b(?:gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{16,}"
  "|AKIA[0-9A-Z]{16}|xox[a-z]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]*)",
  "((?i:authorization)" QUOTE "\\s*[:=]\\s*" QUOTE "(?:(?i:bearer|basic|token)\\s+)?)[^\\s\"'\\\\]+",
  "([a-z][a-z0-9+.-]*://[^\\s\"'\\\\/@:]*:)[^\\s\"'\\\\/@]+(?=@)",
  "((?i:password|passwd|secret|api[_-]?key|access[_-]?token)" QUOTE "\\s*[:=]\\s*" QUOTE ")[^\\s\"'\\\\,;&]{6,}",
  "-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\\s\\\\:,-]*?-----END [A-Z ]*PRIVATE KEY-----|[A-Za-z0-9+/=\\s\\\\]*)",
};
static const char *const secret_names[]
    = { "password", "passwd", "secret", "api_key", "apikey", "token", "access_token", "authorization", NULL };

struct _BjScrubber
{
  GPtrArray *regexes;
  guint count;
};

static void
add_regex (BjScrubber *self, const char *pattern)
{
  g_autoptr(GError) error = NULL;
  GRegex *regex = g_regex_new (pattern, G_REGEX_RAW | G_REGEX_OPTIMIZE, G_REGEX_MATCH_DEFAULT, &error);

  g_assert_no_error (error); /* patterns are ours, values are quoted */
  g_ptr_array_add (self->regexes, regex);
}

static gboolean
is_named_like_secret (const char *name)
{
  static const char *const words[] = { "TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "CREDENTIAL" };
  g_autofree char *upper = g_ascii_strup (name, -1);

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strstr (upper, words[i]) != NULL)
      return TRUE;
  return FALSE;
}

static void
add_variable (BjScrubber *self, const char *variable)
{
  const char *equals = strchr (variable, '=');
  g_autofree char *name = equals != NULL ? g_strndup (variable, (gsize) (equals - variable)) : NULL;
  g_autofree char *quoted = NULL;

  if (name == NULL || strlen (equals + 1) < VALUE_MIN || !is_named_like_secret (name))
    return;
  quoted = g_regex_escape_string (equals + 1, -1);
  add_regex (self, quoted);
}

BjScrubber *
bj_scrubber_new (const char *const *environ)
{
  BjScrubber *self = g_new0 (BjScrubber, 1);

  self->regexes = g_ptr_array_new_with_free_func ((GDestroyNotify) g_regex_unref);
  for (guint i = 0; environ != NULL && environ[i] != NULL; i++)
    add_variable (self, environ[i]);
  for (guint i = 0; i < G_N_ELEMENTS (patterns); i++)
    add_regex (self, patterns[i]);
  return self;
}

void
bj_scrubber_free (BjScrubber *self)
{
  g_ptr_array_unref (self->regexes);
  g_free (self);
}

guint
bj_scrubber_get_count (BjScrubber *self)
{
  return self->count;
}

static gboolean
replace (const GMatchInfo *match, GString *result, gpointer user_data)
{
  BjScrubber *self = user_data;
  g_autofree char *kept = g_match_info_fetch (match, 1);

  self->count++;
  if (kept != NULL)
    g_string_append (result, kept);
  g_string_append (result, MARK);
  return FALSE;
}

/* What cannot be searched is not kept. */
char *
bj_scrubber_clean_text (BjScrubber *self, const char *text)
{
  char *now = g_strdup (text);

  for (guint i = 0; i < self->regexes->len; i++)
    {
      GRegex *regex = g_ptr_array_index (self->regexes, i);
      char *next = g_regex_replace_eval (regex, now, -1, 0, G_REGEX_MATCH_DEFAULT, replace, self, NULL);

      g_free (now);
      now = next != NULL ? next : g_strdup (MARK);
    }
  return now;
}

static void
clean_members (BjScrubber *self, JsonObject *object)
{
  g_autoptr(GList) names = json_object_get_members (object);

  for (GList *at = names; at != NULL; at = at->next)
    {
      JsonNode *node = json_object_get_member (object, at->data);
      g_autofree char *name = g_ascii_strdown (at->data, -1);

      if (g_strv_contains (secret_names, name) && json_node_get_value_type (node) == G_TYPE_STRING
          && *json_node_get_string (node) != '\0')
        {
          json_node_set_string (node, MARK);
          self->count++;
        }
      else
        bj_scrubber_clean_node (self, node);
    }
}

void
bj_scrubber_clean_node (BjScrubber *self, JsonNode *node)
{
  g_autofree char *clean = NULL;

  if (JSON_NODE_HOLDS_OBJECT (node))
    clean_members (self, json_node_get_object (node));
  else if (JSON_NODE_HOLDS_ARRAY (node))
    for (guint i = 0; i < json_array_get_length (json_node_get_array (node)); i++)
      bj_scrubber_clean_node (self, json_array_get_element (json_node_get_array (node), i));
  else if (json_node_get_value_type (node) == G_TYPE_STRING)
    {
      clean = bj_scrubber_clean_text (self, json_node_get_string (node));
      json_node_set_string (node, clean);
    }
}
