/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-units.h"

#include "bj-error.h"

#define MIB (G_GUINT64_CONSTANT (1) << 20)

typedef struct
{
  char letter;
  guint64 factor;
} Unit;

static const Unit durations[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
static const Unit sizes[] = {
  { 'K', 1024 },
  { 'M', 1024 * 1024 },
  { 'G', G_GUINT64_CONSTANT (1024) * 1024 * 1024 },
  { 'T', G_GUINT64_CONSTANT (1024) * 1024 * 1024 * 1024 },
};

/* The factor of the unit at @end, 1 without one, 0 when it is none of @units. */
static guint64
find_factor (const char *end, const Unit *units, gsize n_units)
{
  if (*end == '\0')
    return 1;
  for (gsize i = 0; i < n_units; i++)
    if (end[0] == units[i].letter && end[1] == '\0')
      return units[i].factor;
  return 0;
}

static gboolean
parse (const char *text, const Unit *units, gsize n_units, guint64 least, guint64 most, guint64 *value)
{
  char *end = NULL;
  guint64 number;
  guint64 factor;

  if (text == NULL || !g_ascii_isdigit (*text))
    return FALSE;
  number = g_ascii_strtoull (text, &end, 10);
  factor = find_factor (end, units, n_units);
  if (factor == 0 || number > most / factor || number * factor < least)
    return FALSE;
  *value = number * factor;
  return TRUE;
}

gboolean
bj_units_parse_duration (const char *text, guint least, guint *seconds, GError **error)
{
  guint64 value;

  if (!parse (text, durations, G_N_ELEMENTS (durations), least, G_MAXUINT, &value))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is not a duration; write for example 90s, 20m, 2h or 1d",
                         text != NULL ? text : "");
  *seconds = (guint) value;
  return TRUE;
}

gboolean
bj_units_parse_size (const char *text, guint64 least, guint64 *bytes, GError **error)
{
  if (!parse (text, sizes, G_N_ELEMENTS (sizes), least, G_MAXINT64, bytes))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is not a size; write for example 64M or 2G",
                         text != NULL ? text : "");
  return TRUE;
}

gboolean
bj_units_parse_memory (const char *text, guint *mib, GError **error)
{
  const guint64 least = BJ_MEMORY_MIN_MIB;
  const guint64 most = BJ_MEMORY_MAX_MIB;
  guint64 value;

  if (!parse (text, NULL, 0, least, most, &value))
    {
      if (!parse (text, sizes, G_N_ELEMENTS (sizes), least * MIB, (most + 1) * MIB - 1, &value))
        return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is not %s", text != NULL ? text : "", BJ_MEMORY_RANGE);
      value /= MIB;
    }
  *mib = (guint) value;
  return TRUE;
}

char *
bj_units_format_duration (guint64 seconds)
{
  if (seconds < 60)
    return g_strdup_printf ("%" G_GUINT64_FORMAT " s", seconds);
  if (seconds < 3600)
    return g_strdup_printf ("%" G_GUINT64_FORMAT " min %" G_GUINT64_FORMAT " s", seconds / 60, seconds % 60);
  return g_strdup_printf ("%" G_GUINT64_FORMAT " h %" G_GUINT64_FORMAT " min", seconds / 3600, seconds % 3600 / 60);
}

char *
bj_units_format_ordinal (guint number)
{
  static const char *const endings[] = { "th", "st", "nd", "rd" };
  gboolean is_teen = number % 100 / 10 == 1;

  return g_strdup_printf ("%u%s", number, endings[!is_teen && number % 10 < G_N_ELEMENTS (endings) ? number % 10 : 0]);
}
