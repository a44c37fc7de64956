/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include <glib/gi18n.h>

/* Words for the shell's completion, one a line. Names match [a-z0-9._-], ids [a-z2-7]: nothing to escape. */

static void
print_verbs (void)
{
  for (const BjCliVerb *verb = bj_verbs_get (); verb->name != NULL; verb++)
    if (verb->summary != NULL)
      bj_output_line ("%s", verb->name);
}

static void
print_sessions (BjClient *client)
{
  g_autoptr(GPtrArray) sessions = bj_client_list_sessions (client);

  for (guint i = 0; i < sessions->len; i++)
    bj_output_line ("%s", bj_client_get_id (g_ptr_array_index (sessions, i)));
}

/* Only those that something can still be done with. */
static void
print_live_sessions (BjClient *client)
{
  g_autoptr(GPtrArray) sessions = bj_client_list_sessions (client);

  for (guint i = 0; i < sessions->len; i++)
    {
      BjDBusSession *session = g_ptr_array_index (sessions, i);
      const char *outcome = bj_dbus_session_get_outcome (session);

      if (outcome == NULL || *outcome == '\0')
        bj_output_line ("%s", bj_client_get_id (session));
    }
}

static void
print_images (BjClient *client)
{
  g_autoptr(GPtrArray) images = bj_client_list_images (client);

  for (guint i = 0; i < images->len; i++)
    bj_output_line ("%s", bj_dbus_image_get_name (g_ptr_array_index (images, i)));
}

static void
print_projects (BjClient *client)
{
  g_autoptr(GPtrArray) projects = bj_client_list_projects (client);

  for (guint i = 0; i < projects->len; i++)
    bj_output_line ("%s", bj_dbus_project_get_name (g_ptr_array_index (projects, i)));
}

int
bj_verb_complete (BjCli *cli, char **args, GError **error)
{
  static const struct
  {
    const char *kind;
    void (*print) (BjClient *client);
  } kinds[] = { { "sessions", print_sessions }, { "live-sessions", print_live_sessions },
              { "images", print_images },     { "projects", print_projects } };
  BjClient *client;

  if (args[1] == NULL || args[2] != NULL)
    return bj_usage_error_set (error, _("One of: verbs, sessions, live-sessions, images, projects"));
  if (g_str_equal (args[1], "verbs"))
    {
      print_verbs ();
      return BJ_EXIT_OK;
    }
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (g_str_equal (kinds[i].kind, args[1]))
      {
        client = bj_cli_connect (cli, error);
        if (client == NULL)
          return -1;
        kinds[i].print (client);
        return BJ_EXIT_OK;
      }
  return bj_usage_error_set (error, _("One of: verbs, sessions, live-sessions, images, projects"));
}
