/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-copy.h"

#include "bj-cli-copy-place.h"
#include "bj-cli-output.h"
#include "bj-cli-verbs.h"
#include "bj-config-build.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-units.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gi18n.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_SHOWN 120
#define NOTES_MAX 2000
#define TAR_CHANGED 1 /* GNU tar: a file changed while it was read */

/*
 * The machine's end of a copy into it: unpacks into a fresh folder beside the destination, and moves that when all is there.
 * Names are arguments. $1 what, $2 destination, $3 its folder, $4 the source's name ("": its contents), $5 the fresh folder's name,
 * $6 1: into the destination
 */
static const char guest_script[] =
  "to=$2 at=$3 in=$6; [ -d \"$to\" ] && in=1\n"
  "[ \"$in\" = 1 ] && at=$to && to=${to%/}/$4\n"
  "up=$at\n"
  "while [ ! -d \"$at\" ]; do\n"
  "  if [ -e \"$at\" ] || [ -L \"$at\" ]; then echo \"$at is no folder\" >&2; exit 1; fi\n"
  "  at=${at%/*}; at=${at:-/}\n"
  "done\n"
  "new=${at%/}/$5\n"
  "case $1 in\n"
  "unpack) mkdir -m 700 -- \"$new\" && exec tar -x -f - --no-same-owner --no-same-permissions -C \"$new\" ;;\n"
  "drop) exec rm -rf -- \"$new\" ;;\n"
  "esac\n"
  "mkdir -p -- \"$up\" || exit\n"
  "from=$new${4:+/$4} to=${to%/}\n"
  "if [ -z \"$4\" ] || { [ -d \"$from\" ] && [ -d \"$to\" ] && [ ! -L \"$to\" ]; }; then\n"
  /* Before anything is moved: a folder and something else with one name. */
  "  find \"$from\" -mindepth 1 -exec sh -c 'from=$1 to=$2; shift 2\n"
  "    is_folder () { [ -d \"$1\" ] && [ ! -L \"$1\" ]; }\n"
  "    for path; do\n"
  "      there=$to/${path#\"$from\"/}\n"
  "      if is_folder \"$path\"; then is_folder \"$there\" || { [ ! -e \"$there\" ] && [ ! -L \"$there\" ]; }; else\n"
  "        ! is_folder \"$there\"; fi || { echo \"$there is in the way\" >&2; exit 1; }\n"
  "    done' sh \"$from\" \"$to\" {} + || exit 1\n"
  "  cp -dR --preserve=links,timestamps --remove-destination -- \"$from/.\" \"$to/\"\n"
  "else\n"
  "  mv -fT -- \"$from\" \"$to\"\n"
  "fi && exec rm -rf -- \"$new\"\n";

static void
copy_clear (BjCopy *self)
{
  bj_cli_on_interrupt (self->cli, NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (self->signals); i++)
    g_clear_handle_id (&self->signals[i], g_source_remove);
  g_clear_pointer (&self->status, bj_status_free);
  g_clear_object (&self->session);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjCopy, copy_clear)

/* The first one ends the copy in order. A second one finds something that hangs: the daemon ends the command of who has gone. */
static void
on_interrupt (guint count, gpointer user_data)
{
  BjCopy *self = user_data;

  self->interrupted = TRUE;
  if (self->flow != NULL)
    bj_flow_stop (self->flow);
  if (self->child != NULL)
    g_subprocess_force_exit (self->child);
  if (count == 1)
    bj_status_note (self->status, _("Ending the copy; Ctrl-C once more does not wait for the machine."));
  else
    g_dbus_connection_close_sync (g_dbus_proxy_get_connection (G_DBUS_PROXY (self->session)), NULL, NULL);
}

static gboolean
on_end (gpointer user_data)
{
  on_interrupt (1, user_data);
  return G_SOURCE_CONTINUE;
}

/* "SESSION:PATH", with no slash before the colon. Returns: (nullable): the colon */
static const char *
find_colon (const char *word)
{
  const char *colon = strchr (word, ':');

  return colon != NULL && colon > word && memchr (word, '/', (gsize) (colon - word)) == NULL ? colon : NULL;
}

/* What begins with "-" is no option then. */
static char *
dup_safe (const char *path)
{
  return *path == '/' ? g_strdup (path) : g_strconcat ("./", path, NULL);
}

/* tar's own words for one source: its last part as it is, or its contents. Returns: (transfer full) */
static GPtrArray *
build_tar (const char *source, char **name)
{
  GPtrArray *argv = g_ptr_array_new_with_free_func (g_free);
  static const char *const fixed[] = { "tar", "--create", "--file=-", "--format=gnu", "--sparse", "--owner=0", "--group=0",
                                       "--numeric-owner", "--mode=ug-s", "-C" };
  g_autofree char *folder = NULL;
  gboolean slash = g_str_has_suffix (source, "/");

  bj_place_split (source, &folder, name);
  for (guint i = 0; i < G_N_ELEMENTS (fixed); i++)
    g_ptr_array_add (argv, g_strdup (fixed[i]));
  g_ptr_array_add (argv, dup_safe (*name != NULL ? folder : source));
  g_ptr_array_add (argv, *name != NULL ? g_strconcat ("./", *name, slash ? "/" : "", NULL) : g_strdup ("."));
  g_ptr_array_add (argv, NULL);
  return argv;
}

static gboolean
set_guest_error (BjCopy *self, const char *path, int code, const char *text, GError **error)
{
  const char *id = bj_client_get_id (self->session);

  if (*text != '\0')
    return bj_error_set (error, BJ_ERROR_FAILED, _("“%s” in session %s: %s"), path, id, text);
  return bj_error_set (error, BJ_ERROR_FAILED, _("“%s” in session %s: tar ended with exit code %d"), path, id, code);
}

static void
note_changed (int code, const char *text)
{
  g_autofree char *shown = bj_untrusted_escape (text, -1, NOTES_MAX);

  if (code == TAR_CHANGED)
    bj_output_note (_("belljar: something changed while it was read: %s"), shown);
}

/* A program that was installed never lies below a folder with a build.ninja. */
static char *
find_unpacker (void)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = g_path_get_dirname (self != NULL ? self : ".");
  g_autofree char *mark = g_build_filename (folder, "..", "build.ninja", NULL);

  if (g_file_test (mark, G_FILE_TEST_IS_REGULAR))
    return g_build_filename (folder, "..", "helpers", "belljar-unpack", NULL);
  return g_build_filename (BJ_LIBEXECDIR, "belljar-unpack", NULL);
}

/* What belljar-unpack printed: two numbers and a name. */
static void
note_facts (const char *facts)
{
  unsigned long long skipped = 0;
  unsigned long long outward = 0;
  int used = 0;
  g_autofree char *name = NULL;

  if (sscanf (facts, "%llu %llu %n", &skipped, &outward, &used) < 2)
    return;
  name = bj_untrusted_escape (facts + used, -1, NAME_SHOWN);
  if (skipped > 0)
    bj_output_note (g_dngettext (GETTEXT_PACKAGE, "belljar: left out %llu device, pipe or socket: %s",
                                 "belljar: left out %llu devices, pipes or sockets: %s and more", skipped),
                    skipped, name);
  if (outward > 0)
    bj_output_note (g_dngettext (GETTEXT_PACKAGE, "belljar: %llu symbolic link leads out of what was copied: do not follow it unseen",
                                 "belljar: %llu symbolic links lead out of what was copied: do not follow them unseen", outward),
                    outward);
}

static void
note_copied (BjCopy *self)
{
  double seconds = (double) MAX (g_get_monotonic_time () - self->begun, 1) / G_USEC_PER_SEC;
  g_autofree char *size = bj_output_format_size (self->bytes);
  g_autofree char *rate = bj_output_format_size ((guint64) ((double) self->bytes / seconds));

  if (bj_output_is_terminal (STDERR_FILENO))
    bj_output_note (_("Copied %s in %.1f s, %s/s"), size, seconds, rate);
}

/* The unpacker's complaint counts first when it went first: the guest's tar then only lost its reader. */
static gboolean
check_out (BjCopy *self, const char *path, const BjCopyEnds *ends, GError **error)
{
  gboolean guest_failed = ends->guest_code != 0 && ends->guest_code != TAR_CHANGED;

  if (guest_failed && !ends->broken)
    return set_guest_error (self, path, ends->guest_code, ends->guest_text, error);
  if (ends->child_code != 0)
    return bj_error_set (error, BJ_ERROR_FAILED, "%s",
                         *ends->child_text != '\0' ? ends->child_text : _("belljar-unpack was ended by a signal"));
  return !guest_failed || set_guest_error (self, path, ends->guest_code, ends->guest_text, error);
}

static gboolean
copy_out (BjCopy *self, const char *source, const char *destination, GError **error)
{
  g_autofree char *name = NULL;
  g_autofree char *unpacker = find_unpacker ();
  g_autoptr(GPtrArray) argv = build_tar (source, &name);
  g_auto(BjCopyEnds) ends = { 0 };
  g_autoptr(BjPlace) place = bj_place_new (destination, name, error);

  if (place == NULL
      || !bj_copy_transfer (self, (const char *const *) argv->pdata, (const char *[]){ unpacker, NULL },
                            bj_place_get_folder (place), TRUE, &ends, error)
      || !check_out (self, source, &ends, error) || !bj_place_finish (place, error))
    return FALSE;
  note_changed (ends.guest_code, ends.guest_text);
  note_facts (ends.child_facts);
  return TRUE;
}

static gboolean
check_in (BjCopy *self, const char *source, const char *destination, const BjCopyEnds *ends, GError **error)
{
  if (ends->guest_code != 0)
    return set_guest_error (self, destination, ends->guest_code, ends->guest_text, error);
  if (ends->child_code == 0 || ends->child_code == TAR_CHANGED)
    return TRUE;
  if (*ends->child_text != '\0')
    return bj_error_set (error, BJ_ERROR_FAILED, _("Reading “%s”: %s"), source, ends->child_text);
  return bj_error_set (error, BJ_ERROR_FAILED, _("Reading “%s”: tar ended with exit code %d"), source, ends->child_code);
}

/* The last step in the machine. */
static gboolean
move_in (BjCopy *self, const char *const *argv, const char *destination, GError **error)
{
  g_autofree char *text = NULL;
  int code = bj_copy_run_small (self, argv, &text, error);

  return code == 0 || (code > 0 && set_guest_error (self, destination, code, text, error));
}

static gboolean
copy_in (BjCopy *self, const char *source, const char *destination, GError **error)
{
  g_autofree char *fresh = g_strdup_printf (".belljar-copy-%08x%08x", g_random_int (), g_random_int ());
  g_autofree char *to = dup_safe (destination);
  g_autofree char *name = NULL;
  g_autofree char *last = NULL;
  g_autofree char *folder = NULL;
  g_autoptr(GPtrArray) tar = build_tar (source, &name);
  g_auto(BjCopyEnds) ends = { 0 };
  const char *argv[] = { "sh", "-c", guest_script, "belljar-copy", "unpack", to, NULL, name != NULL ? name : "", fresh, NULL, NULL };
  gboolean ok;

  bj_place_split (to, &folder, &last);
  argv[6] = folder;
  argv[9] = name == NULL || last == NULL || g_str_has_suffix (to, "/") ? "1" : "0";
  ok = bj_copy_transfer (self, argv, (const char *const *) tar->pdata, NULL, FALSE, &ends, error)
       && check_in (self, source, destination, &ends, error);
  argv[4] = "move";
  if (ok && move_in (self, argv, destination, error))
    {
      note_changed (ends.child_code, ends.child_text);
      return TRUE;
    }
  argv[4] = "drop";
  bj_copy_run_small (self, argv, NULL, NULL); /* a machine that has gone has no folder either */
  return FALSE;
}

static gboolean
check_source (const char *source, GError **error)
{
  GStatBuf info;

  return g_lstat (source, &info) == 0 || bj_fd_set_io_error (error, errno, _("Reading “%s”"), source);
}

/* Everything that ends a program in order ends the copy in order. */
static void
listen_to_signals (BjCopy *self)
{
  signal (SIGPIPE, SIG_IGN); /* one end may go first */
  bj_cli_on_interrupt (self->cli, on_interrupt, self);
  self->signals[0] = g_unix_signal_add (SIGTERM, on_end, self);
  self->signals[1] = g_unix_signal_add (SIGHUP, on_end, self);
}

static int
run_copy (BjCopy *self, const char *source, const char *destination, GError **error)
{
  const char *from = find_colon (source);
  const char *to = find_colon (destination);
  const char *remote = from != NULL ? source : destination;
  const char *colon = from != NULL ? from : to;
  g_autofree char *id = NULL;
  gboolean ok;

  if ((from != NULL) == (to != NULL))
    return bj_usage_error_set (error, _("One of both is in a machine, SESSION:PATH, and the other one is here, for example: "
                                        "belljar copy k3:/etc/os-release ."));
  if (colon[1] == '\0' || *(from != NULL ? destination : source) == '\0')
    return bj_usage_error_set (error, _("A path is empty"));
  if (from == NULL && !check_source (source, error))
    return -1;
  id = g_strndup (remote, (gsize) (colon - remote));
  self->session = bj_cli_find_session (self->cli, id, error);
  if (self->session == NULL)
    return -1;
  self->status = bj_status_new ();
  listen_to_signals (self);
  ok = from != NULL ? copy_out (self, colon + 1, destination, error) : copy_in (self, source, colon + 1, error);
  if (!ok)
    return -1;
  note_copied (self);
  return BJ_EXIT_OK;
}

int
bj_verb_copy (BjCli *cli, char **args, GError **error)
{
  g_autofree char *user = NULL;
  const GOptionEntry entries[] = {
    { "user", 'u', 0, G_OPTION_ARG_FILENAME, &user, N_("user in the machine"), N_("NAME") },
    { 0 },
  };
  g_auto(BjCopy) copy = { .cli = cli };

  if (!bj_cli_parse (cli, entries, &args, 2, 2, error))
    return -1;
  if (user != NULL && !g_utf8_validate (user, -1, NULL))
    return bj_usage_error_set (error, _("--user needs UTF-8 text"));
  copy.user = user;
  return run_copy (&copy, args[1], args[2], error);
}
