/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-verbs.h"

#include "bj-cli-output.h"
#include "bj-config-build.h"
#include "bj-untrusted.h"

#include <glib/gi18n.h>
#include <string.h>

#define MESSAGE_MAX 4096

static const BjCliVerb verbs[] = {
  { "task", "[TEXT]", N_("Let a sub-agent do a task in a throwaway machine, and print the report"),
    N_("Example:\n  belljar task \"Make the tests pass\" --project demo --check \"make test\"\n\n"
       "With --item the text may be left out: it is that item's of the project's task list.\n"
       "The check runs again in a fresh machine that has only the project; the report says what that proved.\n"
       "Ctrl-C asks for the session's end and waits for its report; a second one leaves it.\n"
       "Exit code: 0 proved or passes, 3 needs input, 4 in progress, 5 not proved, 6 the check failed, 1 error,\n"
       "2 wrong call."),
    bj_verb_task },
  { "answer", "SESSION TEXT", N_("Answer a session's question, and wait for its report"),
    N_("Example:\n  belljar answer k3 \"Keep the old name\"\n\n"
       "A session whose sub-agent asked something waits, its machine paused, until it is answered or stopped. It goes\n"
       "on where it was, with everything in the machine. Exit codes are those of “belljar task”."),
    bj_verb_answer },
  { "report", "SESSION", N_("Print a session's report, or verify it"),
    N_("Examples:\n  belljar report k3\n  belljar report k3 --verify --key report.key.pub\n\n"
       "--verify checks the signature, the transcript's chain, and that the report follows from the transcript.\n"
       "SESSION is an id or the beginning of one. Exit codes are those of “belljar task”; with --verify 0 or 1."),
    bj_verb_report },
  { "sessions", "", N_("List sessions"), N_("Example:\n  belljar sessions --json"), bj_verb_sessions },
  { "show", "SESSION", N_("Show what a session does, its task, check and plan"), N_("Example:\n  belljar show k3"),
    bj_verb_show },
  { "plan", "SESSION", N_("List the sub-agent's own plan and how far it is"), N_("Example:\n  belljar plan k3"), bj_verb_plan },
  { "stop", "SESSION", N_("End a session; what was done is recorded"),
    N_("Example:\n  belljar stop k3\n\nWaits until it has ended; --no-wait does not."), bj_verb_stop },
  { "pause", "SESSION", N_("Pause a session's machine"), N_("Example:\n  belljar pause k3"), bj_verb_pause },
  { "resume", "SESSION", N_("Let a paused session go on"), N_("Example:\n  belljar resume k3"), bj_verb_resume },
  { "extend", "SESSION [DURATION]", N_("Give a session more time"),
    N_("Example:\n  belljar extend k3 30m\n\nWithout a duration: 20 minutes."), bj_verb_extend },
  { "transcript", "SESSION", N_("Print what happened in a session, record by record"),
    N_("Examples:\n  belljar transcript k3 --follow\n  belljar transcript k3 > k3.jsonl\n"
       "  belljar transcript k3 --search segfault --long\n  belljar transcript k3 --html k3.html\n\n"
       "On a terminal a line a record, else the very bytes of the transcript (JSON Lines); --text and --raw choose,\n"
       "--long adds date and hash, --json prints one array. --html writes one page that needs nothing from elsewhere."),
    bj_verb_transcript },
  { "bundle", "SESSION", N_("Collect what a bug report about a session needs, without secrets"),
    N_("Examples:\n  belljar bundle k3\n  belljar bundle k3 --no-model-text -o k3.tar.gz\n\n"
       "Report, transcript, doctor's answers, versions, and what the daemon said about the session if the journal can be\n"
       "read. What looks like a secret is left out; read it before you send it."),
    bj_verb_bundle },
  { "screenshot", "SESSION", N_("Save a picture of a session's screen as PNG"),
    N_("Example:\n  belljar screenshot k3 -o screen.png\n\n"
       "Without -o: to standard output, or to SESSION.png when that is a terminal."),
    bj_verb_screenshot },
  { "exec", "SESSION -- COMMAND…", N_("Run a command in a session's machine"),
    N_("Examples:\n  belljar exec k3 -- uname -a\n  tar c . | belljar exec k3 --cwd /tmp -- tar x\n\n"
       "Bytes and exit code pass through. Standard input goes along unless it is a terminal.\n"
       "Ctrl-C stops the command."),
    bj_verb_exec },
  { "shell", "SESSION", N_("Open a shell in a session's machine"),
    N_("Examples:\n  belljar shell k3\n  belljar shell k3 --keep-failed\n\n"
       "--keep-failed waits for the end of a task and opens its machine if the work did not pass its check in a fresh\n"
       "machine. Such a machine has no network and not the project's folder; it goes when nobody has used it for a while,\n"
       "or with “belljar stop”."),
    bj_verb_shell },
  { "copy", "SOURCE DESTINATION", N_("Copy files and folders into a session's machine or out of it"),
    N_("Examples:\n  belljar copy ~/src/demo k3:/srv/\n  belljar copy k3:/var/log/dpkg.log .\n\n"
       "One of both is in a machine, SESSION:PATH, the other one is here (write ./a:b for a name with a colon). As with cp -r:\n"
       "into an existing folder or one that ends in “/”, else the source becomes the destination; folders that are missing are\n"
       "made. A copy that fails leaves nothing. Out of a machine come no devices, no owners and no setuid."),
    bj_verb_copy },
  { "images", "", N_("List base images"), N_("Example:\n  belljar images"), bj_verb_images },
  { "image build", "RECIPE", N_("Build a base image from a recipe and freeze it"),
    N_("Example:\n  belljar image build debian\n\nCtrl-C cancels the build; it leaves nothing behind."),
    bj_verb_image_build },
  { "image freeze", "NAME", N_("Make an image read-only and record its digest"),
    N_("Example:\n  belljar image freeze debian"), bj_verb_image_freeze },
  { "image verify", "NAME", N_("Read an image again and compare its digest"),
    N_("Example:\n  belljar image verify debian"), bj_verb_image_verify },
  { "image delete", "NAME", N_("Delete an image"),
    N_("Example:\n  belljar image delete debian --force\n\nThe default image goes only with --force."),
    bj_verb_image_delete },
  { "image default", "NAME", N_("Choose the image of sessions that name none"),
    N_("Example:\n  belljar image default debian"), bj_verb_image_default },
  { "projects", "", N_("List projects"), N_("Example:\n  belljar projects"), bj_verb_projects },
  { "project create", "NAME", N_("Create an empty project"), N_("Example:\n  belljar project create demo"),
    bj_verb_project_create },
  { "project import", "NAME FOLDER", N_("Create a project with a copy of a folder"),
    N_("Example:\n  belljar project import demo ~/src/demo"), bj_verb_project_import },
  { "project copy-in", "NAME SOURCE [PATH]", N_("Copy a file or a folder's contents into a project"),
    N_("Examples:\n  belljar project copy-in demo ~/src/demo\n  belljar project copy-in demo notes.txt doc/notes.txt"),
    bj_verb_project_copy_in },
  { "project copy-out", "NAME PATH FOLDER", N_("Copy something out of a project"),
    N_("Examples:\n  belljar project copy-out demo . ~/demo-result\n  belljar project copy-out demo src/main.c /tmp"),
    bj_verb_project_copy_out },
  { "project log", "NAME", N_("List a project's commits"), N_("Example:\n  belljar project log demo -n 5"),
    bj_verb_project_log },
  { "project tasks", "NAME", N_("List what is to be done in a project, or change that"),
    N_("Examples:\n  belljar project tasks demo\n  belljar project tasks demo --add \"Write the manual\"\n"
       "  belljar project tasks demo --set 3 --status done\n  belljar project tasks demo --set 3 --position 1\n\n"
       "“belljar task --project demo --item 3” lets a sub-agent do an item."),
    bj_verb_project_tasks },
  { "project delete", "NAME", N_("Delete a project with its folder and history"),
    N_("Example:\n  belljar project delete demo"), bj_verb_project_delete },
  { "jobs", "", N_("List long work that goes on or has just ended"), N_("Example:\n  belljar jobs"), bj_verb_jobs },
  { "job cancel", "JOB", N_("End long work that goes on"),
    N_("Example:\n  belljar job cancel 3\n\nJOB is a number that “belljar jobs” shows."), bj_verb_job_cancel },
  { "doctor", "", N_("Check whether this host can run sessions"),
    N_("Example:\n  belljar doctor\n\nEach check that fails names its fix. Exit code 1 if one does."), bj_verb_doctor },
  { "disk", "", N_("Show what the state folder takes on the disk, by kind"), N_("Example:\n  belljar disk --json"), bj_verb_disk },
  { "prune", "", N_("Free what nobody needs any more"),
    N_("Example:\n  belljar prune --dry-run\n\n"
       "Removes templates of images that are gone, folders of sessions that nobody knows, and, if [projects] evidence\n"
       "in belljar.conf sets a cap, the sessions that ended longest ago. Needs an administrator."),
    bj_verb_prune },
  { "complete", "KIND", NULL, "", bj_verb_complete }, /* for the shell's completion, not for people */
  { NULL, NULL, NULL, NULL, NULL },
};

const BjCliVerb *
bj_verbs_get (void)
{
  return verbs;
}

/* Whether @verb is of the group @word: "image build" is of "image". */
static gboolean
is_of_group (const BjCliVerb *verb, const char *word)
{
  gsize length = strlen (word);

  return strncmp (verb->name, word, length) == 0 && verb->name[length] == ' ';
}

static gboolean
has_group (const char *word)
{
  for (const BjCliVerb *verb = verbs; verb->name != NULL; verb++)
    if (is_of_group (verb, word))
      return TRUE;
  return FALSE;
}

const BjCliVerb *
bj_verbs_find (char **args, guint *used, GError **error)
{
  g_autofree char *two = args[0] != NULL && args[1] != NULL ? g_strconcat (args[0], " ", args[1], NULL) : NULL;
  g_autofree char *shown = NULL;

  for (const BjCliVerb *verb = verbs; verb->name != NULL; verb++)
    {
      *used = g_strcmp0 (verb->name, two) == 0 ? 2 : 1;
      if (*used == 2 || g_strcmp0 (verb->name, args[0]) == 0)
        return verb;
    }
  if (args[0] == NULL)
    bj_usage_error_set (error, _("Say what to do, for example: belljar task \"Make the tests pass\" --project demo"));
  else if (args[1] == NULL && has_group (args[0]))
    bj_usage_error_set (error, _("“belljar %s” needs another word"), args[0]);
  else
    {
      shown = bj_untrusted_escape (two != NULL && has_group (args[0]) ? two : args[0], -1, 80);
      bj_usage_error_set (error, _("There is no “belljar %s”"), shown);
    }
  return NULL;
}

char *
bj_verbs_format_help (const char *group)
{
  GString *help = g_string_new (NULL);

  g_string_append_printf (help, _("Usage: belljar %s%sVERB …\n\n"), group != NULL ? group : "",
                          group != NULL ? " " : "");
  if (group == NULL)
    g_string_append (help, _("Hands a task to a model that has a real, throwaway machine in front of it, and hands back "
                             "a report\nwhose facts were seen from outside.\n\n"));
  for (const BjCliVerb *verb = verbs; verb->name != NULL; verb++)
    if (verb->summary != NULL && (group == NULL || is_of_group (verb, group)))
      g_string_append_printf (help, "  %-17s %s\n", verb->name, _(verb->summary));
  g_string_append (help, _("\nFirst steps:\n"
                           "  belljar doctor\n"
                           "  belljar image build debian\n"
                           "  belljar project import demo ~/src/demo\n"
                           "  belljar task \"Make the tests pass\" --project demo --check \"make test\"\n\n"
                           "“belljar VERB --help” tells more. BELLJAR_BUS names the bus: system (default), session or "
                           "an address.\n"));
  return g_string_free (help, FALSE);
}

static int
fail (const GError *error, const char *verb)
{
  gboolean usage = error->domain == BJ_USAGE_ERROR;
  g_autofree char *message = bj_untrusted_escape_block (error->message, -1, MESSAGE_MAX);

  bj_output_note ("belljar: %s", message);
  if (usage)
    bj_output_note (_("Try “belljar %s%s--help”."), verb != NULL ? verb : "", verb != NULL ? " " : "");
  return usage ? BJ_EXIT_USAGE : BJ_EXIT_ERROR;
}

static int
run (const BjCliVerb *verb, char **args)
{
  g_autoptr(BjCli) cli = bj_cli_new (verb);
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) copy = g_strdupv (args); /* parsing frees what it takes out */
  int code = verb->run (cli, copy, &error);

  if (error == NULL && bj_output_finish (&error))
    return code;
  return fail (error, verb->name);
}

static gboolean
is_help (const char *word)
{
  return g_strcmp0 (word, "--help") == 0 || g_strcmp0 (word, "-h") == 0 || g_strcmp0 (word, "help") == 0;
}

/* "help image build" is "image build --help", "help image" is "image --help". */
static int
help_about (char **words)
{
  guint n = g_strv_length (words);
  g_autofree char **args = g_new0 (char *, n + 2);

  memcpy (args, words, n * sizeof *args);
  args[n] = (char *) "--help";
  return bj_verbs_main (args);
}

int
bj_verbs_main (char **args)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *help = NULL;
  const BjCliVerb *verb;
  guint used = 0;

  if (g_strcmp0 (args[0], "--version") == 0)
    {
      bj_output_line ("belljar %s", BJ_VERSION);
      return BJ_EXIT_OK;
    }
  if (g_strcmp0 (args[0], "help") == 0 && args[1] != NULL)
    return help_about (args + 1);
  if (is_help (args[0]) || (args[0] != NULL && has_group (args[0]) && is_help (args[1])))
    {
      help = bj_verbs_format_help (is_help (args[0]) ? NULL : args[0]);
      bj_output_text (help);
      return BJ_EXIT_OK;
    }
  verb = bj_verbs_find (args, &used, &error);
  if (verb == NULL)
    return fail (error, args[0] != NULL && has_group (args[0]) ? args[0] : NULL);
  return run (verb, args + used - 1);
}
