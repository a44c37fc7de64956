/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Belljar's errors; each has a D-Bus name org.belljar1.Error.* (see bj-error.c). */
typedef enum
{
  BJ_ERROR_FAILED,
  BJ_ERROR_DENIED,
  BJ_ERROR_AUTH_NEEDED,
  BJ_ERROR_AUTH_DISMISSED,
  BJ_ERROR_NOT_FOUND,
  BJ_ERROR_BUSY,
  BJ_ERROR_EXISTS,
  BJ_ERROR_INVALID,
  BJ_ERROR_LIMIT,
  BJ_ERROR_NO_SPACE,
  BJ_ERROR_QUOTA,
  BJ_ERROR_NOT_FROZEN,
  BJ_ERROR_IMAGE_TOO_OLD,
  BJ_ERROR_IMAGE_TOO_NEW,
  BJ_ERROR_NO_ACCELERATOR,
  BJ_ERROR_GUEST_UNREACHABLE,
  BJ_ERROR_MODEL_UNREACHABLE,
  BJ_ERROR_CANCELLED,
  BJ_N_ERRORS /*< skip >*/
} BjError;

#define BJ_ERROR (bj_error_quark ())
GQuark bj_error_quark (void);

/**
 * bj_error_set:
 * @error: (out) (optional): where to put it
 * @code: which error
 * @format: printf format of a message that names the thing and the fix
 *
 * Returns: always %FALSE, so that callers can write `return bj_error_set (…)`
 */
gboolean bj_error_set (GError **error, BjError code, const char *format, ...) G_GNUC_PRINTF (3, 4);

/**
 * bj_error_to_bus:
 * @error: any error
 *
 * The one door where foreign errors (GIO, files, …) become ours, just before a reply.
 *
 * Returns: (transfer full): an error of domain BJ_ERROR with the same message
 */
GError *bj_error_to_bus (const GError *error);

/**
 * bj_error_get_name:
 * @code: one of ours
 *
 * Returns: its D-Bus name, for example "org.belljar1.Error.Busy"
 */
const char *bj_error_get_name (BjError code);

/**
 * bj_error_code_from_name:
 * @name: a D-Bus error name, possibly invented by a peer
 * @fallback: what an unknown name means
 *
 * Returns: the code
 */
BjError bj_error_code_from_name (const char *name, BjError fallback);

G_END_DECLS
