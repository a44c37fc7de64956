/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-timing.h"

#include "bj-cli-output.h"
#include "bj-json.h"

#include <glib/gi18n.h>

#define BAR_WIDTH 40

/* In the order they happen; first_command counts from the start, so it contains what stands before it. */
static const struct
{
  const char *name;
  const char *what;
} phases[] = {
  { "queue", N_("until the session's worker started the machine") },
  { "overlay", N_("folder and disk of the machine") },
  { "clone", N_("memory, devices and share, from template or pool") },
  { "ready", N_("until the guest answered") },
  { "setup", N_("name, ids, clock, network, mount, and the proof that it is fresh") },
  { "first_command", N_("from the start to the first command's result") },
  { "verify", N_("the check in fresh machines") },
  { "commit", N_("the tree's commit") },
};

static double
get_longest (JsonObject *timing)
{
  double longest = 0;

  for (guint i = 0; i < G_N_ELEMENTS (phases); i++)
    longest = MAX (longest, bj_json_get_double (timing, phases[i].name, 0));
  return longest;
}

static void
print_phase (const char *name, const char *what, double seconds, double longest)
{
  guint length = longest > 0 ? (guint) (seconds / longest * BAR_WIDTH + 0.5) : 0;
  g_autofree char *bar = g_strnfill (MIN (length, BAR_WIDTH), '#');

  bj_output_line ("%-14s %8.3f s  %-*s  %s", name, seconds, BAR_WIDTH, bar, what);
}

static void
print_machines (JsonArray *machines)
{
  for (guint i = 0; machines != NULL && i < json_array_get_length (machines); i++)
    {
      JsonObject *machine = json_array_get_object_element (machines, i);

      bj_output_line ("%-14s %s (%s)", _("machine"), bj_json_get_string (machine, "id", "?"),
                      bj_json_get_string (machine, "start", "?"));
    }
}

static void
print_report (JsonObject *report)
{
  JsonObject *timing = bj_json_get_object (report, "timing");
  double longest = timing != NULL ? get_longest (timing) : 0;

  for (guint i = 0; timing != NULL && i < G_N_ELEMENTS (phases); i++)
    if (bj_json_has (timing, phases[i].name))
      print_phase (phases[i].name, _(phases[i].what),
                   bj_json_get_double (timing, phases[i].name, 0), longest);
  bj_output_line ("%-14s %8.3f s", _("altogether"), bj_json_get_double (report, "duration_s", 0));
  print_machines (bj_json_get_array (report, "machines"));
}

int
bj_cli_show_timing (BjCli *cli, BjDBusSession *session, GError **error)
{
  g_autoptr(GVariant) answer = bj_cli_call_simple (cli, session, "Report", NULL, error);
  g_autoptr(JsonParser) parser = json_parser_new_immutable ();
  const char *json = NULL;

  if (answer == NULL)
    return -1;
  g_variant_get_child (answer, 0, "&s", &json);
  if (!json_parser_load_from_data (parser, json, -1, error))
    return -1;
  print_report (json_node_get_object (json_parser_get_root (parser)));
  return BJ_EXIT_OK;
}
