/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define NAMES_MAX 100
#define NAME_BYTES_MAX 200
#define UNIT_BYTES_MAX 255
#define URL_BYTES_MAX 8192
#define LINES_DEFAULT 100
#define CLIPBOARD_BYTES_MAX (64 * 1024)
#define EXIT_MISSING 127 /* what a shell says when there is no such program, and what the scripts here say too */

/*
 * The machine's own programs, and short scripts around them. A script is the shell's input, and the model's words are arguments
 * of it: they are never text for a shell, and the record shows both.
 */

static GVariant *
run_script (BjAgent *self, const char *tool, const char *script, const char *const *arguments, guint timeout_s, GError **error)
{
  g_autoptr(GPtrArray) argv = g_ptr_array_new ();
  g_autofree char *label = g_strjoinv (" ", (char **) arguments);
  BjVerbExec exec = { tool, label, NULL, NULL, script, timeout_s };

  g_ptr_array_add (argv, (gpointer) "/bin/sh");
  g_ptr_array_add (argv, (gpointer) "-s");
  g_ptr_array_add (argv, (gpointer) "--");
  for (guint i = 0; arguments[i] != NULL; i++)
    g_ptr_array_add (argv, (gpointer) arguments[i]);
  g_ptr_array_add (argv, NULL);
  exec.argv = (const char *const *) argv->pdata;
  return bj_verbs_exec (self, &exec, error);
}

static JsonObject *
run_program (BjAgent *self, const char *tool, const char *const *argv, GError **error)
{
  g_autofree char *label = g_strjoinv (" ", (char **) argv);
  const BjVerbExec exec = { tool, label, argv, NULL, NULL, self->config.helper_timeout_s };
  g_autoptr(GVariant) result = bj_verbs_exec (self, &exec, error);

  return result != NULL ? bj_result_from_exec (self, result, exec.timeout_s) : NULL;
}

/* The last line that a failed program wrote says most. */
static char *
dup_last_line (JsonObject *result)
{
  g_autofree char *text = g_strchomp (g_strdup (bj_json_get_string (result, "stderr")));
  const char *last = strrchr (text, '\n');

  return bj_text_shorten (last != NULL ? last + 1 : text, 300, 0);
}

/* @result: (transfer full). Returns: (transfer full): it, or %NULL when it failed and there is no network */
static JsonObject *
blame_network (BjAgent *self, JsonObject *result, GError **error)
{
  g_autofree char *why = NULL;

  if (json_object_get_int_member (result, "exit") == 0 || !g_str_equal (self->task.network, "none"))
    return result;
  why = dup_last_line (result);
  json_object_unref (result);
  bj_error_set (error, BJ_ERROR_FAILED,
                "This machine has no network (it was started with network none), so only what is in it already can be had: %s", why);
  return NULL;
}

/*
 * What is not whole yet stays out of the project. A part of another address is never gone on with: its name has the address's sum
 * in it. curl's exit codes: 22, 33 and 36 mean
 * that the server does not go on in the middle, the others that the connection broke.
 */
static const char download_script[] =
  "url=$1 path=$2 max=2147483648 tries=3\n"
  "dir=${TMPDIR:-/var/tmp}/belljar-download\n"
  "mkdir -m 700 -p -- \"$dir\"; [ -O \"$dir\" ] || dir=$(mktemp -d)\n"
  "part=$dir/$(printf %s \"$url\" | cksum | tr ' ' -)\n"
  "mkdir -p -- \"${path%/*}/\" || exit 1\n"
  "[ ! -d \"$path\" ] || { echo \"$path is a folder\" >&2; exit 1; }\n"
  "size () { stat -c %s -- \"$part\" 2>/dev/null || echo 0; }\n"
  "fetch () {\n"
  "  curl --fail --silent --show-error --location --proto =http,https --max-redirs 10 --connect-timeout 30 --speed-time 60 \\\n"
  "    --speed-limit 1 --max-filesize $max --continue-at - --output \"$part\" --url \"$url\" </dev/null\n"
  "}\n"
  "if ! command -v curl >/dev/null; then\n"
  "  command -v wget >/dev/null || { echo 'This machine has neither curl nor wget' >&2; exit 127; }\n"
  "  fetch () { wget --no-verbose --continue --timeout=30 --tries=1 --output-document=\"$part\" \"$url\" </dev/null; }\n"
  "fi\n"
  "ulimit -f $((max / 512))\n"
  "begun=$(size)\n"
  "while :; do\n"
  "  fetch; code=$?\n"
  "  [ $code != 0 ] || break\n"
  "  tries=$((tries - 1))\n"
  "  [ $tries -gt 0 ] || exit $code\n"
  "  case $code in\n"
  "  22|33|36) [ $(size) -gt 0 ] || exit $code; rm -f -- \"$part\"; begun=0 ;;\n"
  "  8|18|28|52|55|56|92) sleep 1 ;;\n"
  "  *) exit $code ;;\n"
  "  esac\n"
  "done\n"
  "mv -f -- \"$part\" \"$path\" || exit 1\n"
  "echo \"$(stat -c %s -- \"$path\") bytes, sha256 $(sha256sum <\"$path\" | cut -d' ' -f1)\"\n"
  "[ $begun = 0 ] || echo \"went on where an earlier try ended, at byte $begun\"\n";

static gboolean
check_url (const char *url, GError **error)
{
  if (strlen (url) > URL_BYTES_MAX)
    return bj_error_set (error, BJ_ERROR_INVALID, "The address may have at most %d bytes", URL_BYTES_MAX);
  if (!g_str_has_prefix (url, "http://") && !g_str_has_prefix (url, "https://"))
    return bj_error_set (error, BJ_ERROR_INVALID, "The address must begin with http:// or https://");
  for (const char *p = url; *p != '\0'; p++)
    if (!g_ascii_isgraph (*p))
      return bj_error_set (error, BJ_ERROR_INVALID, "The address must have no spaces and only ASCII; percent-encode the rest");
  return TRUE;
}

JsonObject *
bj_tool_download (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *url = bj_json_get_string (arguments, "url");
  g_autofree char *path = bj_path_resolve (self, bj_json_get_string (arguments, "path"));
  const char *given[] = { url, path, NULL };
  g_autoptr(GVariant) result = NULL;

  if (!check_url (url, error))
    return NULL;
  result = run_script (self, "download", download_script, given, self->config.fetch_timeout_s, error);
  return result != NULL ? blame_network (self, bj_result_from_exec (self, result, self->config.fetch_timeout_s), error) : NULL;
}

/* Lists are brought up to date when there are none of the last hour, or when a package is not in them. */
static const char install_script[] =
  "command -v apt-get >/dev/null || { echo 'This machine has no apt-get: use run with its own package manager' >&2; exit 127; }\n"
  "export DEBIAN_FRONTEND=noninteractive\n"
  "updated=\n"
  "apt () {\n"
  "  apt-get -q -y -o APT::Cmd::Pattern-Only=true -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 \\\n"
  "    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \"$@\" </dev/null\n"
  "}\n"
  "update () { updated=yes; apt update; }\n"
  "[ -n \"$(find /var/lib/apt/lists -name '*_Packages*' -mmin -60 2>/dev/null)\" ] || update\n"
  "apt install -- \"$@\" && exit\n"
  "code=$?\n"
  "[ -z \"$updated\" ] || exit $code\n"
  "update && apt install -- \"$@\"\n";

/* NAME, NAME:ARCH or NAME=VERSION. What apt-get would take for "remove" ("name-") or for an option is none. */
static gboolean
check_package (const char *name, GError **error)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
  gsize length = strspn (name, letters);
  const char *rest = name + length;

  if (strlen (name) <= NAME_BYTES_MAX && g_ascii_isalnum (*name) && length > 1 && name[length - 1] != '-')
    {
      if (*rest == ':' && g_ascii_isalnum (rest[1]))
        rest += 1 + strspn (rest + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
      if (*rest == '=' && g_ascii_isalnum (rest[1]))
        rest += 1 + strspn (rest + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.:~-");
      if (*rest == '\0')
        return TRUE;
    }
  return bj_error_set (error, BJ_ERROR_INVALID, "“%.60s” is no name of a package: small letters, digits and + - . (as in libc6-dev "
                                                "or g++), one name an entry", name);
}

JsonObject *
bj_tool_install_packages (BjAgent *self, JsonObject *arguments, GError **error)
{
  JsonArray *given = bj_json_get_array (arguments, "names");
  g_autoptr(GPtrArray) names = g_ptr_array_new ();
  g_autoptr(GVariant) result = NULL;
  guint n = json_array_get_length (given);

  if (n == 0 || n > NAMES_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "Give 1 to %d names of packages", NAMES_MAX);
      return NULL;
    }
  for (guint i = 0; i < n; i++)
    {
      const char *name = json_array_get_string_element (given, i);

      if (!check_package (name, error))
        return NULL;
      g_ptr_array_add (names, (gpointer) name);
    }
  g_ptr_array_add (names, NULL);
  result = run_script (self, "install_packages", install_script, (const char *const *) names->pdata, self->config.fetch_timeout_s,
                       error);
  return result != NULL ? blame_network (self, bj_result_from_exec (self, result, self->config.fetch_timeout_s), error) : NULL;
}

JsonObject *
bj_tool_list_processes (BjAgent *self, JsonObject *arguments, GError **error)
{
  static const char *const argv[] = { "ps", "-eww", "-o", "pid,ppid,user,stat,pcpu,rss,etime,args", "--sort=pid", NULL };

  return run_program (self, "list_processes", argv, error);
}

static gboolean
check_unit (const char *name, GError **error)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.@\\-";

  if (*name != '\0' && *name != '-' && strlen (name) <= UNIT_BYTES_MAX && strspn (name, letters) == strlen (name))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "“%.60s” is no name of a unit, such as ssh or getty@tty1.service", name);
}

JsonObject *
bj_tool_service (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *name = bj_json_get_string (arguments, "name");
  const char *action = bj_json_get_string (arguments, "action");
  const char *argv[] = { "systemctl", "--no-pager", "--no-ask-password", "--lines=20", action, "--", name, NULL };

  return check_unit (name, error) ? run_program (self, "service", argv, error) : NULL;
}

JsonObject *
bj_tool_read_log (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *unit = bj_json_get_string (arguments, "unit");
  g_autofree char *unit_option = NULL;
  g_autofree char *lines_option = NULL;
  gint64 lines = LINES_DEFAULT;

  if (unit != NULL && *unit == '\0')
    unit = NULL;
  if (unit != NULL && !check_unit (unit, error))
    return NULL;
  bj_json_get_int (arguments, "lines", &lines);
  lines_option = g_strdup_printf ("--lines=%d", (int) CLAMP (lines, 1, 1000));
  unit_option = unit != NULL ? g_strconcat ("--unit=", unit, NULL) : NULL;
  {
    const char *argv[] = { "journalctl", "--no-pager", "--quiet", "--output=short-iso", lines_option, unit_option, NULL };

    return run_program (self, "read_log", argv, error);
  }
}

/* The clipboard is the desktop's, and which display that has is known to whatever runs on it. */
#define FIND_DISPLAY \
  "for at in /proc/[0-9]*/environ; do\n" \
  "  found=$(tr '\\0' '\\n' <\"$at\" 2>/dev/null | grep -E '^(DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|XDG_RUNTIME_DIR)=')\n" \
  "  case $found in *DISPLAY=?*) break ;; esac\n" \
  "  found=\n" \
  "done\n" \
  "[ -n \"$found\" ] || { echo 'This machine has no desktop, so it has no clipboard' >&2; exit 127; }\n" \
  "set -f; IFS='\n'; export $found; unset IFS\n" \
  "has () { command -v \"$1\" >/dev/null; }\n"
#define NO_PROGRAM "echo 'The clipboard needs xclip, xsel or wl-clipboard, and none is installed' >&2; exit 127\n"

static const char read_clipboard_script[] =
  FIND_DISPLAY
  "if [ -n \"${WAYLAND_DISPLAY:-}\" ] && has wl-paste; then exec wl-paste --no-newline </dev/null\n"
  "elif has xclip; then exec xclip -selection clipboard -out </dev/null\n"
  "elif has xsel; then exec xsel --clipboard --output </dev/null\n"
  "fi\n"
  NO_PROGRAM;

/* The program that holds the text stays in the background, so it gets nobody's output. */
static const char write_clipboard_script[] =
  FIND_DISPLAY
  "if [ -n \"${WAYLAND_DISPLAY:-}\" ] && has wl-copy; then put='wl-copy'\n"
  "elif has xclip; then put='xclip -selection clipboard -in'\n"
  "elif has xsel; then put='xsel --clipboard --input'\n"
  "else " NO_PROGRAM
  "fi\n"
  "set -f; printf %s \"$1\" | $put >/dev/null 2>&1\n";

/* Returns: (transfer full): the result of a script that worked */
static JsonObject *
use_clipboard (BjAgent *self, const char *tool, const char *script, const char *text, GError **error)
{
  const char *given[] = { text, NULL };
  g_autoptr(GVariant) answer = run_script (self, tool, script, given, self->config.helper_timeout_s, error);
  g_autoptr(JsonObject) result = answer != NULL ? bj_result_from_exec (self, answer, self->config.helper_timeout_s) : NULL;
  g_autofree char *why = NULL;

  if (result == NULL || json_object_get_int_member (result, "exit") == 0)
    return g_steal_pointer (&result);
  why = dup_last_line (result);
  bj_error_set (error, json_object_get_int_member (result, "exit") == EXIT_MISSING ? BJ_ERROR_INVALID : BJ_ERROR_FAILED, "%s",
                *why != '\0' ? why : "The clipboard did not answer");
  return NULL;
}

JsonObject *
bj_tool_read_clipboard (BjAgent *self, JsonObject *arguments, GError **error)
{
  g_autoptr(JsonObject) got = use_clipboard (self, "read_clipboard", read_clipboard_script, NULL, error);
  JsonObject *result;

  if (got == NULL)
    return NULL;
  result = json_object_new ();
  json_object_set_string_member (result, "text", bj_json_get_string (got, "stdout"));
  json_object_set_boolean_member (result, "truncated", bj_json_get_bool (got, "truncated", FALSE));
  return result;
}

JsonObject *
bj_tool_write_clipboard (BjAgent *self, JsonObject *arguments, GError **error)
{
  const char *text = bj_json_get_string (arguments, "text");
  g_autoptr(JsonObject) done = NULL;

  if (strlen (text) > CLIPBOARD_BYTES_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The clipboard takes at most %d bytes here", CLIPBOARD_BYTES_MAX);
      return NULL;
    }
  done = use_clipboard (self, "write_clipboard", write_clipboard_script, text, error);
  return done != NULL ? bj_result_ok () : NULL;
}
