/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-name.h"

#include <string.h>
#include <sys/random.h>

#define NAME_MAX_LENGTH 63
#define ID_LENGTH 8

static const char id_alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

gboolean
bj_name_is_valid (const char *name)
{
  gsize length;

  if (name == NULL)
    return FALSE;
  length = strlen (name);
  if (length == 0 || length > NAME_MAX_LENGTH)
    return FALSE;
  if (!g_ascii_islower (name[0]) && !g_ascii_isdigit (name[0]))
    return FALSE;
  return strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

char *
bj_name_to_path_element (const char *name)
{
  GString *out = g_string_new (NULL);

  for (const char *c = name; *c != '\0'; c++)
    if (g_ascii_isalnum (*c))
      g_string_append_c (out, *c);
    else
      g_string_append_printf (out, "_%02x", (guint) (guchar) *c);
  return g_string_free (out, FALSE);
}

char *
bj_name_new_id (void)
{
  guint8 random[ID_LENGTH];
  char id[ID_LENGTH + 1] = "";

  if (getrandom (random, sizeof random, 0) != (gssize) sizeof random)
    for (guint i = 0; i < ID_LENGTH; i++)
      random[i] = (guint8) g_random_int_range (0, 256);
  for (guint i = 0; i < ID_LENGTH; i++)
    id[i] = id_alphabet[random[i] % (sizeof id_alphabet - 1)];
  return g_strdup (id);
}

gboolean
bj_id_is_valid (const char *id)
{
  return id != NULL && strlen (id) == ID_LENGTH && strspn (id, id_alphabet) == ID_LENGTH;
}
