/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/*
 * Keyboard and pointer of a machine, moved from outside: the guest needs no program for it. All block, and stop between two events
 * when @cancellable is cancelled; nothing stays pressed.
 */

/**
 * bj_machine_press:
 * @chords: (element-type BjChord): one after the other, slowly enough for an emulated guest
 *
 * QEMU drops what is pressed while the machine is paused, so that is BJ_ERROR_BUSY.
 */
gboolean bj_machine_press (BjMachine *self, GArray *chords, GCancellable *cancellable, GError **error);

typedef enum
{
  BJ_BUTTON_NONE,
  BJ_BUTTON_LEFT,
  BJ_BUTTON_MIDDLE,
  BJ_BUTTON_RIGHT,
  BJ_BUTTON_WHEEL_UP,
  BJ_BUTTON_WHEEL_DOWN,
} BjButton;

/* Where the pointer goes and what is pressed there, in pixels of the screen. */
typedef struct
{
  guint x, y;
  BjButton button;
  guint times;       /* how often it is pressed and let go */
  gboolean drag;     /* it is pressed once, and let go at the second place */
  guint to_x, to_y;
} BjPointer;

/** bj_machine_point: BJ_ERROR_INVALID when the image has no desktop, or a place is not on the screen (the message says how large it is) */
gboolean bj_machine_point (BjMachine *self, const BjPointer *pointer, GCancellable *cancellable, GError **error);

G_END_DECLS
