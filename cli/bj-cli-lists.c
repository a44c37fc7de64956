/* SPDX-License-Identifier: GPL-3.0-or-later */

/* What is to be done: a project's task list, and a session's own plan. */

#include "bj-cli-output.h"
#include "bj-cli-verbs.h"

#include <glib/gi18n.h>

/* What a person wants changed. */
typedef struct
{
  char *add;
  char *set;
  char *status;
  char *text;
  char *position;
  gboolean as_json;
} TaskWords;

static void
task_words_clear (TaskWords *words)
{
  g_free (words->add);
  g_free (words->set);
  g_free (words->status);
  g_free (words->text);
  g_free (words->position);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (TaskWords, task_words_clear)

static const char *
get_text (GVariant *entry, const char *key)
{
  const char *text = "";

  g_variant_lookup (entry, key, "&s", &text);
  return text;
}

static guint
get_number (GVariant *entry, const char *key)
{
  guint number = 0;

  g_variant_lookup (entry, key, "u", &number);
  return number;
}

/* The newest of its sessions. Returns: (transfer full) */
static char *
get_session (GVariant *task)
{
  g_autoptr(GVariant) sessions = g_variant_lookup_value (task, "sessions", G_VARIANT_TYPE ("aa{sv}"));
  g_autoptr(GVariant) newest = NULL;

  if (sessions == NULL || g_variant_n_children (sessions) == 0)
    return g_strdup ("");
  newest = g_variant_get_child_value (sessions, 0);
  return g_strdup (get_text (newest, "session"));
}

static void
print_tasks (GVariant *tasks)
{
  static const char *const titles[] = { "ITEM", "STATUS", "SESSION", "OUTCOME", "VERDICT", "TEXT", NULL };
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);

  for (gsize i = 0; i < g_variant_n_children (tasks); i++)
    {
      g_autoptr(GVariant) task = g_variant_get_child_value (tasks, i);
      g_autofree char *id = g_strdup_printf ("%u", get_number (task, "id"));
      g_autofree char *session = get_session (task);
      const char *row[]
          = { id, get_text (task, "status"), session, get_text (task, "outcome"), get_text (task, "verdict"), get_text (task, "text") };

      g_ptr_array_add (rows, bj_output_dup_row (row, G_N_ELEMENTS (row)));
    }
  bj_output_table (titles, rows);
}

static gboolean
check_words (const TaskWords *words, GError **error)
{
  gboolean changes = words->status != NULL || words->text != NULL || words->position != NULL;
  const char *texts[] = { words->add, words->text, words->status };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (texts[i] != NULL && (*texts[i] == '\0' || !g_utf8_validate (texts[i], -1, NULL)))
      {
        bj_usage_error_set (error, _("An item needs UTF-8 text"));
        return FALSE;
      }
  if (words->add != NULL && words->set != NULL)
    bj_usage_error_set (error, _("--add and --set exclude each other"));
  else if (words->set != NULL && !changes)
    bj_usage_error_set (error, _("--set needs --status, --text or --position"));
  else if (words->set == NULL && changes)
    bj_usage_error_set (error, _("--status, --text and --position need --set ITEM"));
  else
    return TRUE;
  return FALSE;
}

static gboolean
parse_number (const char *text, const char *option, guint *number, GError **error)
{
  guint64 value;

  if (!g_ascii_string_to_unsigned (text, 10, 1, G_MAXUINT32, &value, NULL))
    {
      bj_usage_error_set (error, _("%s needs a number from 1"), option);
      return FALSE;
    }
  *number = (guint) value;
  return TRUE;
}

/* Returns: (transfer full): the call SetTask's arguments */
static GVariant *
words_to_change (const TaskWords *words, GError **error)
{
  g_auto(GVariantDict) options = G_VARIANT_DICT_INIT (NULL);
  guint id, position;

  if (!parse_number (words->set, "--set", &id, error))
    return NULL;
  if (words->position != NULL && !parse_number (words->position, "--position", &position, error))
    return NULL;
  if (words->position != NULL)
    g_variant_dict_insert (&options, "position", "u", position);
  if (words->status != NULL)
    g_variant_dict_insert (&options, "status", "s", words->status);
  if (words->text != NULL)
    g_variant_dict_insert (&options, "text", "s", words->text);
  return g_variant_new ("(u@a{sv})", id, g_variant_dict_end (&options));
}

static int
add_task (BjCli *cli, BjDBusProject *project, const TaskWords *words, GError **error)
{
  g_autoptr(GVariant) answer = bj_cli_call_simple (cli, project, "AddTask", g_variant_new ("(s)", words->add), error);
  JsonNode *node;
  guint id = 0;

  if (answer == NULL)
    return -1;
  g_variant_get (answer, "(u)", &id);
  if (!words->as_json)
    {
      bj_output_line ("%u", id);
      return BJ_EXIT_OK;
    }
  node = json_node_init_object (json_node_alloc (), NULL);
  json_node_take_object (node, json_object_new ());
  json_object_set_int_member (json_node_get_object (node), "id", id);
  bj_output_json (node);
  return BJ_EXIT_OK;
}

static int
list_tasks (BjCli *cli, BjDBusProject *project, gboolean as_json, GError **error)
{
  g_autoptr(GVariant) answer = bj_cli_call_simple (cli, project, "ListTasks", NULL, error);
  g_autoptr(GVariant) tasks = answer != NULL ? g_variant_get_child_value (answer, 0) : NULL;

  if (answer == NULL)
    return -1;
  if (as_json)
    bj_output_json (json_gvariant_serialize (tasks));
  else
    print_tasks (tasks);
  return BJ_EXIT_OK;
}

int
bj_verb_project_tasks (BjCli *cli, char **args, GError **error)
{
  g_auto(TaskWords) words = { 0 };
  const GOptionEntry entries[] = {
    { "add", 'a', 0, G_OPTION_ARG_FILENAME, &words.add, N_("add an item; prints its number"), N_("TEXT") },
    { "set", 's', 0, G_OPTION_ARG_FILENAME, &words.set, N_("change this item"), N_("ITEM") },
    { "status", 0, 0, G_OPTION_ARG_FILENAME, &words.status, N_("todo, doing, done or dropped"), N_("STATUS") },
    { "text", 0, 0, G_OPTION_ARG_FILENAME, &words.text, N_("its new text"), N_("TEXT") },
    { "position", 0, 0, G_OPTION_ARG_FILENAME, &words.position, N_("its new place in the list, from 1"), N_("NUMBER") },
    { "json", 0, 0, G_OPTION_ARG_NONE, &words.as_json, N_("print JSON"), NULL },
    { 0 },
  };
  g_autoptr(BjDBusProject) project = NULL;
  g_autoptr(GVariant) change = NULL;
  g_autoptr(GVariant) answer = NULL;
  BjClient *client;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error) || !check_words (&words, error))
    return -1;
  if (words.set != NULL)
    {
      change = words_to_change (&words, error);
      if (change == NULL)
        return -1;
      g_variant_ref_sink (change);
    }
  client = bj_cli_connect (cli, error);
  project = client != NULL ? bj_client_find_project (client, args[1], error) : NULL;
  if (project == NULL)
    return -1;
  if (words.add != NULL)
    return add_task (cli, project, &words, error);
  if (change != NULL)
    answer = bj_cli_call_simple (cli, project, "SetTask", change, error);
  if (change != NULL && answer == NULL)
    return -1;
  return change == NULL || words.as_json ? list_tasks (cli, project, words.as_json, error) : BJ_EXIT_OK;
}

int
bj_verb_plan (BjCli *cli, char **args, GError **error)
{
  static const char *const titles[] = { "STEP", "STATUS", "TEXT", NULL };
  gboolean as_json = FALSE;
  const GOptionEntry entries[] = { { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_("print JSON"), NULL }, { 0 } };
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(GVariant) answer = NULL;
  g_autoptr(GVariant) plan = NULL;

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  if (session != NULL)
    answer = bj_cli_call_simple (cli, session, "ListPlan", NULL, error);
  if (answer == NULL)
    return -1;
  plan = g_variant_get_child_value (answer, 0);
  for (gsize i = 0; i < g_variant_n_children (plan); i++)
    {
      g_autoptr(GVariant) step = g_variant_get_child_value (plan, i);
      g_autofree char *id = g_strdup_printf ("%u", get_number (step, "id"));
      const char *row[] = { id, get_text (step, "status"), get_text (step, "text") };

      g_ptr_array_add (rows, bj_output_dup_row (row, G_N_ELEMENTS (row)));
    }
  if (as_json)
    bj_output_json (json_gvariant_serialize (plan));
  else
    bj_output_table (titles, rows);
  return BJ_EXIT_OK;
}
