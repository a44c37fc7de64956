/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-work-boot.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-lease.h"
#include "bj-machine-note.h"
#include "bj-pool.h"
#include "bj-record.h"
#include "bj-units.h"

#include <errno.h>

#define READY_MAX_S 180

static void
note_time (BjWork *work, const BjBoot *boot, const char *phase, gint64 *begun)
{
  gint64 now = g_get_monotonic_time ();

  if (boot->own)
    bj_session_note_time (work->session, phase, *begun);
  *begun = now;
}

gboolean
bj_work_attach_share (BjWork *work, BjMachine *machine, GCancellable *cancellable, GError **error)
{
  const char *project = work->plan->project;
  g_autoptr(BjProjectRow) row = bj_project_store_lookup (work->context->projects, project, error);
  g_auto(BjFd) folder = row != NULL ? bj_project_store_open_work (work->context->projects, project, error) : -1;

  return folder >= 0
         && bj_machine_attach_share (machine, folder, row->owner_uid, row->owner_gid, cancellable, error);
}

/* The tree's file is the daemon's until it is known which machine reads it. */
static gboolean
hand_over_data_disk (const BjBoot *boot, BjMachine *machine, GError **error)
{
  const char *path = boot->spec->data_disk;
  uid_t uid = bj_machine_get_uid (machine);

  if (path == NULL || geteuid () != 0)
    return TRUE;
  return lchown (path, uid, uid) == 0 || bj_fd_set_io_error (error, errno, "Handing %s to the machine", path);
}

static gboolean
note_machine (BjWork *work, const BjBoot *boot, BjMachine *machine, GError **error)
{
  g_autofree char *dir = boot->own ? bj_session_dup_dir (work->session, NULL) : NULL;

  return dir == NULL || bj_machine_note_write (dir, bj_machine_get_spec (machine), error);
}

void
bj_work_record_machine (BjWork *work, BjMachine *machine, const char *start, const BjMachineFacts *facts)
{
  const BjMachineRecord record = {
    .id = bj_machine_get_id (machine),
    .start = start,
    .clock_offset_s = (double) facts->clock_us / G_USEC_PER_SEC,
    .hostname = facts->hostname,
    .machine_id = facts->machine_id,
    .mac = facts->mac,
    .random = facts->random,
    .uuid = facts->uuid,
    .reseeded = facts->reseeded,
  };

  bj_session_record (work->session, TRUE, "machine", bj_record_machine (&record));
}

/* From a machine that is paused to one that is ready for its first command. */
static gboolean
let_go (BjWork *work, BjBoot *boot, BjMachine *machine, const char *start, gint64 *begun, GError **error)
{
  const BjMachineSpec *spec = boot->spec;
  g_autofree char *mount_point = spec->share ? g_strconcat ("/work/", work->plan->project, NULL) : NULL;
  g_auto(BjMachineFacts) facts = { 0 };

  if (!note_machine (work, boot, machine, error) || !hand_over_data_disk (boot, machine, error)
      || (spec->share && !bj_work_attach_share (work, machine, boot->cancellable, error)))
    return FALSE;
  if (spec->network)
    boot->cable = bj_cable_new (work->session, machine);
  if (!bj_machine_run (machine, error))
    return FALSE;
  if (!g_str_equal (start, "cold"))
    note_time (work, boot, "clone", begun);
  if (!bj_machine_wait_ready (machine, READY_MAX_S, boot->cancellable, error))
    return FALSE;
  note_time (work, boot, "ready", begun);
  if (!bj_machine_setup (machine, mount_point, &facts, boot->cancellable, error))
    return FALSE;
  note_time (work, boot, "setup", begun);
  bj_work_record_machine (work, machine, start, &facts);
  return TRUE;
}

static gboolean
bring_up (BjWork *work, BjBoot *boot, BjMachine *machine, GError **error)
{
  gint64 begun = g_get_monotonic_time ();

  if (!bj_machine_prepare (machine, boot->cancellable, error))
    return FALSE;
  note_time (work, boot, "overlay", &begun);
  return bj_machine_create (machine, boot->cancellable, error)
         && let_go (work, boot, machine, boot->spec->template != NULL ? "template" : "cold", &begun, error);
}

static void
say_that_it_makes (gpointer user_data)
{
  BjWork *work = user_data;

  bj_session_set_activity (work->session, "making the image's template, once");
}

/* Returns: (transfer full) (nullable) */
static BjTemplate *
get_template (BjWork *work, const BjBoot *boot)
{
  BjContext *context = work->context;
  const BjImage *image = work->plan->image;
  g_autoptr(GError) error = NULL;
  BjTemplate *template;

  if (!context->config->templates || image == NULL)
    return NULL;
  template = bj_templates_get (context->templates, image->digest, boot->spec, boot->own ? say_that_it_makes : NULL, work,
                               boot->cancellable, &error);
  if (template == NULL && !g_cancellable_is_cancelled (boot->cancellable))
    bj_session_warn (work->session, "A machine was booted, not cloned: %s", error->message);
  return template;
}

/* Nothing else would help. */
static gboolean
is_over (const BjBoot *boot, const GError *error)
{
  return g_cancellable_is_cancelled (boot->cancellable) || g_error_matches (error, BJ_ERROR, BJ_ERROR_NO_SPACE);
}

/* Returns whether there was one and it works; else what is left of it goes. */
static gboolean
boot_from_pool (BjWork *work, BjBoot *boot, BjMachine **machine)
{
  BjContext *context = work->context;
  const BjImage *image = work->plan->image;
  gint64 begun = g_get_monotonic_time ();
  g_autoptr(GError) error = NULL;

  *machine = context->pool != NULL && image != NULL ? bj_pool_take (context->pool, image->digest, boot->spec) : NULL;
  if (*machine == NULL)
    return FALSE;
  if (let_go (work, boot, *machine, "pool", &begun, &error))
    return TRUE;
  g_clear_pointer (&boot->cable, bj_cable_free);
  if (!is_over (boot, error))
    bj_session_warn (work->session, "A machine of the pool did not work: %s", error->message);
  bj_teardown_add (context->teardown, g_steal_pointer (machine));
  return FALSE;
}

void
bj_work_say_that_it_waits (guint place, guint used_mib, guint total_mib, gpointer user_data)
{
  BjWork *work = user_data;
  g_autofree char *ordinal = bj_units_format_ordinal (place);

  bj_session_set_activity (work->session, "waiting for memory, %s in line: machines have %u of %u MiB", ordinal, used_mib, total_mib);
}

/* With a template first, without it when that fails. */
static gboolean
clone_or_boot (BjWork *work, BjBoot *boot, BjMachine **machine, GError **error)
{
  BjMachineSpec *spec = boot->spec;
  g_autoptr(GError) failure = NULL;
  g_autoptr(GError) leftover = NULL;

  g_clear_pointer (&spec->template, bj_template_unref);
  spec->template = get_template (work, boot);
  if (boot->own)
    bj_session_set_activity (work->session, "starting the machine");
  *machine = bj_machine_new (work->context->engine, spec);
  if (bring_up (work, boot, *machine, &failure))
    return TRUE;
  g_clear_pointer (&boot->cable, bj_cable_free);
  if (spec->template == NULL || is_over (boot, failure))
    {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
  bj_session_warn (work->session, "A machine was booted, not cloned: %s", failure->message);
  if (!bj_machine_destroy (*machine, &leftover))
    g_warning ("Session %s: a clone is not quite gone: %s", work->plan->id, leftover->message);
  g_clear_object (machine);
  g_clear_pointer (&spec->template, bj_template_unref);
  *machine = bj_machine_new (work->context->engine, spec);
  return bring_up (work, boot, *machine, error);
}

gboolean
bj_work_boot (BjWork *work, BjBoot *boot, BjMachine **machine, GError **error)
{
  BjLease *lease;
  gboolean ok;

  if (boot->own)
    bj_session_set_activity (work->session, "starting the machine");
  if (boot_from_pool (work, boot, machine))
    return TRUE;
  lease = bj_lease_take (work->context, boot->spec->memory_mib, boot->own ? (int) work->plan->slot : -1,
                         bj_work_say_that_it_waits, work, boot->cancellable, error);
  if (lease == NULL)
    return FALSE;
  bj_session_set_activity (work->session, boot->own ? "starting the machine" : "checking in a fresh machine");
  work->slot_is_leased |= boot->own;
  boot->spec->slot = bj_lease_get_slot (lease);
  ok = clone_or_boot (work, boot, machine, error);
  if (!ok)
    g_clear_pointer (&boot->cable, bj_cable_free);
  bj_machine_on_gone (*machine, (GDestroyNotify) bj_lease_free, lease);
  return ok;
}
