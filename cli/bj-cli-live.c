/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-live.h"

#include "bj-cli-output.h"
#include "bj-units.h"
#include "bj-untrusted.h"

#include <glib/gi18n.h>
#include <unistd.h>

#define REDRAW_MS 500
#define ACTIVITY_MAX 300

struct _BjLive
{
  BjClient *client;
  BjDBusSession *session;
  BjStatus *status;
  GCancellable *cancellable;
  guint tick_id;
  gboolean stale;  /* something happened since Details was asked */
  gboolean asking; /* Details is on its way */
  char *activity;  /* escaped */
};

static const char *
describe_state (const char *state)
{
  static const struct
  {
    const char *state;
    const char *text;
  } texts[] = {
    { "starting", N_("starting the machine") },
    { "running", N_("the sub-agent works") },
    { "paused", N_("paused") },
    { "needs-input", N_("needs input") },
    { "verifying", N_("verifying in fresh machines") },
    { "finished", N_("finished") },
    { "failed", N_("failed") },
    { "cancelled", N_("cancelled") },
  };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    if (g_strcmp0 (texts[i].state, state) == 0)
      return _(texts[i].text);
  return _("waiting");
}

static void
draw (BjLive *self)
{
  guint64 started = bj_dbus_session_get_started_at (self->session);
  guint64 now = (guint64) (g_get_real_time () / G_USEC_PER_SEC);
  g_autofree char *elapsed = bj_units_format_duration (started > 0 && now > started ? now - started : 0);
  guint steps = bj_dbus_session_get_steps (self->session);
  g_autofree char *detail = NULL;

  detail = g_strdup_printf (g_dngettext (GETTEXT_PACKAGE, "%s, %u step  %s", "%s, %u steps  %s", steps), elapsed, steps,
                            self->activity != NULL ? self->activity : "");
  bj_status_set (self->status, describe_state (bj_dbus_session_get_state (self->session)), detail);
}

static void
on_details (GObject *source, GAsyncResult *result, gpointer user_data)
{
  BjLive *self;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) answer = bj_client_call_finish (BJ_CLIENT (source), result, NULL, &error);
  g_autoptr(GVariant) details = NULL;
  const char *activity = "";

  if (g_cancellable_is_cancelled (g_task_get_cancellable (G_TASK (result))))
    return; /* the object is gone */
  self = user_data;
  self->asking = FALSE;
  /* A failure comes to the person by the wait for the report. */
  if (answer == NULL)
    return;
  details = g_variant_get_child_value (answer, 0);
  g_variant_lookup (details, "activity", "&s", &activity);
  g_free (self->activity);
  self->activity = bj_untrusted_escape (activity, -1, ACTIVITY_MAX);
  draw (self);
}

static void
ask (BjLive *self)
{
  self->stale = FALSE;
  self->asking = TRUE;
  bj_client_call_async (self->client, self->session, "Details", NULL, NULL, -1, self->cancellable, on_details, self);
}

static gboolean
on_tick (gpointer user_data)
{
  BjLive *self = user_data;

  /* One that waits for memory has a place in line, and no signal says that it has changed. */
  if (g_strcmp0 (bj_dbus_session_get_state (self->session), "starting") == 0)
    self->stale = TRUE;
  if (self->stale && !self->asking)
    ask (self);
  else
    draw (self);
  return G_SOURCE_CONTINUE;
}

static void
on_changed (BjLive *self)
{
  self->stale = TRUE;
}

static void
on_state (BjLive *self)
{
  self->stale = TRUE;
  draw (self);
}

BjLive *
bj_live_new (BjClient *client, BjDBusSession *session, BjStatus *status)
{
  BjLive *self = g_new0 (BjLive, 1);

  self->client = g_object_ref (client);
  self->session = g_object_ref (session);
  self->status = status;
  self->cancellable = g_cancellable_new ();
  self->stale = TRUE;
  g_signal_connect_swapped (session, "notify::state", G_CALLBACK (on_state), self);
  g_signal_connect_swapped (session, "transcript-appended", G_CALLBACK (on_changed), self);
  if (bj_output_is_terminal (STDERR_FILENO))
    self->tick_id = g_timeout_add (REDRAW_MS, on_tick, self);
  draw (self);
  return self;
}

void
bj_live_free (BjLive *self)
{
  g_cancellable_cancel (self->cancellable);
  g_signal_handlers_disconnect_by_data (self->session, self);
  g_clear_handle_id (&self->tick_id, g_source_remove);
  bj_status_clear (self->status);
  g_object_unref (self->cancellable);
  g_object_unref (self->session);
  g_object_unref (self->client);
  g_free (self->activity);
  g_free (self);
}
