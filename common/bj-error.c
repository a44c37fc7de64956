/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"

static const GDBusErrorEntry entries[] = {
  { BJ_ERROR_FAILED, "org.belljar1.Error.Failed" },
  { BJ_ERROR_DENIED, "org.belljar1.Error.Denied" },
  { BJ_ERROR_AUTH_NEEDED, "org.belljar1.Error.AuthNeeded" },
  { BJ_ERROR_AUTH_DISMISSED, "org.belljar1.Error.AuthDismissed" },
  { BJ_ERROR_NOT_FOUND, "org.belljar1.Error.NotFound" },
  { BJ_ERROR_BUSY, "org.belljar1.Error.Busy" },
  { BJ_ERROR_EXISTS, "org.belljar1.Error.Exists" },
  { BJ_ERROR_INVALID, "org.belljar1.Error.Invalid" },
  { BJ_ERROR_LIMIT, "org.belljar1.Error.Limit" },
  { BJ_ERROR_NO_SPACE, "org.belljar1.Error.NoSpace" },
  { BJ_ERROR_QUOTA, "org.belljar1.Error.Quota" },
  { BJ_ERROR_NOT_FROZEN, "org.belljar1.Error.NotFrozen" },
  { BJ_ERROR_IMAGE_TOO_OLD, "org.belljar1.Error.ImageTooOld" },
  { BJ_ERROR_IMAGE_TOO_NEW, "org.belljar1.Error.ImageTooNew" },
  { BJ_ERROR_NO_ACCELERATOR, "org.belljar1.Error.NoAccelerator" },
  { BJ_ERROR_GUEST_UNREACHABLE, "org.belljar1.Error.GuestUnreachable" },
  { BJ_ERROR_MODEL_UNREACHABLE, "org.belljar1.Error.ModelUnreachable" },
  { BJ_ERROR_CANCELLED, "org.belljar1.Error.Cancelled" },
};
G_STATIC_ASSERT (G_N_ELEMENTS (entries) == BJ_N_ERRORS);

GQuark
bj_error_quark (void)
{
  static gsize quark;

  g_dbus_error_register_error_domain ("bj-error-quark", &quark, entries, G_N_ELEMENTS (entries));
  return (GQuark) quark;
}

gboolean
bj_error_set (GError **error, BjError code, const char *format, ...)
{
  va_list args;
  g_autoptr(GError) made = NULL;

  va_start (args, format);
  made = g_error_new_valist (BJ_ERROR, (int) code, format, args);
  va_end (args);
  g_propagate_error (error, g_steal_pointer (&made));
  return FALSE;
}

static BjError
foreign_code (const GError *error)
{
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return BJ_ERROR_CANCELLED;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE)
      || g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC))
    return BJ_ERROR_NO_SPACE;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND)
      || g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    return BJ_ERROR_NOT_FOUND;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_EXISTS)
      || g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_EXIST))
    return BJ_ERROR_EXISTS;
  return BJ_ERROR_FAILED;
}

GError *
bj_error_to_bus (const GError *error)
{
  if (error->domain == BJ_ERROR)
    return g_error_copy (error);
  return g_error_new_literal (BJ_ERROR, (int) foreign_code (error), error->message);
}

const char *
bj_error_get_name (BjError code)
{
  for (guint i = 0; i < G_N_ELEMENTS (entries); i++)
    if (entries[i].error_code == (int) code)
      return entries[i].dbus_error_name;
  return entries[0].dbus_error_name;
}

BjError
bj_error_code_from_name (const char *name, BjError fallback)
{
  for (guint i = 0; i < G_N_ELEMENTS (entries); i++)
    if (g_strcmp0 (entries[i].dbus_error_name, name) == 0)
      return (BjError) entries[i].error_code;
  return fallback;
}
