/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-request.h"

#include "bj-error.h"
#include "bj-run-protocol.h"

#include <string.h>

#define INPUT_MAX (64u << 20)
#define DEFAULT_CAP (256u << 10)

struct _BjGuestRequest
{
  GByteArray *records; /* (owned) */
  gboolean sent;
};

BjGuestRequest *
bj_guest_request_new (void)
{
  BjGuestRequest *self = g_new0 (BjGuestRequest, 1);

  self->records = g_byte_array_new ();
  return self;
}

void
bj_guest_request_free (BjGuestRequest *self)
{
  g_byte_array_unref (self->records);
  g_free (self);
}

void
bj_guest_request_add (BjGuestRequest *self, const char *key, const char *value)
{
  g_byte_array_append (self->records, (const guint8 *) key, (guint) strlen (key));
  g_byte_array_append (self->records, (const guint8 *) "=", 1);
  g_byte_array_append (self->records, (const guint8 *) value, (guint) strlen (value) + 1);
}

void
bj_guest_request_add_number (BjGuestRequest *self, const char *key, guint64 value)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, value);

  bj_guest_request_add (self, key, text);
}

void
bj_guest_request_set_sent (BjGuestRequest *self)
{
  self->sent = TRUE;
}

gboolean
bj_guest_request_was_sent (BjGuestRequest *self)
{
  return self->sent;
}

static gsize
measure (const char *const *strings)
{
  gsize size = 0;

  for (guint i = 0; strings != NULL && strings[i] != NULL; i++)
    size += strlen (strings[i]) + 8;
  return size;
}

static gboolean
check (const BjExec *exec, GError **error)
{
  if (exec->argv == NULL || exec->argv[0] == NULL || exec->argv[0][0] == '\0')
    return bj_error_set (error, BJ_ERROR_INVALID, "There is no command to run");
  if (measure (exec->argv) + measure (exec->environ) > BJ_RUN_REQUEST_MAX / 2)
    return bj_error_set (error, BJ_ERROR_INVALID, "The command line is longer than %u bytes: put it into a file",
                         BJ_RUN_REQUEST_MAX / 2);
  if (exec->input != NULL && g_bytes_get_size (exec->input) > INPUT_MAX)
    return bj_error_set (error, BJ_ERROR_INVALID, "Standard input is longer than %u bytes: put it into a file", INPUT_MAX);
  for (guint i = 0; exec->environ != NULL && exec->environ[i] != NULL; i++)
    if (strchr (exec->environ[i], '=') == NULL)
      return bj_error_set (error, BJ_ERROR_INVALID, "An environment entry is not NAME=VALUE");
  return TRUE;
}

gboolean
bj_guest_request_add_exec (BjGuestRequest *self, const BjExec *exec, GError **error)
{
  if (!check (exec, error))
    return FALSE;
  for (guint i = 0; exec->argv[i] != NULL; i++)
    bj_guest_request_add (self, "argv", exec->argv[i]);
  for (guint i = 0; exec->environ != NULL && exec->environ[i] != NULL; i++)
    bj_guest_request_add (self, "env", exec->environ[i]);
  if (exec->cwd != NULL)
    bj_guest_request_add (self, "cwd", exec->cwd);
  bj_guest_request_add (self, "user", exec->user ? exec->user : "root");
  bj_guest_request_add_number (self, "timeout", CLAMP (exec->timeout_s ? exec->timeout_s : BJ_RUN_DAY, 1, BJ_RUN_DAY));
  bj_guest_request_add_number (self, "cap", MIN (exec->cap ? exec->cap : DEFAULT_CAP, BJ_RUN_KEEP_MAX));
  bj_guest_request_add (self, "nnp", exec->no_new_privileges ? "1" : "0");
  bj_guest_request_add (self, "input", exec->input ? "1" : "0");
  return TRUE;
}

GBytes *
bj_guest_request_finish (BjGuestRequest *self, GBytes *input)
{
  guint32 length = self->records->len;
  g_autoptr(GByteArray) all = g_byte_array_new ();

  g_byte_array_append (all, (const guint8 *) BJ_RUN_REQUEST_MAGIC, BJ_RUN_MAGIC_SIZE);
  g_byte_array_append (all, (const guint8 *) &length, sizeof length);
  g_byte_array_append (all, self->records->data, length);
  if (input != NULL)
    {
      gsize size;
      const guint8 *data = g_bytes_get_data (input, &size);

      g_byte_array_append (all, data, (guint) size);
    }
  return g_byte_array_free_to_bytes (g_steal_pointer (&all));
}
