/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-ndjson.h"

#include "bj-error.h"

#include <string.h>

struct _BjNdjson
{
  GString *rest;
  gsize max_line;
  BjNdjsonLine func;
  gpointer user_data;
};

BjNdjson *
bj_ndjson_new (gsize max_line, BjNdjsonLine func, gpointer user_data)
{
  BjNdjson *self = g_new0 (BjNdjson, 1);

  self->rest = g_string_new (NULL);
  self->max_line = max_line;
  self->func = func;
  self->user_data = user_data;
  return self;
}

void
bj_ndjson_free (BjNdjson *self)
{
  g_string_free (self->rest, TRUE);
  g_free (self);
}

static gboolean
is_blank (const char *line, gsize length)
{
  for (gsize i = 0; i < length; i++)
    if (strchr (" \t\r", line[i]) == NULL || line[i] == '\0')
      return FALSE;
  return TRUE;
}

static gboolean
emit (BjNdjson *self, const char *line, gsize length, GError **error)
{
  return is_blank (line, length) || self->func (line, length, self->user_data, error);
}

static gboolean
keep (BjNdjson *self, const char *bytes, gsize length, GError **error)
{
  if (self->rest->len + length > self->max_line)
    return bj_error_set (error, BJ_ERROR_INVALID, "A line of the stream is longer than %" G_GSIZE_FORMAT " bytes",
                         self->max_line);
  g_string_append_len (self->rest, bytes, (gssize) length);
  return TRUE;
}

static gboolean
emit_rest (BjNdjson *self, GError **error)
{
  gboolean ok = emit (self, self->rest->str, self->rest->len, error);

  g_string_truncate (self->rest, 0);
  return ok;
}

gboolean
bj_ndjson_push (BjNdjson *self, const char *bytes, gsize length, GError **error)
{
  while (length > 0)
    {
      const char *newline = memchr (bytes, '\n', length);
      gsize part = newline ? (gsize) (newline - bytes) : length;

      if (!keep (self, bytes, part, error))
        return FALSE;
      if (newline == NULL)
        return TRUE;
      if (!emit_rest (self, error))
        return FALSE;
      bytes = newline + 1;
      length -= part + 1;
    }
  return TRUE;
}

gboolean
bj_ndjson_end (BjNdjson *self, GError **error)
{
  return emit_rest (self, error);
}
