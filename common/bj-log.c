/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *log_program = "belljar";
static GLogLevelFlags log_level = G_LOG_LEVEL_MESSAGE;

static const struct
{
  const char *name;
  GLogLevelFlags level;
} levels[] = {
  { "error", G_LOG_LEVEL_CRITICAL }, { "warning", G_LOG_LEVEL_WARNING }, { "message", G_LOG_LEVEL_MESSAGE },
  { "info", G_LOG_LEVEL_INFO },      { "debug", G_LOG_LEVEL_DEBUG },
};

gboolean
bj_log_parse_level (const char *name, GLogLevelFlags *level)
{
  for (guint i = 0; i < G_N_ELEMENTS (levels); i++)
    if (g_strcmp0 (name, levels[i].name) == 0)
      {
        *level = levels[i].level;
        return TRUE;
      }
  return FALSE;
}

static const char *
level_name (GLogLevelFlags level)
{
  for (guint i = 0; i < G_N_ELEMENTS (levels); i++)
    if (levels[i].level == (level & G_LOG_LEVEL_MASK))
      return levels[i].name;
  return "error";
}

static const char *
find_field (const GLogField *fields, gsize n_fields, const char *key)
{
  for (gsize i = 0; i < n_fields; i++)
    if (g_strcmp0 (fields[i].key, key) == 0 && fields[i].length == -1)
      return fields[i].value;
  return "";
}

static void
append_visible (GString *line, const char *text)
{
  for (const char *c = text; *c != '\0'; c++)
    if ((guchar) *c < 0x20 || *c == 0x7f)
      g_string_append_printf (line, "\\x%02x", (guint) (guchar) *c);
    else
      g_string_append_c (line, *c);
}

static GLogWriterOutput
write_log (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer data)
{
  g_autoptr(GString) line = g_string_new (NULL);
  g_autoptr(GDateTime) now = NULL;
  g_autofree char *stamp = NULL;

  if ((level & G_LOG_LEVEL_MASK) > log_level)
    return G_LOG_WRITER_HANDLED;
  if (g_log_writer_is_journald (STDERR_FILENO))
    return g_log_writer_journald (level, fields, n_fields, data);

  now = g_date_time_new_now_utc ();
  stamp = g_date_time_format (now, "%Y-%m-%dT%H:%M:%S");
  g_string_append_printf (line, "%s.%03dZ %s %s: ", stamp, g_date_time_get_microsecond (now) / 1000, log_program,
                          level_name (level));
  append_visible (line, find_field (fields, n_fields, "MESSAGE"));
  g_string_append_c (line, '\n');
  if (write (STDERR_FILENO, line->str, line->len) < 0)
    return G_LOG_WRITER_UNHANDLED;
  return G_LOG_WRITER_HANDLED;
}

void
bj_log_init (const char *program, GLogLevelFlags level)
{
  log_program = program;
  log_level = level;
  g_log_set_writer_func (write_log, NULL, NULL);
}
