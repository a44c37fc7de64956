/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

#include "bj-work-boot.h"

#include "bj-error.h"
#include "bj-lease.h"
#include "bj-record.h"

#include <sys/statvfs.h>

#define RESUME_FREE_BYTES (256ull * 1024 * 1024)

static void
add_layer (JsonObject *isolation, const char *name, gboolean active, gboolean proven, const char *reason)
{
  JsonObject *layer = json_object_new ();

  json_object_set_boolean_member (layer, "active", active);
  json_object_set_boolean_member (layer, "proven", proven);
  json_object_set_string_member (layer, "reason", reason);
  json_object_set_object_member (isolation, name, layer);
}

static JsonObject *
describe_isolation (BjWork *work)
{
  JsonObject *isolation = json_object_new ();
  gboolean active = FALSE;
  gboolean proven = FALSE;
  g_autofree char *reason = NULL;

  if (work->context->firewall != NULL)
    bj_firewall_get_status (work->context->firewall, &active, &proven, &reason);
  else
    reason = g_strdup ("belljard does not run as root");
  add_layer (isolation, "nftables", active, proven, reason);
  add_layer (isolation, "systemd", FALSE, FALSE, "not part of this version");
  add_layer (isolation, "uid", geteuid () == 0, geteuid () == 0,
             geteuid () == 0 ? "each machine has a uid of its own" : "belljard does not run as root");
  return isolation;
}

void
bj_work_settle_network (BjWork *work)
{
  g_autoptr(GError) error = NULL;
  const char *reason = "belljard does not run as root, so no layer of isolation can be installed";

  if (!work->plan->wants_network)
    return;
  if (work->context->firewall != NULL && bj_firewall_prove (work->context->firewall, &error))
    work->network = TRUE;
  else
    bj_session_warn (work->session, "No network: %s", error != NULL ? error->message : reason);
}

void
bj_work_record_begin (BjWork *work)
{
  const BjSessionPlan *plan = work->plan;
  g_autoptr(JsonObject) isolation = describe_isolation (work);
  const BjSessionFacts facts = {
    .session = plan->id,
    .kind = plan->kind,
    .project = plan->project != NULL ? plan->project : "",
    .image_name = plan->image->name,
    .image_version = plan->image->version,
    .image_digest = plan->image->digest,
    .baseline = work->baseline,
    .baseline_tree = work->baseline_tree,
    .task = plan->task != NULL ? plan->task : "",
    .check_command = work->check,
    .check_setup = work->setup,
    .check_source = work->check_source,
    .protect = (const char *const *) work->protect,
    .check_network = work->settings.network,
    .model = plan->model,
    .accelerator = bj_accelerator_to_string (bj_engine_get_accelerator (work->context->engine)),
    .network = work->network ? "internet" : "none",
    .isolation = isolation,
    .owner_uid = plan->owner_uid,
    .steps_limit = plan->steps,
    .wall_clock_s = plan->wall_clock_s,
  };

  bj_session_record (work->session, TRUE, "session", bj_record_session (&facts));
}

BjMachineSpec *
bj_work_make_spec (BjWork *work, const char *suffix, guint slot)
{
  const BjImage *image = work->plan->image;
  BjMachineSpec *spec = g_new0 (BjMachineSpec, 1);
  g_autofree char *directory = g_strconcat ("run", suffix, NULL);

  spec->id = g_strconcat (work->plan->id, suffix, NULL);
  spec->slot = slot;
  spec->run_dir = bj_session_dup_dir (work->session, directory);
  if (image != NULL)
    {
      spec->base = g_strdup (image->disk);
      spec->kernel = g_strdup (image->kernel);
      spec->initrd = g_strdup (image->initrd);
      spec->cmdline = g_strdup (image->cmdline);
      spec->tablet = image->desktop;
    }
  spec->hostname = g_strdup_printf ("belljar-%s", work->plan->id);
  spec->memory_mib = work->memory_mib;
  spec->cpus = work->plan->cpus;
  spec->resolvers = g_strdupv (work->context->config->resolvers);
  return spec;
}

gboolean
bj_work_start_machine (BjWork *work, GError **error)
{
  g_autoptr(BjMachineSpec) spec = bj_work_make_spec (work, "", work->plan->slot);
  BjBoot boot = { .spec = spec, .own = TRUE, .cancellable = bj_session_get_cancellable (work->session) };

  spec->network = work->network;
  spec->share = work->plan->project != NULL;
  work->shared = spec->share;
  if (!bj_work_boot (work, &boot, &work->machine, error))
    return FALSE;
  work->cable = g_steal_pointer (&boot.cable);
  bj_session_set_machine (work->session, work->machine);
  return TRUE;
}

static gboolean
has_room (BjWork *work)
{
  struct statvfs fs;

  return statvfs (work->context->state_dir, &fs) == 0
         && (guint64) fs.f_bavail * fs.f_frsize > RESUME_FREE_BYTES;
}

/* QEMU has stopped the machine at a write that found no room: it is repeated when the machine goes on. */
static void
wait_for_room (BjWork *work)
{
  g_autoptr(GError) error = NULL;

  if (bj_session_set_stalled (work->session, TRUE))
    bj_session_warn (work->session, "The host's disk is full: the machine waits until %llu MiB are free in %s",
                     RESUME_FREE_BYTES >> 20, work->context->state_dir);
  bj_session_set_activity (work->session, "waiting for free disk space on the host");
  if (!has_room (work))
    return;
  if (!bj_machine_resume (work->machine, &error))
    {
      g_warning ("Session %s: %s", work->plan->id, error->message);
      return;
    }
  bj_session_set_stalled (work->session, FALSE);
  bj_session_set_activity (work->session, "going on");
  bj_session_warn (work->session, "There is room on the host's disk again: the machine goes on and lost nothing");
}

void
bj_work_watch_machine (BjWork *work)
{
  switch (bj_machine_get_state (work->machine))
    {
    case BJ_MACHINE_STATE_ABSENT:
      bj_session_end_work (work->session, BJ_END_MACHINE, bj_error_get_name (BJ_ERROR_GUEST_UNREACHABLE),
                           "The machine was gone: it was powered off or it crashed");
      break;
    case BJ_MACHINE_STATE_NO_SPACE:
      wait_for_room (work);
      break;
    case BJ_MACHINE_STATE_RUNNING:
    case BJ_MACHINE_STATE_PAUSED:
    default:
      break;
    }
}

void
bj_work_end_machine (BjWork *work)
{
  g_autoptr(GError) error = NULL;

  bj_session_set_machine (work->session, NULL);
  g_clear_pointer (&work->cable, bj_cable_free);
  work->shared = FALSE;
  if (work->machine == NULL)
    return;
  /* Nothing it still does may take the time of the machines that check. */
  if (bj_machine_get_state (work->machine) == BJ_MACHINE_STATE_RUNNING && !bj_machine_pause (work->machine, &error))
    g_message ("Session %s: %s", work->plan->id, error->message);
  if (has_room (work) && bj_work_hold_machine (work))
    return;
  bj_teardown_add (work->context->teardown, g_steal_pointer (&work->machine));
  /* Tree, commit and report are still to be written: its disk makes room for them. */
  if (!has_room (work))
    bj_teardown_wait (work->context->teardown);
}

/* One from the pool has a slot of its own. */
gboolean
bj_work_lease_adopted (BjWork *work, const BjMachineSpec *spec, guint mib, GError **error)
{
  BjContext *context = work->context;

  work->slot_is_leased = spec->slot == work->plan->slot;
  if (!work->slot_is_leased && !bj_slots_reserve (context->slots, spec->slot))
    return bj_error_set (error, BJ_ERROR_BUSY, "its machine's slot is taken");
  bj_machine_on_gone (work->machine, (GDestroyNotify) bj_lease_free, bj_lease_adopt (context, mib, spec->slot));
  return TRUE;
}
