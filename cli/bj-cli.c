/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli.h"

#include "bj-error.h"

#include <glib-unix.h>
#include <glib/gi18n.h>
#include <signal.h>

struct _BjCli
{
  const BjCliVerb *verb;
  BjClient *client;
  guint interrupt_id;
  guint interrupts;
  BjCliInterrupt on_interrupt;
  gpointer on_interrupt_data;
};

GQuark
bj_usage_error_quark (void)
{
  return g_quark_from_static_string ("bj-usage-error-quark");
}

int
bj_usage_error_set (GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  if (error != NULL)
    *error = g_error_new_valist (BJ_USAGE_ERROR, 0, format, args);
  va_end (args);
  return -1;
}

BjCli *
bj_cli_new (const BjCliVerb *verb)
{
  BjCli *cli = g_new0 (BjCli, 1);

  cli->verb = verb;
  return cli;
}

void
bj_cli_free (BjCli *cli)
{
  bj_cli_on_interrupt (cli, NULL, NULL);
  g_clear_object (&cli->client);
  g_free (cli);
}

/* g_option_context_parse() leaves the separator in place; nothing that follows is an option. */
static void
drop_separator (char **args)
{
  for (guint i = 1; args[i] != NULL; i++)
    if (g_str_equal (args[i], "--"))
      {
        g_free (args[i]);
        for (; args[i] != NULL; i++)
          args[i] = args[i + 1];
        return;
      }
}

gboolean
bj_cli_parse (BjCli *cli, const GOptionEntry *entries, char ***args, guint min, guint max, GError **error)
{
  g_autoptr(GOptionContext) context = g_option_context_new (cli->verb->usage);
  g_autofree char *program = g_strconcat ("belljar ", cli->verb->name, NULL);
  GError *problem = NULL;
  guint count;

  g_set_prgname (program);
  g_option_context_set_translation_domain (context, GETTEXT_PACKAGE);
  g_option_context_set_summary (context, _(cli->verb->summary));
  g_option_context_set_description (context, _(cli->verb->help));
  if (entries != NULL)
    g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  if (!g_option_context_parse_strv (context, args, &problem))
    {
      bj_usage_error_set (error, "%s", problem->message);
      g_error_free (problem);
      return FALSE;
    }
  drop_separator (*args);
  count = g_strv_length (*args) - 1;
  if (count < min)
    bj_usage_error_set (error, _("Something is missing: belljar %s %s"), cli->verb->name, cli->verb->usage);
  else if (count > max)
    bj_usage_error_set (error, _("“%s” is too much: belljar %s %s"), (*args)[max + 1], cli->verb->name,
                        cli->verb->usage);
  return count >= min && count <= max;
}

BjClient *
bj_cli_connect (BjCli *cli, GError **error)
{
  if (cli->client == NULL)
    cli->client = bj_client_new (NULL, error);
  return cli->client;
}

void
bj_cli_on_ready (GObject *source, GAsyncResult *result, gpointer slot)
{
  *(GAsyncResult **) slot = g_object_ref (result);
}

void
bj_cli_await (GAsyncResult **slot)
{
  while (*slot == NULL)
    g_main_context_iteration (NULL, TRUE);
}

GVariant *
bj_cli_call (BjCli *cli, gpointer proxy, const char *method, GVariant *parameters, GUnixFDList *fds,
             GUnixFDList **fds_out, int timeout_ms, GError **error)
{
  g_autoptr(GAsyncResult) result = NULL;

  bj_client_call_async (cli->client, proxy, method, parameters, fds, timeout_ms, NULL, bj_cli_on_ready, &result);
  bj_cli_await (&result);
  return bj_client_call_finish (cli->client, result, fds_out, error);
}

GVariant *
bj_cli_call_simple (BjCli *cli, gpointer proxy, const char *method, GVariant *parameters, GError **error)
{
  return bj_cli_call (cli, proxy, method, parameters, NULL, NULL, -1, error);
}

BjDBusSession *
bj_cli_find_session (BjCli *cli, const char *id, GError **error)
{
  BjClient *client = bj_cli_connect (cli, error);

  return client != NULL ? bj_client_find_session (client, id, error) : NULL;
}

static gboolean
on_sigint (gpointer user_data)
{
  BjCli *cli = user_data;

  cli->interrupts++;
  cli->on_interrupt (cli->interrupts, cli->on_interrupt_data);
  return G_SOURCE_CONTINUE;
}

void
bj_cli_on_interrupt (BjCli *cli, BjCliInterrupt func, gpointer user_data)
{
  g_clear_handle_id (&cli->interrupt_id, g_source_remove);
  cli->interrupts = 0;
  cli->on_interrupt = func;
  cli->on_interrupt_data = user_data;
  if (func != NULL)
    cli->interrupt_id = g_unix_signal_add (SIGINT, on_sigint, cli);
}
