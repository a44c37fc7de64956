/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* a{sv} options pass through a table: an unknown key, a wrong type or a bad value is BJ_ERROR_INVALID that names it. */
typedef gboolean (*BjOptionCheck) (GVariant *value, GError **error);

typedef struct
{
  const char *key;
  const char *type; /* a GVariant type string */
  BjOptionCheck check; /* (nullable) */
} BjOption;

gboolean bj_options_check (GVariant *options, const BjOption *table, gsize n_table, GError **error);

G_END_DECLS
