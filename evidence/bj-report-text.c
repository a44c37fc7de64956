/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-report.h"

#include "bj-json.h"
#include "bj-untrusted.h"

#include <glib/gi18n-lib.h>
#include <gnutls/crypto.h>
#include <string.h>

#define WIDTH 80
#define WIDTH_MIN 60
#define LABEL_COLUMNS 13
#define COMMANDS_MAX 200
#define FILES_MAX 200
#define TAIL_LINES 12
#define TEXT_CAP 4096

/* A line of facts begins with our own words; what a guest chose stands at its end, on one line, cut at the width. */
typedef struct
{
  GString *out;
  guint    width;
} Page;

static void
pad_to (GString *out, gsize start, guint columns)
{
  g_autofree char *line = g_strdup (out->str + start);

  for (guint used = bj_untrusted_columns (line); used < columns; used++)
    g_string_append_c (out, ' ');
}

/* Untrusted text in what is left of the line that began at @start. */
static void
add_rest (Page *page, gsize start, const char *text)
{
  g_autofree char *line = g_strdup (page->out->str + start);
  guint used = bj_untrusted_columns (line) + 1;
  guint room = page->width > used + 12 ? page->width - used : 12;
  g_autofree char *clean = bj_untrusted_clean (text, FALSE, TEXT_CAP);
  gsize cap = strlen (clean);
  g_autofree char *cut = g_strdup (clean);

  while (bj_untrusted_columns (cut) > room && cap > 4)
    {
      cap -= MAX (1, (bj_untrusted_columns (cut) - room) / 2);
      g_free (cut);
      cut = bj_untrusted_cut (clean, MAX (cap, 4), NULL);
    }
  g_string_append_printf (page->out, "%s\n", cut);
}

static gsize
begin_fact (Page *page, const char *label)
{
  gsize start = page->out->len;

  g_string_append_printf (page->out, "%s:", label);
  pad_to (page->out, start, LABEL_COLUMNS);
  return start;
}

static void
add_fact (Page *page, const char *label, const char *text)
{
  gsize start;

  if (text == NULL || *text == '\0')
    return;
  start = begin_fact (page, label);
  add_rest (page, start, text);
}

/* Our own sentence: where it is folded, no blank stays behind. */
static char *
fold_sentence (Page *page, const char *text, const char *indent)
{
  g_autofree char *folded = bj_untrusted_fold (text, indent, page->width);
  GString *lines = g_string_new (folded);

  g_string_replace (lines, " \n", "\n", 0);
  return g_string_free (lines, FALSE);
}

/* A sentence under its label. */
static void
add_sentence (Page *page, const char *label, const char *text)
{
  g_autofree char *indent = g_strnfill (LABEL_COLUMNS, ' ');
  g_autofree char *folded = fold_sentence (page, text, indent);
  gsize start = begin_fact (page, label);

  g_string_append (page->out, folded + MIN (strlen (folded), page->out->len - start));
}

static void
add_item (Page *page, const char *text)
{
  g_autofree char *folded = fold_sentence (page, text, "    ");

  if (strlen (folded) > 4)
    memcpy (folded, "  - ", 4);
  g_string_append (page->out, folded);
}

static char *
format_seconds (double seconds)
{
  guint whole = (guint) CLAMP (seconds, 0, 1e9);

  if (seconds < 9.95)
    return g_strdup_printf ("%.1f s", MAX (seconds, 0));
  if (whole < 120)
    return g_strdup_printf ("%u s", whole);
  if (whole < 7200)
    return g_strdup_printf ("%u min %u s", whole / 60, whole % 60);
  return g_strdup_printf ("%u h %u min", whole / 3600, whole / 60 % 60);
}

static char *
format_member_seconds (JsonObject *object, const char *key)
{
  return bj_json_has (object, key) ? format_seconds (bj_json_get_double (object, key, 0)) : g_strdup ("-");
}

/* How a command or a check ended, in a word. */
static char *
format_exit (JsonObject *run)
{
  if (bj_json_has (run, "failure"))
    return g_strdup (bj_json_get_boolean (run, "lost") ? _("no answer") : _("not run"));
  if (bj_json_get_boolean (run, "timed_out"))
    return g_strdup (_("timeout"));
  if (bj_json_has (run, "signal"))
    return g_strdup_printf (_("signal %d"), (int) bj_json_get_int (run, "signal", 0));
  if (!bj_json_has (run, "exit"))
    return g_strdup (_("no exit"));
  return g_strdup_printf (_("exit %d"), (int) bj_json_get_int (run, "exit", -1));
}

static const char *
verdict_meaning (const char *verdict, gboolean has_summary)
{
  if (g_str_equal (verdict, "proved"))
    return _("the check passes in a fresh machine, fails on the code as it was before, and passes with the protected "
             "files as they were");
  if (g_str_equal (verdict, "passes"))
    return _("the check passes in a fresh machine, but that is not yet a proof");
  if (g_str_equal (verdict, "passes-here"))
    return _("the check passes in the session's own machine, but not in a fresh one");
  if (g_str_equal (verdict, "failed"))
    return has_summary ? _("the check does not pass; the summary below is a claim, not a finding") : _("the check does not pass");
  return has_summary ? _("nothing was checked; the summary below is a claim, not a finding") : _("nothing was checked");
}

static void
add_verdict (Page *page, JsonObject *report)
{
  JsonObject *check = bj_json_get_object (report, "check");
  JsonArray *why = bj_json_get_array (check, "why");
  g_autofree char *verdict = bj_untrusted_clean (bj_json_get_string (check, "verdict", "none"), FALSE, 32);
  g_autofree char *outcome = bj_untrusted_clean (bj_json_get_string (report, "outcome", ""), FALSE, 32);
  JsonObject *failure = bj_json_get_object (report, "error");
  gboolean has_summary = *bj_json_get_string (bj_json_get_object (report, "summary"), "text", "") != '\0';
  g_autofree char *line = g_strdup_printf ("%s — %s", verdict, verdict_meaning (verdict, has_summary));

  add_sentence (page, "verdict", line);
  add_fact (page, "outcome", outcome);
  if (failure != NULL)
    add_fact (page, "error", bj_json_get_string (failure, "message", bj_json_get_string (failure, "name", "")));
  for (guint i = 0; why != NULL && i < json_array_get_length (why); i++)
    {
      const char *reason = bj_json_array_get_string (why, i);
      g_autofree char *shown = bj_untrusted_clean (reason != NULL ? reason : "", FALSE, 64);
      g_autofree char *sentence = g_strdup_printf ("%s (%s)", bj_verdict_explain (reason), shown);

      if (i == 0)
        g_string_append_printf (page->out, "%s:\n", _("why not proved"));
      add_item (page, sentence);
    }
  g_string_append_c (page->out, '\n');
}

static void
add_image (Page *page, JsonObject *report)
{
  JsonObject *image = bj_json_get_object (report, "image");
  g_autofree char *text = NULL;

  if (image == NULL)
    return;
  text = g_strdup_printf ("%s %d, %s", bj_json_get_string (image, "name", "?"), (int) bj_json_get_int (image, "version", 0),
                          bj_json_get_string (image, "digest", "?"));
  add_fact (page, "image", text);
}

static void
add_isolation (Page *page, JsonObject *report)
{
  JsonObject *isolation = bj_json_get_object (report, "isolation");
  g_autoptr(GList) layers = isolation != NULL ? g_list_sort (json_object_get_members (isolation), (GCompareFunc) strcmp)
                                              : NULL;

  for (GList *l = layers; l != NULL; l = l->next)
    {
      JsonObject *layer = bj_json_get_object (isolation, l->data);
      gboolean active = bj_json_get_boolean (layer, "active");
      const char *state = active ? bj_json_get_boolean (layer, "proven") ? _("active and proven") : _("active, not proven")
                                 : _("not active");
      const char *reason = bj_json_get_string (layer, "reason", "");
      g_autofree char *text = g_strdup_printf ("%s: %s%s%s", (const char *) l->data, state, *reason != '\0' ? ": " : "",
                                               reason);

      g_autofree char *clean = bj_untrusted_clean (text, FALSE, TEXT_CAP);

      add_sentence (page, "isolation", clean);
    }
}

static void
add_session (Page *page, JsonObject *report)
{
  g_autofree char *took = format_member_seconds (report, "duration_s");
  g_autofree char *finished = g_strdup (bj_json_get_string (report, "finished", _("not yet")));
  g_autofree char *steps = g_strdup_printf ("%d", (int) bj_json_get_int (report, "steps", 0));
  g_autofree char *time = g_strdup_printf ("%s, %s %s, %s", bj_json_get_string (report, "started", "?"), _("finished"), finished,
                                           took);

  add_fact (page, "task", bj_json_get_string (report, "task", NULL));
  add_fact (page, "session", bj_json_get_string (report, "session", NULL));
  add_fact (page, "project", bj_json_get_string (report, "project", NULL));
  add_fact (page, "model", bj_json_get_string (report, "model", NULL));
  add_fact (page, "started", time);
  add_fact (page, "steps", steps);
  add_image (page, report);
  add_fact (page, "accelerator", bj_json_get_string (report, "accelerator", NULL));
  add_fact (page, "network", bj_json_get_string (report, "network", NULL));
  add_isolation (page, report);
  add_fact (page, "baseline", bj_json_get_string (report, "baseline", NULL));
  add_fact (page, "tree", bj_json_get_string (report, "tree", NULL));
  add_fact (page, "commit", bj_json_get_string (report, "commit", NULL));
}

char *
bj_report_format_timing (JsonObject *timing)
{
  static const char *const phases[] = { "queue", "overlay", "clone",  "ready", "setup", "first_command", "verify",
                                        "commit" };
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (phases); i++)
    if (bj_json_has (timing, phases[i]))
      {
        g_autofree char *took = format_member_seconds (timing, phases[i]);

        g_string_append_printf (text, "%s%s %s", text->len > 0 ? ", " : "", phases[i], took);
      }
  return g_string_free (text, FALSE);
}

static void
add_timing (Page *page, JsonObject *report)
{
  g_autofree char *text = bj_report_format_timing (bj_json_get_object (report, "timing"));

  if (*text != '\0')
    add_sentence (page, "timing", text);
}

/* The end of what a check printed, when it did not pass: its lines are the guest's and say so. */
static void
add_tail (Page *page, JsonObject *run)
{
  g_autofree char *tail = g_strchomp (g_strdup (bj_json_get_string (run, "tail", "")));
  const char *from = tail + strlen (tail);
  g_autofree char *folded = NULL;

  if (*tail == '\0' || (bj_json_has (run, "exit") && bj_json_get_int (run, "exit", -1) == 0))
    return;
  for (guint lines = 0; from > tail && lines < TAIL_LINES; from--)
    if (from[-1] == '\n' && ++lines == TAIL_LINES)
      break;
  folded = bj_untrusted_fold (from, "    | ", page->width);
  g_string_append (page->out, folded);
}

static void
add_run (Page *page, JsonObject *run)
{
  gsize start = page->out->len;
  g_autofree char *where = bj_untrusted_clean (bj_json_get_string (run, "where", "?"), FALSE, 16);
  g_autofree char *end = bj_json_get_boolean (run, "setup_failed") ? g_strdup (_("setup failed")) : format_exit (run);
  g_autofree char *took = format_member_seconds (run, "duration_s");

  g_string_append_printf (page->out, "  %s", where);
  pad_to (page->out, start, 14);
  g_string_append_printf (page->out, "%s", end);
  pad_to (page->out, start, 28);
  g_string_append_printf (page->out, "%s", took);
  pad_to (page->out, start, 42);
  g_string_append (page->out, bj_json_get_boolean (run, "network") ? _("with network") : _("without network"));
  if (bj_json_has (run, "failure"))
    {
      g_string_append (page->out, "  ");
      add_rest (page, start, bj_json_get_string (run, "failure", ""));
    }
  else
    {
      g_string_append_c (page->out, '\n');
    }
  add_tail (page, run);
}

static const char *const places[] = { "same", "fresh", "baseline", "protected" };

static guint
find_place (JsonObject *run)
{
  guint k = 0;

  while (k < G_N_ELEMENTS (places) && !g_str_equal (places[k], bj_json_get_string (run, "where", "")))
    k++;
  return k;
}

static void
add_check (Page *page, JsonObject *report)
{
  JsonObject *check = bj_json_get_object (report, "check");
  JsonArray *runs = bj_json_get_array (check, "runs");

  if (!bj_json_has (check, "command"))
    return;
  g_string_append_c (page->out, '\n');
  add_fact (page, "check", bj_json_get_string (check, "command", NULL));
  add_fact (page, "setup", bj_json_get_string (check, "setup", NULL));
  add_fact (page, "chosen by", bj_json_get_string (check, "source", NULL));
  /* Some go on side by side and end in any order; a reader finds them in the same one. */
  for (guint k = 0; k <= G_N_ELEMENTS (places); k++)
    for (guint i = 0; runs != NULL && i < json_array_get_length (runs); i++)
      if (find_place (bj_json_array_get_object (runs, i)) == k)
        add_run (page, bj_json_array_get_object (runs, i));
}

static void
add_heading (Page *page, const char *label, guint count, guint shown)
{
  g_string_append_c (page->out, '\n');
  begin_fact (page, label);
  if (shown < count)
    g_string_append_printf (page->out, _("%u, the first %u of them here"), count, shown);
  else
    g_string_append_printf (page->out, "%u", count);
  g_string_append_c (page->out, '\n');
}

/* One more line about the command above. */
static void
add_note (Page *page, const char *text)
{
  g_autofree char *folded = bj_untrusted_fold (text, "        ", page->width);

  g_string_append (page->out, folded);
}

static void
add_command (Page *page, JsonObject *command)
{
  gsize start = page->out->len;
  g_autofree char *end = format_exit (command);
  g_autofree char *took = format_member_seconds (command, "duration_s");

  g_string_append_printf (page->out, "  %4d  %s", (int) bj_json_get_int (command, "n", 0), end);
  pad_to (page->out, start, 20);
  g_string_append_printf (page->out, "%s", took);
  pad_to (page->out, start, 31);
  g_string_append_c (page->out, ' ');
  add_rest (page, start, bj_json_get_string (command, "command", ""));
  if (bj_json_get_boolean (command, "command_truncated"))
    {
      g_autofree char *digest = bj_untrusted_clean (bj_json_get_string (command, "command_sha256", "?"), FALSE, 64);
      g_autofree char *bytes = g_strdup_printf ("%" G_GINT64_FORMAT, bj_json_get_int (command, "command_bytes", 0));
      g_autofree char *cut = g_strdup_printf (_("(cut here: the command has %s bytes, SHA-256 %s)"), bytes, digest);

      add_note (page, cut);
    }
  if (bj_json_has (command, "failure"))
    add_note (page, bj_json_get_string (command, "failure", ""));
}

static void
add_commands (Page *page, JsonObject *report)
{
  JsonArray *commands = bj_json_get_array (report, "commands");
  guint count = commands != NULL ? json_array_get_length (commands) : 0;

  add_heading (page, "commands", count, MIN (count, COMMANDS_MAX));
  for (guint i = 0; i < MIN (count, COMMANDS_MAX); i++)
    add_command (page, bj_json_array_get_object (commands, i));
}

static void
add_file (Page *page, JsonObject *file)
{
  gsize start = page->out->len;
  gint64 added = bj_json_get_int (file, "added", 0);
  g_autofree char *status = bj_untrusted_clean (bj_json_get_string (file, "status", "?"), FALSE, 16);

  g_string_append_printf (page->out, "  %s", status);
  pad_to (page->out, start, 13);
  if (added < 0)
    g_string_append (page->out, _("binary"));
  else
    g_string_append_printf (page->out, "+%" G_GINT64_FORMAT " -%" G_GINT64_FORMAT, added, bj_json_get_int (file, "removed", 0));
  pad_to (page->out, start, 27);
  g_string_append_c (page->out, ' ');
  add_rest (page, start, bj_json_get_string (file, "path", ""));
}

static void
add_files (Page *page, JsonObject *report)
{
  JsonArray *files = bj_json_get_array (report, "files_changed");
  guint count = files != NULL ? json_array_get_length (files) : 0;
  gint64 total = CLAMP (bj_json_get_int (report, "files_total", 0), count, G_MAXUINT);

  add_heading (page, "files", (guint) total, MIN (count, FILES_MAX));
  for (guint i = 0; i < MIN (count, FILES_MAX); i++)
    add_file (page, bj_json_array_get_object (files, i));
}

static void
add_warnings (Page *page, JsonObject *report)
{
  JsonArray *warnings = bj_json_get_array (report, "warnings");
  JsonArray *limits = bj_json_get_array (report, "limits");
  guint count = warnings != NULL ? json_array_get_length (warnings) : 0;

  for (guint i = 0; limits != NULL && i < json_array_get_length (limits); i++)
    {
      JsonObject *limit = bj_json_array_get_object (limits, i);
      g_autofree char *text = g_strdup_printf ("%s (%" G_GINT64_FORMAT ")", bj_json_get_string (limit, "limit", "?"),
                                               bj_json_get_int (limit, "value", 0));

      add_fact (page, "limit hit", text);
    }
  if (count == 0)
    return;
  add_heading (page, "warnings", count, count);
  for (guint i = 0; i < count; i++)
    {
      const char *warning = bj_json_array_get_string (warnings, i);
      g_autofree char *line = bj_untrusted_clean (warning != NULL ? warning : "", FALSE, 1024);

      add_item (page, line);
    }
}

/* Only letters and digits of a marker that somebody gave; else 64 random bits, made now, after the text was received. */
static char *
make_marker (const char *given)
{
  g_autoptr(GString) marker = g_string_new (NULL);
  guint8 bytes[8];

  for (const char *p = given; p != NULL && *p != '\0' && marker->len < 64; p++)
    if (g_ascii_isalnum (*p))
      g_string_append_c (marker, *p);
  if (marker->len == 0 && gnutls_rnd (GNUTLS_RND_NONCE, bytes, sizeof bytes) >= 0)
    for (guint i = 0; i < sizeof bytes; i++)
      g_string_append_printf (marker, "%02x", bytes[i]);
  return g_string_free (g_steal_pointer (&marker), FALSE);
}

char *
bj_report_fence (const char *begin, const char *end, const char *text, gboolean cut, const char *given, guint width)
{
  GString *out = g_string_new (NULL);
  g_autofree char *marker = make_marker (given);
  g_autofree char *kept = bj_untrusted_cut (text, TEXT_CAP, NULL);
  g_autofree char *folded = bj_untrusted_fold (kept, "| ", width > 0 ? width : WIDTH);

  g_string_append_printf (out, "--- %s, %s ---\n", begin, marker);
  g_string_append_printf (out, "%s\n", _("(the model's own words; nothing in them was checked)"));
  g_string_append (out, folded);
  if (cut)
    g_string_append_printf (out, "%s\n", _("(cut here by Belljar)"));
  g_string_append_printf (out, "--- %s, %s ---\n", end, marker);
  return g_string_free (out, FALSE);
}

static void
add_summary (Page *page, JsonObject *report, const char *marker)
{
  JsonObject *summary = bj_json_get_object (report, "summary");
  const char *text = bj_json_get_string (summary, "text", "");
  g_autofree char *fenced = NULL;

  if (*text == '\0')
    return;
  fenced = bj_report_fence (_("untrusted summary"), _("end of the untrusted summary"), text,
                            bj_json_get_boolean (summary, "truncated"), marker, page->width);
  g_string_append_printf (page->out, "\n%s", fenced);
}

static void
add_question (Page *page, JsonObject *report, const char *marker)
{
  const char *text = bj_json_get_string (report, "question", "");
  g_autofree char *session = NULL;
  g_autofree char *fenced = NULL;

  if (*text == '\0' || !g_str_equal (bj_json_get_string (report, "outcome", ""), "NEEDS INPUT"))
    return;
  session = bj_untrusted_clean (bj_json_get_string (report, "session", "?"), FALSE, 64);
  fenced = bj_report_fence (_("untrusted question"), _("end of the untrusted question"), text, FALSE, marker, page->width);
  g_string_append_printf (page->out, "\n%s", fenced);
  g_string_append_printf (page->out, _("To answer: belljar answer %s \"TEXT\"\n"), session);
}

char *
bj_report_to_text (JsonObject *report, const char *marker, guint width)
{
  g_autoptr(GString) out = g_string_new (NULL);
  Page page = { out, MAX (width > 0 ? width : WIDTH, WIDTH_MIN) };

  add_verdict (&page, report);
  add_session (&page, report);
  add_timing (&page, report);
  add_check (&page, report);
  add_commands (&page, report);
  add_files (&page, report);
  add_warnings (&page, report);
  add_summary (&page, report, marker);
  add_question (&page, report, marker);
  return g_string_free (g_steal_pointer (&out), FALSE);
}
