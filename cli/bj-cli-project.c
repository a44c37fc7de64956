/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-job.h"
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include "bj-fd.h"
#include "bj-name.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <sys/stat.h>

#define LOG_DEFAULT 20
#define LOG_MAX 10000

int
bj_verb_projects (BjCli *cli, char **args, GError **error)
{
  static const char *const titles[] = { "PROJECT", "HEAD", "USED", "SESSIONS", NULL };
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GPtrArray) projects = NULL;
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 0, 0, error))
    return -1;
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return -1;
  projects = bj_client_list_projects (client);
  if (as_json)
    bj_output_json (bj_output_list_to_json (projects, NULL));
  for (guint i = 0; i < projects->len && !as_json; i++)
    {
      BjDBusProject *project = g_ptr_array_index (projects, i);
      g_autofree char *head = g_strdup (bj_dbus_project_get_head (project));
      g_autofree char *used = bj_output_format_size (bj_dbus_project_get_used (project));
      g_autofree char *sessions = g_strdup_printf ("%u", bj_dbus_project_get_sessions (project));
      const char *row[] = { bj_dbus_project_get_name (project), head, used, sessions };

      if (head != NULL && strlen (head) > 12)
        head[12] = '\0';
      g_ptr_array_add (rows, bj_output_dup_row (row, G_N_ELEMENTS (row)));
    }
  if (!as_json)
    bj_output_table (titles, rows);
  return BJ_EXIT_OK;
}

static gboolean
create_project (BjCli *cli, const char *name, GError **error)
{
  BjClient *client;
  g_autoptr(GVariantDict) options = g_variant_dict_new (NULL);
  g_autoptr(GVariant) answer = NULL;

  if (!bj_name_is_valid (name))
    {
      bj_usage_error_set (error, _("A project's name has lower-case letters, digits, “.”, “_” and “-”, at most 63"));
      return FALSE;
    }
  client = bj_cli_connect (cli, error);
  if (client == NULL)
    return FALSE;
  answer = bj_cli_call_simple (cli, bj_client_get_manager (client), "CreateProject",
                               g_variant_new ("(s@a{sv})", name, g_variant_dict_end (options)), error);
  return answer != NULL;
}

int
bj_verb_project_create (BjCli *cli, char **args, GError **error)
{
  if (!bj_cli_parse (cli, NULL, &args, 1, 1, error) || !create_project (cli, args[1], error))
    return -1;
  return BJ_EXIT_OK;
}

static BjDBusProject *
find_project (BjCli *cli, const char *name, GError **error)
{
  BjClient *client = bj_cli_connect (cli, error);

  return client != NULL ? bj_client_find_project (client, name, error) : NULL;
}

/* The daemon takes no paths of callers, only what the caller could open itself. */
static int
open_source (const char *path, gboolean folder_only, gboolean *is_folder, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info;

  if (fd < 0 || fstat (fd, &info) != 0)
    {
      bj_fd_set_io_error (error, errno, _("Opening “%s”"), path);
      return -1;
    }
  *is_folder = S_ISDIR (info.st_mode);
  if (!*is_folder && (folder_only || !S_ISREG (info.st_mode)))
    {
      bj_usage_error_set (error, folder_only ? _("“%s” is not a folder") : _("“%s” is neither a folder nor a file"),
                          path);
      return -1;
    }
  return g_steal_fd (&fd);
}

/* Copy jobs: one descriptor, one optional path. */
static GVariant *
call_copy (BjCli *cli, BjDBusProject *project, const char *method, int fd, const char *path, GError **error)
{
  g_autoptr(GUnixFDList) fds = g_unix_fd_list_new ();
  g_auto(GVariantDict) options = G_VARIANT_DICT_INIT (NULL);
  int handle = g_unix_fd_list_append (fds, fd, error);

  if (handle < 0)
    return NULL;
  if (path != NULL)
    g_variant_dict_insert_value (&options, "path", g_variant_new_bytestring (path));
  return bj_cli_call (cli, project, method, g_variant_new ("(h@a{sv})", handle, g_variant_dict_end (&options)), fds,
                      NULL, -1, error);
}

static int
copy_in (BjCli *cli, BjDBusProject *project, int fd, const char *path, GError **error)
{
  return bj_job_finish (cli, call_copy (cli, project, "CopyIn", fd, path, error), FALSE, error);
}

int
bj_verb_project_import (BjCli *cli, char **args, GError **error)
{
  g_auto(BjFd) fd = -1;
  g_autoptr(BjDBusProject) project = NULL;
  gboolean is_folder;
  int code;

  if (!bj_cli_parse (cli, NULL, &args, 2, 2, error))
    return -1;
  fd = open_source (args[2], TRUE, &is_folder, error);
  if (fd < 0 || !create_project (cli, args[1], error))
    return -1;
  project = find_project (cli, args[1], error);
  if (project == NULL)
    return -1;
  code = copy_in (cli, project, fd, NULL, error);
  if (code != BJ_EXIT_OK)
    bj_output_note (_("The project exists now, but the copy is not whole: belljar project copy-in %s %s"), args[1],
                    args[2]);
  return code;
}

int
bj_verb_project_copy_in (BjCli *cli, char **args, GError **error)
{
  g_auto(BjFd) fd = -1;
  g_autoptr(BjDBusProject) project = NULL;
  g_autofree char *path = NULL;
  gboolean is_folder = FALSE;

  if (!bj_cli_parse (cli, NULL, &args, 2, 3, error))
    return -1;
  fd = open_source (args[2], FALSE, &is_folder, error);
  if (fd < 0)
    return -1;
  project = find_project (cli, args[1], error);
  if (project == NULL)
    return -1;
  path = args[3] != NULL || is_folder ? g_strdup (args[3]) : g_path_get_basename (args[2]);
  return copy_in (cli, project, fd, path, error);
}

int
bj_verb_project_copy_out (BjCli *cli, char **args, GError **error)
{
  g_auto(BjFd) fd = -1;
  g_autoptr(BjDBusProject) project = NULL;
  gboolean is_folder;
  const char *path;

  if (!bj_cli_parse (cli, NULL, &args, 3, 3, error))
    return -1;
  project = find_project (cli, args[1], error);
  if (project == NULL)
    return -1;
  if (g_mkdir_with_parents (args[3], 0777) != 0)
    {
      bj_fd_set_io_error (error, errno, _("Making the folder “%s”"), args[3]);
      return -1;
    }
  fd = open_source (args[3], TRUE, &is_folder, error);
  if (fd < 0)
    return -1;
  path = g_str_equal (args[2], ".") ? NULL : args[2];
  return bj_job_finish (cli, call_copy (cli, project, "CopyOut", fd, path, error), FALSE, error);
}

static char **
make_log_row (GVariant *commit)
{
  const char *id = "";
  const char *subject = "";
  const char *verdict = "";
  const char *session = "";
  guint64 time = 0;
  g_autofree char *short_id = NULL;
  g_autofree char *shown_time = NULL;

  g_variant_lookup (commit, "commit", "&s", &id);
  g_variant_lookup (commit, "subject", "&s", &subject);
  g_variant_lookup (commit, "verdict", "&s", &verdict);
  g_variant_lookup (commit, "session", "&s", &session);
  g_variant_lookup (commit, "time", "t", &time);
  short_id = g_strndup (id, 12);
  shown_time = bj_output_format_time ((gint64) time);
  return bj_output_dup_row ((const char *[]){ short_id, shown_time, verdict, session, subject }, 5);
}

int
bj_verb_project_log (BjCli *cli, char **args, GError **error)
{
  static const char *const titles[] = { "COMMIT", "TIME", "VERDICT", "SESSION", "SUBJECT", NULL };
  int count = LOG_DEFAULT;
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = {
    { "count", 'n', 0, G_OPTION_ARG_INT, &count, N_("at most this many"), N_("NUMBER") },
    { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL },
    { 0 },
  };
  g_autoptr(BjDBusProject) project = NULL;
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GVariant) commits = NULL;
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  if (count < 1 || count > LOG_MAX)
    return bj_usage_error_set (error, _("--count is from 1 to %d"), LOG_MAX);
  project = find_project (cli, args[1], error);
  if (project != NULL)
    answer = bj_cli_call_simple (cli, project, "Log", g_variant_new ("(u)", (guint) count), error);
  if (answer == NULL)
    return -1;
  commits = g_variant_get_child_value (answer, 0);
  for (gsize i = 0; i < g_variant_n_children (commits); i++)
    {
      g_autoptr(GVariant) commit = g_variant_get_child_value (commits, i);

      g_ptr_array_add (rows, make_log_row (commit));
    }
  if (as_json)
    bj_output_json (json_gvariant_serialize (commits));
  else
    bj_output_table (titles, rows);
  return BJ_EXIT_OK;
}

int
bj_verb_project_delete (BjCli *cli, char **args, GError **error)
{
  g_autoptr(BjDBusProject) project = NULL;
  g_autoptr(GVariant) answer = NULL;

  if (!bj_cli_parse (cli, NULL, &args, 1, 1, error))
    return -1;
  project = find_project (cli, args[1], error);
  if (project != NULL)
    answer = bj_cli_call_simple (cli, project, "Delete", NULL, error);
  if (answer == NULL)
    return -1;
  bj_output_note (_("Deleted the project %s with its folder and history"), args[1]);
  return BJ_EXIT_OK;
}
