/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-job.h"
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include "bj-error.h"
#include "bj-name.h"

#include <glib/gi18n.h>

static char **
make_row (BjDBusImage *image)
{
  g_autofree char *version = g_strdup_printf ("%u", bj_dbus_image_get_version (image));
  g_autofree char *size = bj_output_format_size (bj_dbus_image_get_size (image));
  g_autofree char *built = bj_output_format_time ((gint64) bj_dbus_image_get_built_at (image));
  const char *row[] = { bj_dbus_image_get_name (image),
                        version,
                        bj_dbus_image_get_state (image),
                        bj_dbus_image_get_os (image),
                        size,
                        built,
                        bj_dbus_image_get_default (image) ? "default" : "",
                        bj_dbus_image_get_digest (image) };

  return bj_output_dup_row (row, G_N_ELEMENTS (row));
}

int
bj_verb_images (BjCli *cli, char **args, GError **error)
{
  static const char *const titles[] = { "IMAGE", "VERSION", "STATE", "OS", "SIZE", "BUILT", "", "DIGEST", NULL };
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GPtrArray) images = NULL;
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return -1;
  images = bj_client_list_images (client);
  for (guint i = 0; i < images->len; i++)
    g_ptr_array_add (rows, make_row (g_ptr_array_index (images, i)));
  if (as_json)
    bj_output_json (bj_output_list_to_json (images, NULL));
  else
    bj_output_table (titles, rows);
  return BJ_EXIT_OK;
}

static GVariant *
build_options (const char *mirror, gboolean no_freeze)
{
  g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT (NULL);

  if (mirror != NULL)
    g_variant_dict_insert (&dict, "mirror", "s", mirror);
  if (no_freeze)
    g_variant_dict_insert (&dict, "freeze", "b", FALSE);
  return g_variant_dict_end (&dict);
}

int
bj_verb_image_build (BjCli *cli, char **args, GError **error)
{
  g_autofree char *mirror = NULL;
  gboolean no_freeze = FALSE;
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = {
    { "mirror", 0, 0, G_OPTION_ARG_FILENAME, &mirror, N_("package mirror; default is the host's"), N_("URL") },
    { "no-freeze", 0, 0, G_OPTION_ARG_NONE, &no_freeze, N_("leave it unfrozen"), NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL },
    { 0 },
  };
  BjClient *client;
  GVariant *answer;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  if (!bj_name_is_valid (args[1]))
    return bj_usage_error_set (error, _("A recipe's name has lower-case letters and digits, for example debian"));
  if (mirror != NULL && !g_utf8_validate (mirror, -1, NULL))
    return bj_usage_error_set (error, _("--mirror needs a URL"));
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return -1;
  answer = bj_cli_call_simple (cli, bj_client_get_manager (client), "BuildImage",
                               g_variant_new ("(s@a{sv})", args[1], build_options (mirror, no_freeze)), error);
  return bj_job_finish (cli, answer, as_json, error);
}

static BjDBusImage *
find_image (BjCli *cli, const char *name, GError **error)
{
  BjClient *client = bj_cli_connect (cli, error);

  return client != NULL ? bj_client_find_image (client, name, error) : NULL;
}

static int
run_job (BjCli *cli, char **args, const char *method, GError **error)
{
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(BjDBusImage) image = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  image = find_image (cli, args[1], error);
  if (image == NULL)
    return -1;
  return bj_job_finish (cli, bj_cli_call_simple (cli, image, method, NULL, error), as_json, error);
}

int
bj_verb_image_freeze (BjCli *cli, char **args, GError **error)
{
  return run_job (cli, args, "Freeze", error);
}

int
bj_verb_image_verify (BjCli *cli, char **args, GError **error)
{
  return run_job (cli, args, "Verify", error);
}

int
bj_verb_image_default (BjCli *cli, char **args, GError **error)
{
  g_autoptr(BjDBusImage) image = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (!bj_cli_parse (cli, NULL, &args, 1, 1, error))
    return -1;
  image = find_image (cli, args[1], error);
  if (image != NULL)
    answer = bj_cli_call_simple (cli, image, "SetDefault", NULL, error);
  if (answer == NULL)
    return -1;
  bj_output_note (_("%s is the image of sessions that name none now"), args[1]);
  return BJ_EXIT_OK;
}

/* The image that sessions take by themselves took minutes to build: it goes only if that is said. */
int
bj_verb_image_delete (BjCli *cli, char **args, GError **error)
{
  gboolean force = FALSE;
  const GOptionEntry entries[] = {
    { "force", 'f', 0, G_OPTION_ARG_NONE, &force, N_("also if it is the default image"), NULL }, { 0 }
  };
  g_autoptr(BjDBusImage) image = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  image = find_image (cli, args[1], error);
  if (image == NULL)
    return -1;
  if (!force && bj_dbus_image_get_default (image))
    {
      bj_error_set (error, BJ_ERROR_BUSY,
                    _("%s is the image of sessions that name none: choose another one (belljar image default NAME), or delete it "
                      "with --force"), args[1]);
      return -1;
    }
  answer = bj_cli_call_simple (cli, image, "Delete", NULL, error);
  if (answer == NULL)
    return -1;
  bj_output_note (_("Deleted the image %s"), args[1]);
  return BJ_EXIT_OK;
}
