/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-private.h"

#include "bj-error.h"
#include "bj-json.h"

/* Keyboard and pointer: the daemon moves them from outside the machine and checks everything. */

static guint
get_number (JsonObject *arguments, const char *name)
{
  gint64 value = 0;

  bj_json_get_int (arguments, name, &value);
  return (guint) CLAMP (value, 0, G_MAXUINT32);
}

static const char *
get_button (JsonObject *arguments)
{
  const char *button = bj_json_get_string (arguments, "button");

  return button != NULL ? button : "left";
}

JsonObject *
bj_tool_mouse_move (BjAgent *self, JsonObject *arguments, GError **error)
{
  return bj_verbs_mouse_move (self, get_number (arguments, "x"), get_number (arguments, "y"), error) ? bj_result_ok () : NULL;
}

JsonObject *
bj_tool_mouse_click (BjAgent *self, JsonObject *arguments, GError **error)
{
  return bj_verbs_mouse_click (self, get_number (arguments, "x"), get_number (arguments, "y"), get_button (arguments),
                               bj_json_get_bool (arguments, "double", FALSE), error)
             ? bj_result_ok ()
             : NULL;
}

JsonObject *
bj_tool_mouse_drag (BjAgent *self, JsonObject *arguments, GError **error)
{
  const guint places[] = { get_number (arguments, "x1"), get_number (arguments, "y1"), get_number (arguments, "x2"),
                           get_number (arguments, "y2") };

  return bj_verbs_mouse_drag (self, places, get_button (arguments), error) ? bj_result_ok () : NULL;
}

JsonObject *
bj_tool_scroll (BjAgent *self, JsonObject *arguments, GError **error)
{
  gint64 amount = 0;

  bj_json_get_int (arguments, "amount", &amount);
  return bj_verbs_scroll (self, get_number (arguments, "x"), get_number (arguments, "y"), (int) CLAMP (amount, -1000, 1000), error)
             ? bj_result_ok ()
             : NULL;
}

JsonObject *
bj_tool_type_text (BjAgent *self, JsonObject *arguments, GError **error)
{
  return bj_verbs_type_text (self, bj_json_get_string (arguments, "text"), error) ? bj_result_ok () : NULL;
}

JsonObject *
bj_tool_press_keys (BjAgent *self, JsonObject *arguments, GError **error)
{
  return bj_verbs_press_keys (self, bj_json_get_string (arguments, "keys"), error) ? bj_result_ok () : NULL;
}

JsonObject *
bj_tool_wait (BjAgent *self, JsonObject *arguments, GError **error)
{
  return bj_verbs_wait (self, get_number (arguments, "seconds"), error) ? bj_result_ok () : NULL;
}
