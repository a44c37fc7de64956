/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine-input.h"

#include "bj-error.h"
#include "bj-keys.h"
#include "bj-machine-private.h"
#include "bj-monitor.h"

#include <string.h>

/* The emulated keyboard holds 16 bytes, a key is two to four of them, and what does not fit is lost. */
#define KEY_US 12000
#define BUTTON_US 40000
#define DRAG_STEPS 8
#define AXIS_MAX 0x7fff /* QEMU's, for the whole screen */
#define PNG_SIZE_AT 16  /* two numbers of four bytes, the highest first */

static JsonObject *
new_event (JsonArray *events, const char *type)
{
  JsonObject *event = json_object_new ();
  JsonObject *data = json_object_new ();

  json_object_set_string_member (event, "type", type);
  json_object_set_object_member (event, "data", data);
  json_array_add_object_element (events, event);
  return data;
}

static void
add_key (JsonArray *events, const char *name, gboolean down)
{
  JsonObject *data = new_event (events, "key");
  JsonObject *key = json_object_new ();

  json_object_set_string_member (key, "type", "qcode");
  json_object_set_string_member (key, "data", name);
  json_object_set_boolean_member (data, "down", down);
  json_object_set_object_member (data, "key", key);
}

/* @events: (transfer full) */
static gboolean
send_events (virDomainPtr domain, JsonArray *events, GError **error)
{
  JsonObject *arguments = json_object_new ();

  json_object_set_array_member (arguments, "events", events);
  return bj_monitor_do (domain, "input-send-event", arguments, error);
}

/* Returns: whether the machine takes events now */
static gboolean
check_awake (BjMachine *self, GCancellable *cancellable, GError **error)
{
  BjMachineState state;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  state = bj_machine_get_state (self);
  if (state == BJ_MACHINE_STATE_RUNNING)
    return TRUE;
  if (state == BJ_MACHINE_STATE_ABSENT)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine %s is gone", self->spec->id);
  return bj_error_set (error, BJ_ERROR_BUSY, "The machine is paused: what was to be pressed may not all have arrived");
}

static gboolean
press_chord (virDomainPtr domain, const BjChord *chord, GError **error)
{
  JsonArray *down = json_array_new ();
  JsonArray *up = json_array_new ();
  guint n = g_strv_length ((GStrv) chord->keys);
  gboolean ok;

  for (guint i = 0; i < n; i++)
    {
      add_key (down, chord->keys[i], TRUE);
      add_key (up, chord->keys[n - 1 - i], FALSE);
    }
  ok = send_events (domain, down, error);
  g_usleep (KEY_US);
  return send_events (domain, up, ok ? error : NULL) && ok;
}

gboolean
bj_machine_press (BjMachine *self, GArray *chords, GCancellable *cancellable, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);

  if (domain == NULL)
    return FALSE;
  for (guint i = 0; i < chords->len; i++)
    {
      if (!check_awake (self, cancellable, error)
          || !press_chord (domain, &g_array_index (chords, BjChord, i), error))
        return FALSE;
      g_usleep (KEY_US);
    }
  return TRUE;
}

/* Of the picture that QEMU would give now: what the guest's screen looks like is nobody's word but QEMU's. */
static gboolean
get_screen (BjMachine *self, guint *width, guint *height, GError **error)
{
  g_autoptr(GBytes) png = bj_machine_screenshot (self, error);
  const guint8 *data;
  guint32 size[2];

  if (png == NULL)
    return FALSE;
  if (g_bytes_get_size (png) < PNG_SIZE_AT + sizeof size)
    return bj_error_set (error, BJ_ERROR_FAILED, "QEMU's screenshot is cut off");
  data = g_bytes_get_data (png, NULL);
  memcpy (size, data + PNG_SIZE_AT, sizeof size);
  *width = GUINT32_FROM_BE (size[0]);
  *height = GUINT32_FROM_BE (size[1]);
  return (*width > 1 && *height > 1) || bj_error_set (error, BJ_ERROR_FAILED, "The machine has no screen now");
}

static gboolean
check_place (guint x, guint y, guint width, guint height, GError **error)
{
  return (x < width && y < height)
         || bj_error_set (error, BJ_ERROR_INVALID, "The place %u, %u is not on the screen: it is %u pixels wide and %u high", x, y,
                          width, height);
}

static void
add_axis (JsonArray *events, const char *axis, guint at, guint size)
{
  JsonObject *data = new_event (events, "abs");

  json_object_set_string_member (data, "axis", axis);
  json_object_set_int_member (data, "value", (gint64) at * AXIS_MAX / (size - 1));
}

/* One screen, one pointer. */
typedef struct
{
  BjMachine *machine;
  virDomainPtr domain;
  guint width, height;
  GCancellable *cancellable;
} BjPointing;

static gboolean
move_to (const BjPointing *self, guint x, guint y, GError **error)
{
  JsonArray *events = json_array_new ();

  add_axis (events, "x", x, self->width);
  add_axis (events, "y", y, self->height);
  if (!send_events (self->domain, events, error))
    return FALSE;
  g_usleep (BUTTON_US);
  return TRUE;
}

static gboolean
set_button (const BjPointing *self, BjButton button, gboolean down, GError **error)
{
  static const char *const names[] = { NULL, "left", "middle", "right", "wheel-up", "wheel-down" };
  JsonArray *events = json_array_new ();
  JsonObject *data = new_event (events, "btn");

  json_object_set_string_member (data, "button", names[button]);
  json_object_set_boolean_member (data, "down", down);
  if (!send_events (self->domain, events, error))
    return FALSE;
  g_usleep (BUTTON_US);
  return TRUE;
}

static gboolean
drag (const BjPointing *self, const BjPointer *pointer, GError **error)
{
  gboolean ok = set_button (self, pointer->button, TRUE, error);

  for (int i = 1; ok && i <= DRAG_STEPS; i++)
    ok = check_awake (self->machine, self->cancellable, error)
         && move_to (self, (guint) ((int) pointer->x + ((int) pointer->to_x - (int) pointer->x) * i / DRAG_STEPS),
                     (guint) ((int) pointer->y + ((int) pointer->to_y - (int) pointer->y) * i / DRAG_STEPS), error);
  return set_button (self, pointer->button, FALSE, ok ? error : NULL) && ok;
}

static gboolean
click (const BjPointing *self, const BjPointer *pointer, GError **error)
{
  for (guint i = 0; pointer->button != BJ_BUTTON_NONE && i < pointer->times; i++)
    {
      gboolean ok = check_awake (self->machine, self->cancellable, error) && set_button (self, pointer->button, TRUE, error);

      if (!set_button (self, pointer->button, FALSE, ok ? error : NULL) || !ok)
        return FALSE;
    }
  return TRUE;
}

gboolean
bj_machine_point (BjMachine *self, const BjPointer *pointer, GCancellable *cancellable, GError **error)
{
  g_autoptr(virDomain) domain = bj_machine_ref_domain (self, error);
  BjPointing pointing = { .machine = self, .domain = domain, .cancellable = cancellable };

  if (domain == NULL)
    return FALSE;
  if (!self->spec->tablet)
    return bj_error_set (error, BJ_ERROR_INVALID, "This image has no desktop, so there is no pointer: use the keyboard or commands");
  if (!check_awake (self, cancellable, error) || !get_screen (self, &pointing.width, &pointing.height, error)
      || !check_place (pointer->x, pointer->y, pointing.width, pointing.height, error)
      || (pointer->drag && !check_place (pointer->to_x, pointer->to_y, pointing.width, pointing.height, error)))
    return FALSE;
  if (!move_to (&pointing, pointer->x, pointer->y, error))
    return FALSE;
  return pointer->drag ? drag (&pointing, pointer, error) : click (&pointing, pointer, error);
}
