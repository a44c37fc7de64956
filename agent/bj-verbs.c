/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define VERB_SECONDS 180
#define GIT_SECONDS 600 /* a large project is read whole */
#define MAX_RECORD (1000 * 1000)
#define LABEL_PART 4000 /* bytes of each end of a long command that go into the record */

static BjDBusAgent *
verbs (BjAgent *self, guint seconds)
{
  g_dbus_proxy_set_default_timeout (G_DBUS_PROXY (self->verbs), (int) ((VERB_SECONDS + seconds) * 1000));
  return self->verbs;
}

/* Whether it went well; if not, @error gets one of ours without what D-Bus wrapped around it. @why is taken: its address, because a
 * call in the same argument list sets it. */
static gboolean
done (gboolean ok, GError **why, GError **error)
{
  g_autoptr(GError) owned = g_steal_pointer (why);

  if (ok)
    return TRUE;
  g_dbus_error_strip_remote_error (owned);
  if (g_error_matches (owned, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The daemon gave no answer in time");
  if (g_error_matches (owned, G_IO_ERROR, G_IO_ERROR_CLOSED))
    return bj_error_set (error, BJ_ERROR_CANCELLED, "The daemon is gone");
  g_propagate_error (error, bj_error_to_bus (owned));
  return FALSE;
}

GVariant *
bj_verbs_get_task (BjAgent *self, GError **error)
{
  GVariant *task = NULL;
  GError *why = NULL;

  return done (bj_dbus_agent_call_get_task_sync (verbs (self, 0), &task, NULL, &why), &why, error) ? task : NULL;
}

static GVariant *
exec_options (BjAgent *self, const char *cwd, const char *input, guint timeout_s)
{
  g_autofree char *folder = cwd ? bj_path_resolve (self, cwd) : g_strdup (self->task.folder);
  GVariantBuilder options;

  g_variant_builder_init (&options, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&options, "{sv}", "cwd", g_variant_new_bytestring (folder));
  if (timeout_s > 0)
    g_variant_builder_add (&options, "{sv}", "timeout", g_variant_new_uint32 (timeout_s));
  if (input != NULL)
    g_variant_builder_add (&options, "{sv}", "stdin",
                           g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, input, strlen (input), 1));
  return g_variant_builder_end (&options);
}

GVariant *
bj_verbs_exec (BjAgent *self, const BjVerbExec *exec, GError **error)
{
  GVariant *options = exec_options (self, exec->cwd, exec->input, exec->timeout_s);
  g_autofree char *label = bj_text_shorten (exec->label, LABEL_PART, LABEL_PART);
  GVariant *result = NULL;
  GError *why = NULL;
  gboolean ok = bj_dbus_agent_call_exec_sync (verbs (self, exec->timeout_s), exec->tool, label, exec->argv, options,
                                              &result, NULL, &why);

  return done (ok, &why, error) ? result : NULL;
}

gboolean
bj_verbs_start (BjAgent *self, const char *label, const char *const *argv, const char *cwd, guint *id, GError **error)
{
  GVariant *options = exec_options (self, cwd, NULL, 0);
  g_autofree char *shorter = bj_text_shorten (label, LABEL_PART, LABEL_PART);
  GError *why = NULL;

  return done (bj_dbus_agent_call_start_sync (verbs (self, 0), shorter, argv, options, id, NULL, &why), &why, error);
}

GVariant *
bj_verbs_poll (BjAgent *self, guint id, guint wait_s, GError **error)
{
  GVariant *result = NULL;
  GError *why = NULL;
  gboolean ok = bj_dbus_agent_call_poll_sync (verbs (self, wait_s), id, wait_s, &result, NULL, &why);

  return done (ok, &why, error) ? result : NULL;
}

static GVariant *
bytes_variant (const char *data, gsize length)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, data, length, 1);
}

gboolean
bj_verbs_send (BjAgent *self, guint id, const char *text, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_send_sync (verbs (self, 0), id, bytes_variant (text, strlen (text)), NULL, &why), &why,
               error);
}

gboolean
bj_verbs_kill (BjAgent *self, guint id, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_kill_sync (verbs (self, 0), id, NULL, &why), &why, error);
}

GVariant *
bj_verbs_list_background (BjAgent *self, GError **error)
{
  GVariant *list = NULL;
  GError *why = NULL;

  return done (bj_dbus_agent_call_list_background_sync (verbs (self, 0), &list, NULL, &why), &why, error) ? list : NULL;
}

GBytes *
bj_verbs_read_file (BjAgent *self, const char *path, guint64 offset, guint64 limit, guint64 *size, GError **error)
{
  g_autofree char *full = bj_path_resolve (self, path);
  g_autoptr(GVariant) data = NULL;
  GError *why = NULL;
  gboolean ok = bj_dbus_agent_call_read_file_sync (verbs (self, 0), full, offset, limit, &data, size, NULL, &why);

  return done (ok, &why, error) ? g_variant_get_data_as_bytes (data) : NULL;
}

gboolean
bj_verbs_write_file (BjAgent *self, const char *tool, const char *path, const char *data, gsize length, int mode,
                     gboolean append, GError **error)
{
  g_autofree char *full = bj_path_resolve (self, path);
  GVariantBuilder options;
  GError *why = NULL;
  gboolean ok;

  g_variant_builder_init (&options, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&options, "{sv}", "tool", g_variant_new_string (tool));
  if (append)
    g_variant_builder_add (&options, "{sv}", "append", g_variant_new_boolean (TRUE));
  if (mode >= 0)
    g_variant_builder_add (&options, "{sv}", "mode", g_variant_new_uint32 ((guint) mode));
  ok = bj_dbus_agent_call_write_file_sync (verbs (self, 0), full, bytes_variant (data, length),
                                           g_variant_builder_end (&options), NULL, &why);
  return done (ok, &why, error);
}

GBytes *
bj_verbs_screenshot (BjAgent *self, GError **error)
{
  g_autoptr(GVariant) data = NULL;
  GError *why = NULL;

  if (!done (bj_dbus_agent_call_screenshot_sync (verbs (self, 0), &data, NULL, &why), &why, error))
    return NULL;
  return g_variant_get_data_as_bytes (data);
}

gboolean
bj_verbs_mouse_move (BjAgent *self, guint x, guint y, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_mouse_move_sync (verbs (self, 0), x, y, NULL, &why), &why, error);
}

gboolean
bj_verbs_mouse_click (BjAgent *self, guint x, guint y, const char *button, gboolean twice, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_mouse_click_sync (verbs (self, 0), x, y, button, twice, NULL, &why), &why, error);
}

gboolean
bj_verbs_mouse_drag (BjAgent *self, const guint places[4], const char *button, GError **error)
{
  GError *why = NULL;
  gboolean ok = bj_dbus_agent_call_mouse_drag_sync (verbs (self, 0), places[0], places[1], places[2], places[3], button, NULL,
                                                    &why);

  return done (ok, &why, error);
}

gboolean
bj_verbs_scroll (BjAgent *self, guint x, guint y, int amount, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_scroll_sync (verbs (self, 0), x, y, amount, NULL, &why), &why, error);
}

gboolean
bj_verbs_type_text (BjAgent *self, const char *text, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_type_text_sync (verbs (self, 0), text, NULL, &why), &why, error);
}

gboolean
bj_verbs_press_keys (BjAgent *self, const char *keys, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_press_keys_sync (verbs (self, 0), keys, NULL, &why), &why, error);
}

gboolean
bj_verbs_wait (BjAgent *self, guint seconds, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_wait_sync (verbs (self, seconds), seconds, NULL, &why), &why, error);
}

gboolean
bj_verbs_git_status (BjAgent *self, GVariant **changes, guint64 *total, GStrv *warnings, GError **error)
{
  GError *why = NULL;
  gboolean ok = bj_dbus_agent_call_git_status_sync (verbs (self, GIT_SECONDS), changes, total, warnings, NULL, &why);

  return done (ok, &why, error);
}

GBytes *
bj_verbs_git_diff (BjAgent *self, const char *path, gboolean *cut, GError **error)
{
  g_autoptr(GVariant) patch = NULL;
  GError *why = NULL;
  gboolean ok = bj_dbus_agent_call_git_diff_sync (verbs (self, GIT_SECONDS), path, &patch, cut, NULL, &why);

  return done (ok, &why, error) ? g_variant_get_data_as_bytes (patch) : NULL;
}

GVariant *
bj_verbs_git_log (BjAgent *self, guint count, GError **error)
{
  GVariant *commits = NULL;
  GError *why = NULL;

  return done (bj_dbus_agent_call_git_log_sync (verbs (self, 0), count, &commits, NULL, &why), &why, error) ? commits : NULL;
}

gboolean
bj_verbs_plan_add (BjAgent *self, const char *text, guint *id, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_plan_add_sync (verbs (self, 0), text, id, NULL, &why), &why, error);
}

gboolean
bj_verbs_plan_update (BjAgent *self, guint id, const char *status, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_plan_update_sync (verbs (self, 0), id, status, NULL, &why), &why, error);
}

GVariant *
bj_verbs_plan_list (BjAgent *self, GError **error)
{
  GVariant *plan = NULL;
  GError *why = NULL;

  return done (bj_dbus_agent_call_plan_list_sync (verbs (self, 0), &plan, NULL, &why), &why, error) ? plan : NULL;
}

gboolean
bj_verbs_note (BjAgent *self, const char *text, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_note_sync (verbs (self, 0), text, NULL, &why), &why, error);
}

gboolean
bj_verbs_set_check (BjAgent *self, const char *command, const char *setup, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_set_check_sync (verbs (self, 0), command, setup, NULL, &why), &why, error);
}

gboolean
bj_verbs_record (BjAgent *self, const char *type, JsonObject *data, GError **error)
{
  g_autoptr(JsonObject) owned = data;
  g_autofree char *json = bj_json_to_string (owned);
  GError *why = NULL;

  if (strlen (json) > MAX_RECORD)
    {
      g_clear_pointer (&json, g_free);
      json = g_strdup ("{\"truncated\":true}");
    }
  return done (bj_dbus_agent_call_record_sync (verbs (self, 0), type, json, NULL, &why), &why, error);
}

gboolean
bj_verbs_ask (BjAgent *self, const char *question, const char *memory, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_ask_sync (verbs (self, 0), question, g_variant_new_bytestring (memory), NULL, &why), &why,
               error);
}

gboolean
bj_verbs_finish (BjAgent *self, const char *summary, GError **error)
{
  GError *why = NULL;

  return done (bj_dbus_agent_call_finish_sync (verbs (self, 0), summary, NULL, &why), &why, error);
}

void
bj_verbs_fail (BjAgent *self, const GError *why)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *message = g_utf8_make_valid (why->message, -1);
  BjError code = why->domain == BJ_ERROR ? (BjError) why->code : BJ_ERROR_FAILED;

  if (!bj_dbus_agent_call_fail_sync (verbs (self, 0), bj_error_get_name (code), message, NULL, &error))
    g_warning ("The daemon did not take the end of the session: %s", error->message);
}
