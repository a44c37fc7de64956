/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-name.h"

#include <string.h>

#define SHOW_MAX 200

gboolean
bj_tree_name_is_dot_git (const char *name)
{
  return g_ascii_strcasecmp (name, ".git") == 0;
}

/* HFS+ leaves these out when it compares names. */
static gboolean
is_ignored_by_hfs (gunichar c)
{
  return (c >= 0x200c && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) || (c >= 0x206a && c <= 0x206f) || c == 0xfeff;
}

static gboolean
is_dot_git_on_hfs (const char *name)
{
  g_autoptr(GString) rest = g_string_new (NULL);

  if (!g_utf8_validate (name, -1, NULL))
    return FALSE;
  for (const char *p = name; *p != '\0'; p = g_utf8_next_char (p))
    if (!is_ignored_by_hfs (g_utf8_get_char (p)))
      g_string_append_unichar (rest, g_utf8_get_char (p));
  return bj_tree_name_is_dot_git (rest->str);
}

static gboolean
is_dot_git_on_ntfs (const char *name)
{
  gsize length;

  if (g_ascii_strncasecmp (name, ".git", 4) == 0)
    length = 4;
  else if (g_ascii_strncasecmp (name, "git~1", 5) == 0)
    length = 5;
  else
    return FALSE;
  for (const char *p = name + length; *p != '\0'; p++)
    {
      if (*p == ':' || *p == '\\')
        return TRUE;
      if (*p != '.' && *p != ' ')
        return FALSE;
    }
  return TRUE;
}

gboolean
bj_tree_name_is_refused (const char *name)
{
  if (*name == '\0' || g_str_equal (name, ".") || g_str_equal (name, "..") || strchr (name, '/') != NULL)
    return TRUE;
  return bj_tree_name_is_dot_git (name) || is_dot_git_on_hfs (name) || is_dot_git_on_ntfs (name);
}

static void
append_percent (GString *text, guint8 byte)
{
  g_string_append_printf (text, "%%%02X", byte);
}

char *
bj_tree_name_encode (const char *name, gboolean *encoded)
{
  GString *text = g_string_new (NULL);

  *encoded = !g_utf8_validate (name, -1, NULL) || *name == '\0';
  for (const char *p = name; !*encoded && *p != '\0'; p = g_utf8_next_char (p))
    *encoded = g_unichar_iscntrl (g_utf8_get_char (p)) || g_utf8_get_char (p) == 0x2028 || g_utf8_get_char (p) == 0x2029;
  if (!*encoded)
    return g_string_free (g_string_append (text, name), FALSE);
  for (const guint8 *p = (const guint8 *) name; *p != 0; p++)
    if (*p > 0x20 && *p < 0x7f && *p != '%')
      g_string_append_c (text, (char) *p);
    else
      append_percent (text, *p);
  return g_string_free (text, FALSE);
}

/* Letters, digits and marks of any script, punctuation; nothing that joins, reorders or hides. */
static gboolean
is_plain (gunichar c)
{
  if (c == '%' || c == '"')
    return FALSE;
  return c == ' ' || (c < 0x80 ? g_ascii_isgraph ((char) c) : g_unichar_isalnum (c));
}

char *
bj_tree_name_show (const char *name)
{
  GString *text = g_string_new (NULL);

  for (const char *p = name; *p != '\0';)
    {
      gunichar c = g_utf8_get_char_validated (p, -1);

      if (text->len > SHOW_MAX)
        {
          g_string_append (text, "…");
          break;
        }
      if (c < 0x110000 && is_plain (c))
        {
          g_string_append_unichar (text, c);
          p = g_utf8_next_char (p);
          continue;
        }
      append_percent (text, (guint8) *p++);
    }
  return g_string_free (text, FALSE);
}
