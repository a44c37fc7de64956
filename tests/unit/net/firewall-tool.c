/* SPDX-License-Identifier: GPL-3.0-or-later */

/* The firewall object at a test's command: reads install, prove, look, remove or status from standard input and answers
 * each with one line of JSON. */

#include "bj-firewall.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

static void
answer (BjFirewall *firewall, gboolean ok, const GError *error)
{
  g_autoptr(JsonObject) object = json_object_new ();
  g_autoptr(JsonNode) root = json_node_init_object (json_node_alloc (), object);
  g_autofree char *reason = NULL;
  g_autofree char *text = NULL;
  gboolean active = FALSE, proven = FALSE;

  bj_firewall_get_status (firewall, &active, &proven, &reason);
  json_object_set_boolean_member (object, "ok", ok);
  json_object_set_string_member (object, "error", error != NULL ? error->message : "");
  json_object_set_boolean_member (object, "active", active);
  json_object_set_boolean_member (object, "proven", proven);
  json_object_set_string_member (object, "reason", reason);
  json_object_set_int_member (object, "losses", bj_firewall_get_losses (firewall));
  text = json_to_string (root, FALSE);
  puts (text);
  fflush (stdout);
}

int
main (void)
{
  g_autoptr(BjFirewall) firewall = bj_firewall_new ();
  char line[64];

  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_autoptr(GError) error = NULL;
      gboolean ok = TRUE;

      g_strchomp (line);
      if (g_str_equal (line, "install"))
        ok = bj_firewall_install (firewall, &error);
      else if (g_str_equal (line, "prove"))
        ok = bj_firewall_prove (firewall, &error);
      else if (g_str_equal (line, "look"))
        ok = bj_firewall_is_intact (firewall);
      else if (g_str_equal (line, "remove"))
        bj_firewall_remove (firewall);
      else if (!g_str_equal (line, "status"))
        return 2;
      answer (firewall, ok, error);
    }
  return 0;
}
