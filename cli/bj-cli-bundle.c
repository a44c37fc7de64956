/* SPDX-License-Identifier: GPL-3.0-or-later */

/* What a bug report needs of a session: only what this caller may see anyway, and secrets taken out. */

#include "bj-cli-output.h"
#include "bj-cli-scrub.h"
#include "bj-cli-tar.h"
#include "bj-cli-transcript.h"
#include "bj-cli-verbs.h"

#include "bj-config-build.h"
#include "bj-fd.h"
#include "bj-spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DOCTOR_TIMEOUT_MS (180 * 1000)
#define TRANSCRIPT_MAX (72u * 1024 * 1024)
#define JOURNAL_S 20
#define JOURNAL_MAX (16u * 1024 * 1024)

/* Texts that the model wrote, in records and in the report. */
#define LEFT_OUT "[left out]"

typedef struct
{
  BjCli *cli;
  BjClient *client;
  BjDBusSession *session;
  gboolean no_model_text;
  BjScrubber *scrubber;
  GPtrArray *names;    /* NULL-terminated at the end */
  GPtrArray *contents; /* GBytes */
  GString *problems;   /* what is not here, and why */
} Bundle;

/* What goes in as it is. */
static void
add_bytes (Bundle *bundle, const char *name, GBytes *bytes)
{
  g_ptr_array_add (bundle->names, (gpointer) name);
  g_ptr_array_add (bundle->contents, g_bytes_ref (bytes));
}

static void
add_text (Bundle *bundle, const char *name, const char *text)
{
  char *clean = bj_scrubber_clean_text (bundle->scrubber, text);
  g_autoptr(GBytes) bytes = g_bytes_new_take (clean, strlen (clean));

  add_bytes (bundle, name, bytes);
}

/* @node: (transfer full) */
static void
add_json (Bundle *bundle, const char *name, JsonNode *node)
{
  g_autoptr(JsonNode) owned = node;
  g_autoptr(GBytes) bytes = NULL;
  char *text;

  bj_scrubber_clean_node (bundle->scrubber, owned);
  text = json_to_string (owned, TRUE);
  bytes = g_bytes_new_take (text, strlen (text));
  add_bytes (bundle, name, bytes);
}

static void
leave_out (JsonObject *object, const char *key)
{
  if (object != NULL && json_object_has_member (object, key))
    json_object_set_string_member (object, key, LEFT_OUT);
}

static JsonObject *
get_object (JsonObject *object, const char *key)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, key) : NULL;

  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

static gboolean
add_report (Bundle *bundle, GError **error)
{
  g_autoptr(GVariant) answer = bj_cli_call_simple (bundle->cli, bundle->session, "Report", NULL, error);
  g_autoptr(JsonNode) root = NULL;
  const char *text = "";

  if (answer == NULL)
    return FALSE;
  g_variant_get (answer, "(&s)", &text);
  root = json_from_string (text, error);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    return FALSE;
  if (bundle->no_model_text)
    {
      leave_out (get_object (json_node_get_object (root), "summary"), "text");
      leave_out (json_node_get_object (root), "question");
    }
  add_json (bundle, "report.json", g_steal_pointer (&root));
  return TRUE;
}

static gboolean
add_session (Bundle *bundle, GError **error)
{
  g_autoptr(GVariant) details = bj_cli_call_simple (bundle->cli, bundle->session, "Details", NULL, error);
  g_autoptr(GVariant) plan = details != NULL ? bj_cli_call_simple (bundle->cli, bundle->session, "ListPlan", NULL, error) : NULL;
  g_autoptr(GVariant) details_value = NULL;
  g_autoptr(GVariant) plan_value = NULL;
  JsonNode *node;
  JsonObject *object;

  if (plan == NULL)
    return FALSE;
  details_value = g_variant_get_child_value (details, 0);
  plan_value = g_variant_get_child_value (plan, 0);
  node = bj_output_object_to_json (G_DBUS_PROXY (bundle->session), "session");
  object = json_node_get_object (node);
  json_object_set_member (object, "details", json_gvariant_serialize (details_value));
  if (bundle->no_model_text)
    {
      leave_out (get_object (object, "details"), "summary");
      leave_out (get_object (object, "details"), "question");
    }
  else
    json_object_set_member (object, "plan", json_gvariant_serialize (plan_value));
  add_json (bundle, "session.json", node);
  return TRUE;
}

/* Without what the model claimed, if that is asked for; a line that has nothing to hide keeps its bytes, for the sake of its hash. */
static void
append_record (Bundle *bundle, GString *out, const char *line, gsize length)
{
  g_autoptr(JsonParser) parser = json_parser_new ();
  g_autofree char *text = NULL;
  guint before = bj_scrubber_get_count (bundle->scrubber);
  gboolean claimed;
  JsonNode *root = NULL;

  if (json_parser_load_from_data (parser, line, (gssize) length, NULL))
    root = json_parser_get_root (parser);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    return;
  claimed = g_strcmp0 (bj_json_get_text (json_node_get_object (root), "by"), "seen") != 0;
  if (claimed && bundle->no_model_text)
    leave_out (json_node_get_object (root), "data");
  bj_scrubber_clean_node (bundle->scrubber, root);
  if (bj_scrubber_get_count (bundle->scrubber) > before || (claimed && bundle->no_model_text))
    text = json_to_string (root, FALSE);
  g_string_append_len (out, text != NULL ? text : line, text != NULL ? -1 : (gssize) length);
  g_string_append_c (out, '\n');
}

static gboolean
add_transcript (Bundle *bundle, GError **error)
{
  g_auto(BjFd) fd = bj_cli_open_transcript (bundle->cli, bundle->session, error);
  g_autoptr(GBytes) transcript = fd >= 0 ? bj_fd_read_to_end (fd, TRANSCRIPT_MAX, error) : NULL;
  g_autoptr(GBytes) clean = NULL;
  const char *at, *newline;
  GString *out;
  gsize left;

  if (transcript == NULL)
    return FALSE;
  at = g_bytes_get_data (transcript, &left);
  out = g_string_sized_new (left);
  while (left > 0 && (newline = memchr (at, '\n', left)) != NULL)
    {
      append_record (bundle, out, at, (gsize) (newline - at));
      left -= (gsize) (newline + 1 - at);
      at = newline + 1;
    }
  clean = g_string_free_to_bytes (out);
  add_bytes (bundle, "transcript.jsonl", clean);
  return TRUE;
}

static gboolean
add_doctor (Bundle *bundle, GError **error)
{
  g_autoptr(GVariant) answer
      = bj_cli_call (bundle->cli, bj_client_get_manager (bundle->client), "Doctor", NULL, NULL, NULL, DOCTOR_TIMEOUT_MS, error);
  g_autoptr(GVariant) checks = answer != NULL ? g_variant_get_child_value (answer, 0) : NULL;

  if (checks != NULL)
    add_json (bundle, "doctor.json", json_gvariant_serialize (checks));
  return checks != NULL;
}

/* The host's name is nobody's business. */
static void
add_versions (Bundle *bundle)
{
  JsonNode *node = bj_output_object_to_json (G_DBUS_PROXY (bj_client_get_manager (bundle->client)), NULL);
  JsonObject *object = json_node_get_object (node);
  g_autofree char *os = g_get_os_info (G_OS_INFO_KEY_PRETTY_NAME);
  g_autofree char *kernel = NULL;
  struct utsname host;

  if (uname (&host) == 0)
    kernel = g_strdup_printf ("%s %s %s %s", host.sysname, host.release, host.version, host.machine);
  json_object_set_string_member (object, "command", BJ_VERSION);
  json_object_set_string_member (object, "kernel", kernel != NULL ? kernel : "");
  json_object_set_string_member (object, "os", os != NULL ? os : "");
  add_json (bundle, "versions.json", node);
}

/* What the daemon said about this session, where the caller may read the host's journal. Returns: whether it could be read */
static gboolean
add_messages (Bundle *bundle)
{
  const char *id = bj_client_get_id (bundle->session);
  g_autofree char *since = g_strdup_printf ("--since=@%" G_GUINT64_FORMAT, bj_dbus_session_get_started_at (bundle->session));
  const char *const argv[]
      = { "journalctl", "--quiet", "--no-pager", "--output=short-iso-precise", since, "_COMM=belljard", NULL };
  const BjSpawn spawn = { .argv = argv, .timeout_s = JOURNAL_S, .max_output = JOURNAL_MAX };
  g_autoptr(GBytes) output = NULL;
  g_autoptr(GString) ours = g_string_new (NULL);
  g_autofree char *text = NULL;
  g_auto(GStrv) lines = NULL;

  if (!bj_spawn_run (&spawn, &output, NULL, NULL) || g_bytes_get_size (output) == 0)
    return FALSE;
  text = g_strndup (g_bytes_get_data (output, NULL), g_bytes_get_size (output));
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    if (strstr (lines[i], id) != NULL)
      g_string_append_printf (ours, "%s\n", lines[i]);
  add_text (bundle, "messages.txt", ours->str);
  return TRUE;
}

/* In English: whoever gets it may speak something else than whoever sends it. */
static void
add_readme (Bundle *bundle, gboolean has_messages)
{
  g_autofree char *text = g_strdup_printf (
      "Belljar session %s, for a bug report\n\n"
      "report.json       the report\n"
      "session.json      state, task and plan\n"
      "transcript.jsonl  what happened, a record a line\n"
      "doctor.json       whether the host can run sessions\n"
      "versions.json     versions and settings of the daemon that everybody may see\n"
      "%s\n%s\n"
      "%s"
      "Looked like a secret and was left out: %u places. What looks like none may still be one: read before you send it.\n"
      "Signature and hash chain hold for the original only: belljar report %s --verify\n",
      bj_client_get_id (bundle->session),
      has_messages ? "messages.txt      what the daemon said about it" : "The daemon's messages could not be read from here.",
      bundle->problems->str,
      bundle->no_model_text ? "Texts of the model were left out, as asked; commands that it ran are there.\n" : "",
      bj_scrubber_get_count (bundle->scrubber), bj_client_get_id (bundle->session));

  add_text (bundle, "README.txt", text);
}

/* What cannot be had is told in its place: a session may have failed before it had a transcript. */
static gboolean
collect (Bundle *bundle, GError **error)
{
  static const struct
  {
    const char *name;
    gboolean (*add) (Bundle *bundle, GError **error);
  } parts[] = { { "session.json", add_session }, { "report.json", add_report }, { "transcript.jsonl", add_transcript },
                { "doctor.json", add_doctor } };

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      g_autoptr(GError) problem = NULL;

      if (parts[i].add (bundle, &problem))
        continue;
      if (i == 0) /* not even what everybody may ask who may see it at all */
        {
          g_propagate_error (error, g_steal_pointer (&problem));
          return FALSE;
        }
      g_string_append_printf (bundle->problems, "%s is not here: %s\n", parts[i].name,
                              problem != NULL ? problem->message : "it has another form");
    }
  add_versions (bundle);
  add_readme (bundle, add_messages (bundle));
  g_ptr_array_add (bundle->names, NULL);
  return TRUE;
}

/* Nobody else may read it; what is not whole does not stay. */
static gboolean
save (Bundle *bundle, const char *path, GError **error)
{
  g_autofree char *folder = g_strconcat ("belljar-", bj_client_get_id (bundle->session), NULL);
  const char *const *names = (const char *const *) bundle->names->pdata;
  g_auto(BjFd) fd = -1;
  struct stat info;

  if (g_str_equal (path, "-"))
    return bj_tar_write (STDOUT_FILENO, folder, names, bundle->contents, error);
  fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
  if (fd < 0)
    return bj_fd_set_io_error (error, errno, _("Making the file “%s”"), path);
  if (bj_tar_write (fd, folder, names, bundle->contents, error))
    return TRUE;
  if (fstat (fd, &info) == 0 && S_ISREG (info.st_mode))
    g_unlink (path);
  return FALSE;
}

int
bj_verb_bundle (BjCli *cli, char **args, GError **error)
{
  g_autofree char *path = NULL;
  Bundle bundle = { .cli = cli };
  const GOptionEntry entries[] = {
    { "output", 'o', 0, G_OPTION_ARG_FILENAME, &path, N_("where to; “-” is standard output"), N_("FILE") },
    { "no-model-text", 0, 0, G_OPTION_ARG_NONE, &bundle.no_model_text, N_("leave out what the model wrote"), NULL },
    { 0 },
  };
  g_autoptr(BjDBusSession) session = NULL;
  g_autoptr(BjScrubber) scrubber = NULL;
  g_autoptr(GPtrArray) names = g_ptr_array_new ();
  g_autoptr(GPtrArray) contents = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  g_autoptr(GString) problems = g_string_new (NULL);
  g_auto(GStrv) environ = g_get_environ ();

  if (!bj_cli_parse (cli, entries, &args, 1, 1, error))
    return -1;
  session = bj_cli_find_session (cli, args[1], error);
  if (session == NULL)
    return -1;
  scrubber = bj_scrubber_new ((const char *const *) environ);
  bundle.client = bj_cli_connect (cli, NULL);
  bundle.session = session;
  bundle.scrubber = scrubber;
  bundle.names = names;
  bundle.contents = contents;
  bundle.problems = problems;
  if (path == NULL)
    path = g_strdup_printf ("belljar-%s.tar.gz", bj_client_get_id (session));
  if (!collect (&bundle, error) || !save (&bundle, path, error))
    return -1;
  if (!g_str_equal (path, "-"))
    bj_output_note (_("Saved as %s; places that looked like a secret and were left out: %u. Read it before you send it."), path,
                    bj_scrubber_get_count (scrubber));
  return BJ_EXIT_OK;
}
