/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-status.h"

#include "bj-cli-output.h"

#include <stdio.h>
#include <unistd.h>

struct _BjStatus
{
  gboolean terminal;
  gboolean drawn;
  char *step;
};

BjStatus *
bj_status_new (void)
{
  BjStatus *self = g_new0 (BjStatus, 1);

  self->terminal = bj_output_is_terminal (STDERR_FILENO);
  return self;
}

void
bj_status_free (BjStatus *self)
{
  bj_status_clear (self);
  g_free (self->step);
  g_free (self);
}

void
bj_status_clear (BjStatus *self)
{
  if (self->drawn)
    fputs ("\r\033[K", stderr);
  self->drawn = FALSE;
}

static void
draw (BjStatus *self, const char *step, const char *detail)
{
  g_autofree char *text = g_strdup_printf ("%s%s%s", step, detail != NULL ? "  " : "", detail != NULL ? detail : "");
  g_autofree char *cut = bj_output_cut (text, bj_output_get_width (STDERR_FILENO) - 1);

  fprintf (stderr, "\r\033[K%s", cut);
  fflush (stderr);
  self->drawn = TRUE;
}

void
bj_status_set (BjStatus *self, const char *step, const char *detail)
{
  gboolean is_new = g_strcmp0 (step, self->step) != 0;

  if (is_new)
    {
      g_free (self->step);
      self->step = g_strdup (step);
    }
  if (self->terminal)
    draw (self, step, detail);
  else if (is_new)
    bj_output_note ("%s", step);
}

void
bj_status_note (BjStatus *self, const char *text)
{
  bj_status_clear (self);
  bj_output_note ("%s", text);
}
