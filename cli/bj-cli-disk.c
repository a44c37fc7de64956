/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-job.h"
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include <glib/gi18n.h>

/* The daemon stops counting after a minute. */
#define USAGE_TIMEOUT_MS (120 * 1000)

static char **
make_row (GVariant *entry, guint64 *total, gboolean *complete)
{
  const char *kind = "";
  guint64 bytes = 0;
  guint count = 0;
  g_autofree char *size = NULL;
  g_autofree char *number = NULL;

  g_variant_lookup (entry, "kind", "&s", &kind);
  g_variant_lookup (entry, "bytes", "t", &bytes);
  g_variant_lookup (entry, "count", "u", &count);
  g_variant_lookup (entry, "complete", "b", complete);
  *total += bytes;
  size = bj_output_format_size (bytes);
  number = g_strdup_printf ("%u", count);
  return bj_output_dup_row ((const char *[]){ kind, size, number }, 3);
}

static void
print_usage (GVariant *use)
{
  static const char *const titles[] = { "KIND", "SIZE", "NUMBER", NULL };
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  g_autofree char *size = NULL;
  gboolean complete = TRUE;
  guint64 total = 0;

  for (gsize i = 0; i < g_variant_n_children (use); i++)
    {
      g_autoptr(GVariant) entry = g_variant_get_child_value (use, i);

      g_ptr_array_add (rows, make_row (entry, &total, &complete));
    }
  size = bj_output_format_size (total);
  g_ptr_array_add (rows, bj_output_dup_row ((const char *[]){ "total", size, "" }, 3));
  bj_output_table (titles, rows);
  if (!complete)
    bj_output_note (_("There was too much to count all of it"));
}

int
bj_verb_disk (BjCli *cli, char **args, GError **error)
{
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GVariant) use = NULL;
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client != NULL)
    answer = bj_cli_call (cli, bj_client_get_manager (client), "DiskUsage", NULL, NULL, NULL, USAGE_TIMEOUT_MS, error);
  if (answer == NULL)
    return -1;
  use = g_variant_get_child_value (answer, 0);
  if (as_json)
    bj_output_json (json_gvariant_serialize (use));
  else
    print_usage (use);
  return BJ_EXIT_OK;
}

int
bj_verb_prune (BjCli *cli, char **args, GError **error)
{
  gboolean dry_run = FALSE;
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = {
    { "dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, N_("only say what would go"), NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL },
    { 0 },
  };
  g_auto(GVariantDict) options = G_VARIANT_DICT_INIT (NULL);
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return -1;
  if (dry_run)
    g_variant_dict_insert (&options, "dry-run", "b", TRUE);
  return bj_job_finish (cli,
                        bj_cli_call_simple (cli, bj_client_get_manager (client), "Prune",
                                            g_variant_new ("(@a{sv})", g_variant_dict_end (&options)), error),
                        as_json, error);
}
