/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-work-boot.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-record.h"

#define READY_MAX_S 180

static void
note_time (BjWork *work, const BjBoot *boot, const char *phase, gint64 *begun)
{
  gint64 now = g_get_monotonic_time ();

  if (boot->own)
    bj_session_note_time (work->session, phase, *begun);
  *begun = now;
}

static gboolean
attach_share (BjWork *work, const BjBoot *boot, BjMachine *machine, GError **error)
{
  const char *project = work->plan->project;
  g_autoptr(BjProjectRow) row = bj_project_store_lookup (work->context->projects, project, error);
  g_auto(BjFd) folder = row != NULL ? bj_project_store_open_work (work->context->projects, project, error) : -1;

  return folder >= 0
         && bj_machine_attach_share (machine, folder, row->owner_uid, row->owner_gid, boot->cancellable, error);
}

static gboolean
bring_up (BjWork *work, const BjBoot *boot, BjMachine *machine, GError **error)
{
  const BjMachineSpec *spec = boot->spec;
  g_autofree char *mount_point = spec->share ? g_strconcat ("/work/", work->plan->project, NULL) : NULL;
  g_auto(BjMachineFacts) facts = { 0 };
  gint64 begun = g_get_monotonic_time ();

  if (!bj_machine_prepare (machine, boot->cancellable, error))
    return FALSE;
  note_time (work, boot, "overlay", &begun);
  if (!bj_machine_create (machine, boot->cancellable, error)
      || (spec->share && !attach_share (work, boot, machine, error)) || !bj_machine_run (machine, error))
    return FALSE;
  if (spec->template != NULL)
    note_time (work, boot, "clone", &begun);
  if (!bj_machine_wait_ready (machine, READY_MAX_S, boot->cancellable, error))
    return FALSE;
  note_time (work, boot, "ready", &begun);
  if (!bj_machine_setup (machine, mount_point, &facts, boot->cancellable, error))
    return FALSE;
  note_time (work, boot, "setup", &begun);
  bj_session_record (work->session, TRUE, "machine",
                     bj_record_machine (&(BjMachineRecord) {
                         .id = spec->id,
                         .start = spec->template != NULL ? "template" : "cold",
                         .clock_offset_s = (double) facts.clock_us / G_USEC_PER_SEC,
                         .hostname = facts.hostname,
                         .machine_id = facts.machine_id,
                         .mac = facts.mac,
                         .random = facts.random,
                     }));
  return TRUE;
}

/* Returns: (transfer full) (nullable) */
static BjTemplate *
get_template (BjWork *work, const BjBoot *boot)
{
  BjTemplates *templates = work->context->templates;
  const BjImage *image = work->plan->image;
  g_autoptr(GError) error = NULL;
  BjTemplate *template;

  if (templates == NULL || image == NULL)
    return NULL;
  if (boot->own && !bj_templates_is_there (templates, image->digest, boot->spec))
    bj_session_set_activity (work->session, "making the image's template, once");
  template = bj_templates_get (templates, image->digest, boot->spec, boot->cancellable, &error);
  if (template == NULL && !g_cancellable_is_cancelled (boot->cancellable))
    bj_session_warn (work->session, "A machine was booted, not cloned: %s", error->message);
  return template;
}

static gboolean
is_over (const BjBoot *boot, const GError *error)
{
  return g_cancellable_is_cancelled (boot->cancellable) || g_error_matches (error, BJ_ERROR, BJ_ERROR_NO_SPACE);
}

gboolean
bj_work_boot (BjWork *work, BjBoot *boot, BjMachine **machine, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autoptr(GError) leftover = NULL;

  g_clear_pointer (&boot->spec->template, bj_template_unref);
  boot->spec->template = get_template (work, boot);
  if (boot->own)
    bj_session_set_activity (work->session, "starting the machine");
  *machine = bj_machine_new (work->context->engine, boot->spec);
  if (boot->spec->template == NULL || is_over (boot, NULL))
    return bring_up (work, boot, *machine, error);
  if (bring_up (work, boot, *machine, &failure))
    return TRUE;
  if (is_over (boot, failure))
    {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
  bj_session_warn (work->session, "A machine was booted, not cloned: %s", failure->message);
  if (!bj_machine_destroy (*machine, &leftover))
    g_warning ("Session %s: a clone is not quite gone: %s", work->plan->id, leftover->message);
  g_clear_object (machine);
  g_clear_pointer (&boot->spec->template, bj_template_unref);
  *machine = bj_machine_new (work->context->engine, boot->spec);
  return bring_up (work, boot, *machine, error);
}
