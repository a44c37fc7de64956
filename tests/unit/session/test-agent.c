/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an agent can call, and what the daemon remembers of the commands it left running. */
#include "bj-agent-peer.h"
#include "bj-remove.h"

#include <string.h>
#include <sys/stat.h>

static GDBusNodeInfo *
load (void)
{
  g_autofree char *xml = NULL;
  g_autoptr(GError) error = NULL;
  GDBusNodeInfo *node;

  g_assert_true (g_file_get_contents (XML_DIR "/org.belljar1.Agent.xml", &xml, NULL, NULL));
  node = g_dbus_node_info_new_for_xml (xml, &error);
  g_assert_no_error (error);
  return node;
}

/* What does not act on the machine is free; all else is a step. */
static const char *const uncounted[] = { "GetTask", "Record", "Ask", "Finish", "Fail", NULL };

static void
test_every_method_has_a_verb (void)
{
  g_autoptr(GDBusNodeInfo) node = load ();
  g_autoptr(GHashTable) functions = g_hash_table_new (NULL, NULL);
  GDBusMethodInfo **methods = node->interfaces[0]->methods;

  for (guint i = 0; methods[i] != NULL; i++)
    {
      gboolean counted = FALSE;
      BjVerbFunc func = bj_agent_verb_lookup (methods[i]->name, &counted);

      g_test_message ("%s", methods[i]->name);
      g_assert_true (func != NULL);
      g_assert_cmpint (counted, ==, !g_strv_contains (uncounted, methods[i]->name));
      g_assert_true (g_hash_table_add (functions, (gpointer) func));
    }
}

/* The table of verbs is private to its file, so the file is read: an entry without a method would be a hidden door. */
static void
test_every_verb_has_a_method (void)
{
  g_autoptr(GDBusNodeInfo) node = load ();
  g_autoptr(GRegex) entry = g_regex_new ("^  \\{ \"(\\w+)\", (?:bj_agent_)?verb_\\w+, (TRUE|FALSE) \\},$", G_REGEX_MULTILINE, 0, NULL);
  g_autoptr(GMatchInfo) match = NULL;
  g_autofree char *source = NULL;
  guint n = 0, methods = 0;

  g_assert_true (g_file_get_contents (VERBS_SOURCE, &source, NULL, NULL));
  for (g_regex_match (entry, source, 0, &match); g_match_info_matches (match); g_match_info_next (match, NULL), n++)
    {
      g_autofree char *name = g_match_info_fetch (match, 1);

      g_test_message ("%s", name);
      g_assert_nonnull (g_dbus_interface_info_lookup_method (node->interfaces[0], name));
    }
  while (node->interfaces[0]->methods[methods] != NULL)
    methods++;
  g_assert_cmpuint (n, ==, methods);
}

static void
test_nothing_else (void)
{
  static const char *const names[] = { "", "exec", "Exec ", "ExecX", "verb_exec", "Answer", "BuildImage", "OpenTranscript" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      gboolean counted = FALSE;

      g_assert_true (bj_agent_verb_lookup (names[i], &counted) == NULL);
    }
}

/* A session with a transcript, without a machine. */
typedef struct
{
  char *dir;
  BjContext context;
  BjSession *session;
  BjAgentCommands *commands;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  BjSessionPlan *plan = g_new0 (BjSessionPlan, 1);
  g_autofree char *evidence = NULL;
  g_autoptr(GError) error = NULL;

  f->dir = g_dir_make_tmp ("bj-agent-XXXXXX", &error);
  g_assert_no_error (error);
  f->context.state_dir = f->dir;
  plan->id = g_strdup ("abcdefgh");
  plan->kind = g_strdup ("task");
  plan->model = g_strdup ("");
  f->session = bj_session_new (&f->context, plan, NULL);
  evidence = bj_session_dup_dir (f->session, "evidence");
  g_assert_cmpint (g_mkdir_with_parents (evidence, 0700), ==, 0);
  g_assert_true (bj_session_open_transcript (f->session, &error));
  g_assert_no_error (error);
  f->commands = bj_agent_commands_new (f->session);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  bj_agent_commands_free (f->commands);
  while (g_main_context_iteration (NULL, FALSE))
    continue;
  g_assert_finalize_object (f->session);
  g_assert_true (bj_remove_tree (f->dir, NULL));
  g_free (f->dir);
}

static GVariant *
list (Fixture *f)
{
  return g_variant_ref_sink (bj_agent_commands_list (f->commands));
}

static void
assert_entry (GVariant *all, gsize index, guint32 id, const char *label, gboolean running, int exit)
{
  g_autoptr(GVariant) entry = g_variant_get_child_value (all, index);
  guint32 found_id = 0;
  const char *found_label = NULL;
  gboolean found_running = !running;
  int found_exit = 12345;

  g_assert_true (g_variant_lookup (entry, "id", "u", &found_id));
  g_assert_true (g_variant_lookup (entry, "label", "&s", &found_label));
  g_assert_true (g_variant_lookup (entry, "running", "b", &found_running));
  g_assert_true (g_variant_lookup (entry, "exit", "i", &found_exit));
  g_assert_cmpuint (g_variant_n_children (entry), ==, 4);
  g_assert_cmpuint (found_id, ==, id);
  g_assert_cmpstr (found_label, ==, label);
  g_assert_cmpint (found_running, ==, running);
  g_assert_cmpint (found_exit, ==, exit);
}

static void
test_list (Fixture *f, gconstpointer data)
{
  g_autoptr(GVariant) none = list (f);
  g_autoptr(GVariant) two = NULL;
  g_autoptr(GVariant) ended = NULL;
  g_autoptr(GVariant) recalled = NULL;

  g_assert_cmpstr (g_variant_get_type_string (none), ==, "aa{sv}");
  g_assert_cmpuint (g_variant_n_children (none), ==, 0);
  bj_agent_commands_add (f->commands, 1, "make serve");
  bj_agent_commands_add (f->commands, 7, "sleep 9");
  two = list (f);
  g_assert_cmpuint (g_variant_n_children (two), ==, 2);
  assert_entry (two, 0, 1, "make serve", TRUE, -1);
  assert_entry (two, 1, 7, "sleep 9", TRUE, -1);
  bj_agent_commands_end (f->commands, 7, 143, 15);
  bj_agent_commands_end (f->commands, 99, 0, 0); /* one that it never saw */
  ended = list (f);
  g_assert_cmpuint (g_variant_n_children (ended), ==, 2);
  assert_entry (ended, 0, 1, "make serve", TRUE, -1);
  assert_entry (ended, 1, 7, "sleep 9", FALSE, 143);

  /* The agent that goes on after a question finds them again. */
  bj_agent_commands_free (f->commands);
  f->commands = bj_agent_commands_new (f->session);
  bj_agent_commands_recall (f->commands);
  recalled = list (f);
  g_assert_true (g_variant_equal (recalled, ended));
}

/* The first end counts: what a later poll says changes nothing. */
static void
test_end_once (Fixture *f, gconstpointer data)
{
  g_autoptr(GVariant) after = NULL;

  bj_agent_commands_add (f->commands, 3, "false");
  bj_agent_commands_end (f->commands, 3, 1, 0);
  bj_agent_commands_end (f->commands, 3, 0, 0);
  after = list (f);
  assert_entry (after, 0, 3, "false", FALSE, 1);
}

/* The label is the model's: it comes back as text that cannot hurt a terminal, and not at any length. */
static void
test_labels (Fixture *f, gconstpointer data)
{
  g_autofree char *more = g_strnfill (5000, 'y');
  g_autoptr(GVariant) all = NULL;

  bj_agent_commands_add (f->commands, 1, "\x1b[31mred\n\xff");
  bj_agent_commands_add (f->commands, 2, more);
  all = list (f);
  for (gsize i = 0; i < 2; i++)
    {
      g_autoptr(GVariant) entry = g_variant_get_child_value (all, i);
      const char *label = NULL;

      g_assert_true (g_variant_lookup (entry, "label", "&s", &label));
      g_assert_true (g_utf8_validate (label, -1, NULL));
      g_assert_cmpuint (strlen (label), <, 500);
      g_assert_null (strpbrk (label, "\x1b\n"));
    }
}

static void
assert_record (JsonArray *records, guint index, const char *event, gint64 id)
{
  JsonObject *record = json_array_get_object_element (records, index);
  JsonObject *info = json_object_get_object_member (record, "data");

  g_assert_cmpstr (json_object_get_string_member (record, "type"), ==, "background");
  g_assert_cmpstr (json_object_get_string_member (record, "by"), ==, "seen");
  g_assert_cmpstr (json_object_get_string_member (info, "event"), ==, event);
  g_assert_cmpint (json_object_get_int_member (info, "id"), ==, id);
}

static void
test_records (Fixture *f, gconstpointer data)
{
  g_autoptr(JsonArray) records = NULL;
  g_autofree char *head = NULL;
  g_autoptr(GError) error = NULL;

  bj_agent_commands_add (f->commands, 4, "cat");
  bj_agent_commands_note (f->commands, 4, "send");
  bj_agent_commands_note (f->commands, 4, "kill");
  bj_agent_commands_end (f->commands, 4, -1, 9);
  bj_agent_commands_end (f->commands, 4, -1, 9);
  records = bj_session_dup_records (f->session, &head, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (json_array_get_length (records), ==, 4);
  assert_record (records, 0, "start", 4);
  assert_record (records, 1, "send", 4);
  assert_record (records, 2, "kill", 4);
  assert_record (records, 3, "end", 4);
}

#define ADD(name, func) g_test_add ("/session/agent/" name, Fixture, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/agent/every-method-has-a-verb", test_every_method_has_a_verb);
  g_test_add_func ("/session/agent/every-verb-has-a-method", test_every_verb_has_a_method);
  g_test_add_func ("/session/agent/nothing-else", test_nothing_else);
  ADD ("list", test_list);
  ADD ("end-once", test_end_once);
  ADD ("labels", test_labels);
  ADD ("records", test_records);
  return g_test_run ();
}
