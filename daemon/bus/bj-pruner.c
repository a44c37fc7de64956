/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-prune"

#include "bj-pruner.h"

#include "bj-call.h"
#include "bj-measure.h"
#include "bj-options.h"
#include "bj-remove.h"

#define MEASURE_S 120
#define ANSWER_S 10 /* how long the main loop may take for a question */
#define TURN_S 150  /* how long one waits for another's run */
#define LOOK_US 100000
#define LINES_MAX 100

struct _BjPruner
{
  BjContext *context;
  BjSessionManager *sessions; /* (owned) */
  gulong changed_id;
};

/* One run of it. */
typedef struct
{
  BjContext *context;
  BjSessionManager *sessions; /* (owned) */
  GStrv images;               /* digests that machines live on */
  gboolean dry_run;
  gboolean only_cap; /* by itself, not because somebody asked */
  BjMeter *meter;
  GString *lines;
  guint n_lines;
  guint n;
  guint64 bytes;
} BjPruning;

static BjPruning *
pruning_new (BjPruner *self)
{
  BjPruning *pruning = g_new0 (BjPruning, 1);

  pruning->context = self->context;
  pruning->sessions = g_object_ref (self->sessions);
  pruning->images = bj_session_manager_dup_live_digests (self->sessions);
  pruning->lines = g_string_new (NULL);
  return pruning;
}

static void
pruning_free (gpointer data)
{
  BjPruning *pruning = data;

  g_object_unref (pruning->sessions);
  g_strfreev (pruning->images);
  g_clear_pointer (&pruning->meter, bj_meter_free);
  g_string_free (pruning->lines, TRUE);
  g_free (pruning);
}

/* A question that only the main loop can answer; shared with it, because it may answer when nobody waits any more. */
typedef struct
{
  GMutex lock;
  GCond changed;
  BjSessionManager *sessions; /* (owned) */
  char *id;
  gboolean forget;
  gboolean answered;
  gboolean abandoned;
  BjSessionPresence presence;
} BjQuestion;

static void
question_clear (gpointer data)
{
  BjQuestion *question = data;

  g_object_unref (question->sessions);
  g_free (question->id);
  g_mutex_clear (&question->lock);
  g_cond_clear (&question->changed);
}

static void
question_unref (gpointer data)
{
  g_atomic_rc_box_release_full (data, question_clear);
}

static gboolean
answer_question (gpointer data)
{
  BjQuestion *question = data;
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&question->lock);

  if (!question->abandoned)
    question->presence = bj_session_manager_look (question->sessions, question->id, question->forget);
  question->answered = TRUE;
  g_cond_signal (&question->changed);
  return G_SOURCE_REMOVE;
}

/* What cannot be told counts as live. @forget: takes it off the bus if it is over */
static BjSessionPresence
look_at_session (BjPruning *pruning, const char *id, gboolean forget)
{
  BjQuestion *question = g_atomic_rc_box_new0 (BjQuestion);
  gint64 until = g_get_monotonic_time () + ANSWER_S * G_USEC_PER_SEC;
  BjSessionPresence presence;

  g_mutex_init (&question->lock);
  g_cond_init (&question->changed);
  question->sessions = g_object_ref (pruning->sessions);
  question->id = g_strdup (id);
  question->forget = forget;
  g_idle_add_full (G_PRIORITY_DEFAULT, answer_question, g_atomic_rc_box_acquire (question), question_unref);
  g_mutex_lock (&question->lock);
  while (!question->answered)
    if (!g_cond_wait_until (&question->changed, &question->lock, until))
      break;
  question->abandoned = !question->answered;
  presence = question->answered ? question->presence : BJ_SESSION_LIVE;
  g_mutex_unlock (&question->lock);
  question_unref (question);
  return presence;
}

static void G_GNUC_PRINTF (3, 4)
note (BjPruning *pruning, guint64 bytes, const char *format, ...)
{
  va_list args;
  g_autofree char *what = NULL;
  g_autofree char *size = g_format_size_full (bytes, G_FORMAT_SIZE_IEC_UNITS);

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  pruning->n++;
  pruning->bytes += bytes;
  if (!pruning->dry_run)
    g_message ("Removed %s", what);
  if (pruning->n_lines++ < LINES_MAX)
    g_string_append_printf (pruning->lines, "\n- %s, %s", what, size);
}

static void
prune_templates (BjPruning *pruning)
{
  g_autoptr(GPtrArray) images = bj_image_store_list (pruning->context->images);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  g_auto(GStrv) digests = NULL;
  g_auto(GStrv) obsolete = NULL;

  g_strv_builder_addv (builder, (const char **) pruning->images);
  for (guint i = 0; i < images->len; i++)
    g_strv_builder_add (builder, ((const BjImage *) g_ptr_array_index (images, i))->digest);
  digests = g_strv_builder_end (builder);
  obsolete = bj_templates_list_obsolete (pruning->context->templates, (const char *const *) digests);
  for (guint i = 0; obsolete[i] != NULL; i++)
    {
      g_autofree char *path = g_build_filename (pruning->context->state_dir, "templates", obsolete[i], NULL);
      guint64 bytes = bj_meter_add (pruning->meter, path);

      if (pruning->dry_run || bj_templates_forget (pruning->context->templates, obsolete[i]))
        note (pruning, bytes, "the template %s, whose image is gone", obsolete[i]);
    }
}

static const BjSessionRow *
find_row (GPtrArray *rows, const char *id)
{
  for (guint i = 0; i < rows->len; i++)
    {
      const BjSessionRow *row = g_ptr_array_index (rows, i);

      if (g_str_equal (row->id, id))
        return row;
    }
  return NULL;
}

static GStrv
list_folders (BjPruning *pruning)
{
  g_autofree char *path = g_build_filename (pruning->context->state_dir, "sessions", NULL);
  g_autoptr(GDir) dir = g_dir_open (path, 0, NULL);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    g_strv_builder_add (builder, name);
  return g_strv_builder_end (builder);
}

/* Folders are listed before the rows are read: a session's row is written before its folder is made. */
static gboolean
prune_leftovers (BjPruning *pruning, GError **error)
{
  g_auto(GStrv) folders = list_folders (pruning);
  g_autoptr(GPtrArray) rows = bj_store_list_sessions (pruning->context->store, error);

  if (rows == NULL)
    return FALSE;
  for (guint i = 0; folders[i] != NULL; i++)
    {
      g_autofree char *path = g_build_filename (pruning->context->state_dir, "sessions", folders[i], NULL);
      guint64 bytes;

      if (find_row (rows, folders[i]) != NULL || look_at_session (pruning, folders[i], FALSE) != BJ_SESSION_UNKNOWN)
        continue;
      bytes = bj_meter_add (pruning->meter, path);
      if (!pruning->dry_run && !bj_remove_tree (path, error))
        return FALSE;
      note (pruning, bytes, "%s, which belongs to no session", path);
    }
  return TRUE;
}

static int
compare_newest_first (gconstpointer a, gconstpointer b)
{
  const BjSessionRow *first = *(BjSessionRow *const *) a, *second = *(BjSessionRow *const *) b;

  if (first->finished != second->finished)
    return first->finished > second->finished ? -1 : 1;
  return g_strcmp0 (first->id, second->id);
}

/* Sessions without a project are their owner's. Returns: (transfer full) */
static char *
make_group (const BjSessionRow *row)
{
  return g_strdup_printf ("%u %s", row->owner_uid, row->project);
}

/* The newest ones of each project stay, up to the cap; the newest of all in any case: somebody may just be reading its report. */
static gboolean
prune_old (BjPruning *pruning, GCancellable *cancellable, GError **error)
{
  const BjConfig *config = pruning->context->config;
  gint64 oldest_kept = g_get_real_time () / G_USEC_PER_SEC - config->evidence_keep_s;
  g_autoptr(GPtrArray) rows = bj_store_list_sessions (pruning->context->store, error);
  g_autoptr(GHashTable) sums = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);

  if (rows == NULL)
    return FALSE;
  g_ptr_array_sort (rows, compare_newest_first);
  for (guint i = 0; i < rows->len && !g_cancellable_is_cancelled (cancellable); i++)
    {
      const BjSessionRow *row = g_ptr_array_index (rows, i);
      g_autofree char *path = g_build_filename (pruning->context->state_dir, "sessions", row->id, NULL);
      g_autofree char *group = make_group (row);
      guint64 *sum = g_hash_table_lookup (sums, group);
      gboolean is_newest = sum == NULL;
      guint64 bytes;

      if (row->finished == 0 || *row->outcome == '\0')
        continue;
      if (is_newest)
        g_hash_table_insert (sums, g_steal_pointer (&group), sum = g_new0 (guint64, 1));
      bytes = bj_meter_add (pruning->meter, path);
      *sum += bytes;
      if (is_newest || *sum <= config->evidence_bytes || row->finished > oldest_kept
          || look_at_session (pruning, row->id, !pruning->dry_run) != BJ_SESSION_OVER)
        continue;
      if (!pruning->dry_run && !bj_session_erase (pruning->context, row->id, error))
        return FALSE;
      note (pruning, bytes, "the session %s of %s", row->id, *row->project != '\0' ? row->project : "no project");
    }
  return TRUE;
}

static char *
describe (const BjPruning *pruning)
{
  g_autofree char *size = g_format_size_full (pruning->bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree char *more
      = pruning->n > LINES_MAX ? g_strdup_printf ("\n- and %u more", pruning->n - LINES_MAX) : g_strdup ("");

  if (pruning->n == 0)
    return g_strdup ("There is nothing to remove");
  return g_strdup_printf ("%s %u, %s in all:%s%s", pruning->dry_run ? "Would remove" : "Removed", pruning->n, size,
                          pruning->lines->str, more);
}

/* One at a time: two would trip over each other. Ends with g_atomic_int_set(). */
static gint busy;

static gboolean
wait_for_turn (GCancellable *cancellable, GError **error)
{
  gint64 until = g_get_monotonic_time () + TURN_S * G_USEC_PER_SEC;

  while (!g_atomic_int_compare_and_exchange (&busy, 0, 1))
    {
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      if (g_get_monotonic_time () > until)
        return bj_error_set (error, BJ_ERROR_BUSY, "Another job prunes already: wait for its end");
      g_usleep (LOOK_US);
    }
  return TRUE;
}

static gboolean
prune_in_turn (BjPruning *pruning, BjProgress *progress, GCancellable *cancellable, GError **error)
{
  pruning->meter = bj_meter_new (MEASURE_S, cancellable);
  bj_progress_add_step (progress, "templates", 1);
  bj_progress_add_step (progress, "leftovers", 1);
  bj_progress_add_step (progress, "sessions", 2);
  if (!pruning->only_cap)
    prune_templates (pruning);
  bj_progress_step_done (progress);
  if (!pruning->only_cap && !prune_leftovers (pruning, error))
    return FALSE;
  bj_progress_step_done (progress);
  if (pruning->context->config->evidence_bytes > 0 && !prune_old (pruning, cancellable, error))
    return FALSE;
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static gboolean
prune (gpointer data, BjProgress *progress, GCancellable *cancellable, char **message, GError **error)
{
  BjPruning *pruning = data;
  gboolean ok;

  if (!wait_for_turn (cancellable, error))
    return FALSE;
  ok = prune_in_turn (pruning, progress, cancellable, error);
  g_atomic_int_set (&busy, 0);
  if (ok)
    *message = describe (pruning);
  return ok;
}

static const BjOption prune_options[] = { { "dry-run", "b", NULL } };

gboolean
bj_pruner_call (BjPruner *self, GDBusMethodInvocation *invocation, GVariant *options)
{
  g_autoptr(GError) error = NULL;
  BjPruning *pruning;

  if (!bj_options_check (options, prune_options, G_N_ELEMENTS (prune_options), &error))
    {
      bj_gate_return_error (invocation, error);
      return TRUE;
    }
  pruning = pruning_new (self);
  g_variant_lookup (options, "dry-run", "b", &pruning->dry_run);
  bj_call_as_job (invocation, self->context->jobs, "prune", prune, pruning, pruning_free);
  return TRUE;
}

/* A job, so that it is seen, and waited for when the daemon ends. */
static void
on_over (BjPruner *self)
{
  const BjCaller caller = { .sender = NULL, .uid = geteuid (), .gid = getegid () };
  g_autoptr(GError) error = NULL;
  g_autofree char *path = NULL;
  BjPruning *pruning = pruning_new (self);

  pruning->only_cap = TRUE;
  path = bj_jobs_start (self->context->jobs, "prune", &caller, prune, pruning, pruning_free, &error);
  if (path == NULL)
    g_message ("The evidence of sessions is not pruned now: %s", error->message);
}

BjPruner *
bj_pruner_new (BjContext *context, BjSessionManager *sessions)
{
  BjPruner *self = g_new0 (BjPruner, 1);

  self->context = context;
  self->sessions = g_object_ref (sessions);
  if (context->config->evidence_bytes > 0)
    self->changed_id = g_signal_connect_swapped (sessions, "over", G_CALLBACK (on_over), self);
  return self;
}

void
bj_pruner_free (BjPruner *self)
{
  if (self->changed_id != 0)
    g_signal_handler_disconnect (self->sessions, self->changed_id);
  g_object_unref (self->sessions);
  g_free (self);
}
