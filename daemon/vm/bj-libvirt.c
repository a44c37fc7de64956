/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-libvirt.h"

#include <string.h>

#define HEAD 120
#define TAIL 240

char *
bj_libvirt_clean_text (const char *text)
{
  GString *clean = g_string_new (NULL);

  for (const char *c = text ? text : ""; *c != '\0'; c++)
    {
      g_string_append_c (clean, g_ascii_isprint (*c) ? *c : ' ');
      /* What went wrong stands at the end of QEMU's messages, behind the whole argument. */
      if (clean->len > HEAD + 2 * TAIL)
        g_string_erase (clean, HEAD, TAIL);
    }
  if (clean->len > HEAD + TAIL)
    {
      g_string_erase (clean, HEAD, (gssize) (clean->len - HEAD - TAIL));
      g_string_insert (clean, HEAD, " ... ");
    }
  return g_string_free (clean, FALSE);
}

gboolean
bj_libvirt_set_error (GError **error, BjError code, const char *format, ...)
{
  const virError *last = virGetLastError ();
  g_autofree char *text = bj_libvirt_clean_text (last ? last->message : "no reason given");
  g_autofree char *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  return bj_error_set (error, code, "%s: %s", what, text);
}
