/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-options.h"

#include "bj-error.h"

static const BjOption *
find_option (const BjOption *table, gsize n_table, const char *key)
{
  for (gsize i = 0; i < n_table; i++)
    if (g_str_equal (table[i].key, key))
      return &table[i];
  return NULL;
}

static gboolean
refuse_unknown (const BjOption *table, gsize n_table, const char *key, GError **error)
{
  g_autoptr(GString) known = g_string_new (NULL);

  for (gsize i = 0; i < n_table; i++)
    g_string_append_printf (known, "%s%s", i > 0 ? ", " : "", table[i].key);
  if (n_table == 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "Option “%s” is not known: this call takes none", key);
  return bj_error_set (error, BJ_ERROR_INVALID, "Option “%s” is not known: there are %s", key, known->str);
}

static gboolean
check_one (const BjOption *option, GVariant *value, GError **error)
{
  if (!g_variant_is_of_type (value, G_VARIANT_TYPE (option->type)))
    return bj_error_set (error, BJ_ERROR_INVALID, "Option “%s” must be of type %s, not %s", option->key, option->type,
                         g_variant_get_type_string (value));
  if (option->check == NULL || option->check (value, error))
    return TRUE;
  g_prefix_error (error, "Option “%s”: ", option->key);
  return FALSE;
}

gboolean
bj_options_check (GVariant *options, const BjOption *table, gsize n_table, GError **error)
{
  g_autoptr(GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  GVariantIter iter;
  const char *key;
  GVariant *value;

  g_variant_iter_init (&iter, options);
  while (g_variant_iter_next (&iter, "{&sv}", &key, &value))
    {
      g_autoptr(GVariant) owned = value;
      const BjOption *option = find_option (table, n_table, key);

      if (option == NULL)
        return refuse_unknown (table, n_table, key, error);
      if (!g_hash_table_add (seen, (gpointer) option->key))
        return bj_error_set (error, BJ_ERROR_INVALID, "Option “%s” is given twice", key);
      if (!check_one (option, owned, error))
        return FALSE;
    }
  return TRUE;
}
