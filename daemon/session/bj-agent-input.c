/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-agent"

/* The agent's hands: keys and pointer go to the machine through QEMU. */

#include "bj-agent-verbs.h"

#include "bj-error.h"
#include "bj-keys.h"
#include "bj-machine-input.h"
#include "bj-record.h"

#include <string.h>

#define INPUT_BYTES_MAX (16 * 1024)
#define SCROLL_MAX 50
#define WAIT_MAX_S 600
#define DOUBLE_CLICK 2

/* Records what was done, also when only a part of it was. Returns: (transfer full) (nullable): the empty answer */
static GVariant *
finish (BjAgentPeer *peer, const char *tool, const char *what, GError *failure, GError **error)
{
  bj_session_record (bj_agent_peer_get_session (peer), TRUE, "input",
                     bj_record_input (tool, what, failure != NULL ? failure->message : NULL));
  if (failure == NULL)
    return g_variant_new ("()");
  g_propagate_error (error, failure);
  return NULL;
}

static GVariant *
press (BjAgentPeer *peer, const char *tool, const char *what, GArray *(*read) (const char *text, GError **error),
       GError **error)
{
  g_autoptr(GArray) chords = NULL;
  g_autoptr(BjMachine) machine = NULL;
  GError *failure = NULL;

  if (strlen (what) > INPUT_BYTES_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "That is too much to type: put longer text into a file");
      return NULL;
    }
  chords = read (what, error);
  machine = chords != NULL ? bj_agent_verb_get_machine (peer, error) : NULL;
  if (machine == NULL)
    return NULL;
  bj_machine_press (machine, chords, bj_agent_peer_get_cancellable (peer), &failure);
  return finish (peer, tool, what, failure, error);
}

GVariant *
bj_agent_verb_type_text (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *text;

  g_variant_get (arguments, "(&s)", &text);
  return press (peer, "type_text", text, bj_keys_from_text, error);
}

GVariant *
bj_agent_verb_press_keys (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *keys;

  g_variant_get (arguments, "(&s)", &keys);
  return press (peer, "press_keys", keys, bj_keys_parse, error);
}

static gboolean
read_button (const char *name, BjButton *button, GError **error)
{
  static const struct
  {
    const char *name;
    BjButton button;
  } buttons[] = { { "left", BJ_BUTTON_LEFT }, { "middle", BJ_BUTTON_MIDDLE }, { "right", BJ_BUTTON_RIGHT } };

  for (guint i = 0; i < G_N_ELEMENTS (buttons); i++)
    if (g_str_equal (buttons[i].name, name))
      {
        *button = buttons[i].button;
        return TRUE;
      }
  return bj_error_set (error, BJ_ERROR_INVALID, "A button is left, middle or right");
}

static GVariant *
point (BjAgentPeer *peer, const char *tool, const BjPointer *pointer, const char *what, GError **error)
{
  g_autoptr(BjMachine) machine = bj_agent_verb_get_machine (peer, error);
  GError *failure = NULL;

  if (machine == NULL)
    return NULL;
  bj_machine_point (machine, pointer, bj_agent_peer_get_cancellable (peer), &failure);
  return finish (peer, tool, what, failure, error);
}

GVariant *
bj_agent_verb_mouse_move (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjPointer pointer = { .button = BJ_BUTTON_NONE };
  g_autofree char *what = NULL;

  g_variant_get (arguments, "(uu)", &pointer.x, &pointer.y);
  what = g_strdup_printf ("to %u, %u", pointer.x, pointer.y);
  return point (peer, "mouse_move", &pointer, what, error);
}

GVariant *
bj_agent_verb_mouse_click (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjPointer pointer = { 0 };
  const char *button;
  gboolean twice;
  g_autofree char *what = NULL;

  g_variant_get (arguments, "(uu&sb)", &pointer.x, &pointer.y, &button, &twice);
  if (!read_button (button, &pointer.button, error))
    return NULL;
  pointer.times = twice ? DOUBLE_CLICK : 1;
  what = g_strdup_printf ("%s button%s at %u, %u", button, twice ? " twice" : "", pointer.x, pointer.y);
  return point (peer, "mouse_click", &pointer, what, error);
}

GVariant *
bj_agent_verb_mouse_drag (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjPointer pointer = { .drag = TRUE };
  const char *button;
  g_autofree char *what = NULL;

  g_variant_get (arguments, "(uuuu&s)", &pointer.x, &pointer.y, &pointer.to_x, &pointer.to_y, &button);
  if (!read_button (button, &pointer.button, error))
    return NULL;
  what = g_strdup_printf ("%s button from %u, %u to %u, %u", button, pointer.x, pointer.y, pointer.to_x, pointer.to_y);
  return point (peer, "mouse_drag", &pointer, what, error);
}

GVariant *
bj_agent_verb_scroll (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  BjPointer pointer = { 0 };
  gint32 amount;
  g_autofree char *what = NULL;

  g_variant_get (arguments, "(uui)", &pointer.x, &pointer.y, &amount);
  if (amount == 0 || amount < -SCROLL_MAX || amount > SCROLL_MAX)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "The wheel is turned by 1 to %d notches, down when the number is above 0", SCROLL_MAX);
      return NULL;
    }
  pointer.button = amount > 0 ? BJ_BUTTON_WHEEL_DOWN : BJ_BUTTON_WHEEL_UP;
  pointer.times = (guint) ABS (amount);
  what = g_strdup_printf ("%d at %u, %u", amount, pointer.x, pointer.y);
  return point (peer, "scroll", &pointer, what, error);
}

GVariant *
bj_agent_verb_wait (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  GCancellable *cancellable = bj_agent_peer_get_cancellable (peer);
  GPollFD poll = { 0 };
  gint64 until;
  guint seconds;
  g_autofree char *what = NULL;
  GError *failure = NULL;

  g_variant_get (arguments, "(u)", &seconds);
  if (seconds < 1 || seconds > WAIT_MAX_S)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "It can be waited for 1 to %d seconds", WAIT_MAX_S);
      return NULL;
    }
  what = g_strdup_printf ("%u s", seconds);
  until = g_get_monotonic_time () + (gint64) seconds * G_USEC_PER_SEC;
  if (g_cancellable_make_pollfd (cancellable, &poll))
    {
      for (gint64 left = seconds * 1000; left > 0; left = (until - g_get_monotonic_time ()) / 1000)
        if (g_poll (&poll, 1, (int) left) > 0)
          break;
      g_cancellable_release_fd (cancellable);
    }
  g_cancellable_set_error_if_cancelled (cancellable, &failure);
  return finish (peer, "wait", what, failure, error);
}
