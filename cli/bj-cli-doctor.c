/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include "bj-untrusted.h"

#include <glib/gi18n.h>
#include <unistd.h>

/* A check may probe KVM with a tiny guest, which has its own deadline. */
#define DOCTOR_TIMEOUT_MS (180 * 1000)
#define TEXT_MAX 1000

static char *
get_escaped (GVariant *check, const char *key)
{
  const char *text = "";

  g_variant_lookup (check, key, "&s", &text);
  return bj_untrusted_escape (text, -1, TEXT_MAX);
}

static void
print_check (GVariant *check, gboolean good, gboolean colour)
{
  g_autofree char *name = get_escaped (check, "name");
  g_autofree char *detail = get_escaped (check, "detail");
  g_autofree char *fix = get_escaped (check, "fix");

  bj_output_line ("%s%-4s%s  %-16s  %s", !colour ? "" : good ? "\033[32m" : "\033[31m", good ? _("ok") : _("FAIL"),
                  colour ? "\033[0m" : "", name, detail);
  if (!good && *fix != '\0')
    bj_output_line (_("      fix: %s"), fix);
}

int
bj_verb_doctor (BjCli *cli, char **args, GError **error)
{
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GVariant) checks = NULL;
  gboolean all_good = TRUE;
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client != NULL)
    answer = bj_cli_call (cli, bj_client_get_manager (client), "Doctor", NULL, NULL, NULL, DOCTOR_TIMEOUT_MS, error);
  if (answer == NULL)
    return -1;
  checks = g_variant_get_child_value (answer, 0);
  for (gsize i = 0; i < g_variant_n_children (checks); i++)
    {
      g_autoptr(GVariant) check = g_variant_get_child_value (checks, i);
      gboolean good = FALSE;

      g_variant_lookup (check, "ok", "b", &good);
      all_good = all_good && good;
      if (!as_json)
        print_check (check, good, bj_output_use_colour (STDOUT_FILENO));
    }
  if (as_json)
    bj_output_json (json_gvariant_serialize (checks));
  return all_good ? BJ_EXIT_OK : BJ_EXIT_ERROR;
}
