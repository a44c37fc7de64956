/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-domain-xml.h"
#include "bj-error.h"

#include <string.h>

#define OVERHEAD_S 45 /* on top of a command's timeout: kill, deliver, a slow agent */
#define HELLO_S 30

static gboolean
is_paused (gpointer data)
{
  return bj_guest_is_paused (data);
}

BjGuest *
bj_guest_new (const char *run_dir)
{
  static const BjDomainChannel channels[BJ_GUEST_LANES] = { BJ_DOMAIN_CHANNEL_CONTROL, BJ_DOMAIN_CHANNEL_BULK };
  BjGuest *self = g_new0 (BjGuest, 1);

  g_atomic_ref_count_init (&self->ref_count);
  self->run_dir = g_strdup (run_dir);
  for (int i = 0; i < BJ_GUEST_LANES; i++)
    {
      g_autofree char *socket = bj_domain_xml_dup_socket (run_dir, channels[i]);

      self->lanes[i] = bj_lane_new (socket, is_paused, self);
    }
  g_mutex_init (&self->lock);
  g_mutex_init (&self->calls);
  return self;
}

BjGuest *
bj_guest_ref (BjGuest *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
bj_guest_unref (BjGuest *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  bj_guest_set_domain (self, NULL);
  for (int i = 0; i < BJ_GUEST_LANES; i++)
    bj_lane_free (self->lanes[i]);
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->calls);
  g_free (self->run_dir);
  g_free (self);
}

static void
take_domain (BjGuest *self, virDomainPtr domain)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->domain != NULL)
    virDomainFree (self->domain);
  if (domain != NULL)
    virDomainRef (domain);
  self->domain = domain;
  self->revived = self->lanes_revived = 0;
  self->agent_only = FALSE;
}

void
bj_guest_set_domain (BjGuest *self, virDomainPtr domain)
{
  take_domain (self, domain);
  for (int i = 0; i < BJ_GUEST_LANES; i++)
    if (domain != NULL)
      bj_lane_start (self->lanes[i]);
    else
      bj_lane_stop (self->lanes[i]);
}

void
bj_exec_result_clear (BjExecResult *result)
{
  g_clear_pointer (&result->out, g_bytes_unref);
  g_clear_pointer (&result->err, g_bytes_unref);
  g_clear_pointer (&result->out_sha256, g_free);
}

void
bj_poll_result_clear (BjPollResult *result)
{
  g_clear_pointer (&result->output, g_bytes_unref);
}

/* A guest that can be reached, but never over a lane, is one of an image that has no server for it. */
static void
note_ways (BjGuest *self)
{
  gboolean open = bj_lane_is_open (self->lanes[BJ_GUEST_CONTROL]);
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->agent_only = !open && !self->lanes_known;
}

gboolean
bj_guest_hello (BjGuest *self, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autofree char *nonce = g_uuid_string_random ();
  g_autoptr(GBytes) output = NULL;
  BjGuestAnswer answer;

  bj_guest_request_add (request, "nonce", nonce);
  bj_guest_request_add_number (request, "clock", (guint64) g_get_real_time ());
  if (!bj_guest_ask (self, "hello", request, NULL, HELLO_S, &answer, &output, cancellable, error))
    return FALSE;
  if (answer.lengths[0] != strlen (nonce) || memcmp (answer.pieces[0], nonce, strlen (nonce)) != 0)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest did not echo the nonce it was given");
  note_ways (self);
  return TRUE;
}

void
bj_guest_fill_result (BjExecResult *result, const BjGuestAnswer *answer)
{
  g_autoptr(GString) hex = g_string_new (NULL);

  for (int i = 0; i < 32; i++)
    g_string_append_printf (hex, "%02x", answer->out_sha256[i]);
  *result = (BjExecResult) {
    .exit = answer->exit,
    .signal = answer->signal,
    .timed_out = (answer->flags & BJ_RUN_TIMED_OUT) != 0,
    .duration_s = (double) answer->duration_us / G_USEC_PER_SEC,
    .out = bj_guest_answer_dup_stream (answer, 0, answer->out_total),
    .err = bj_guest_answer_dup_stream (answer, 2, answer->err_total),
    .out_total = answer->out_total,
    .err_total = answer->err_total,
    .out_sha256 = g_string_free (g_steal_pointer (&hex), FALSE),
    .sent = TRUE,
    .truncated = answer->out_total > answer->lengths[0] + answer->lengths[1]
                 || answer->err_total > answer->lengths[2] + answer->lengths[3],
  };
}

gboolean
bj_guest_exec (BjGuest *self, const BjExec *exec, BjExecResult *result, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) output = NULL;
  guint timeout = exec->timeout_s ? MIN (exec->timeout_s, BJ_RUN_DAY) : BJ_RUN_DAY;
  BjGuestAnswer answer;

  if (!bj_guest_request_add_exec (request, exec, error)
      || !bj_guest_ask (self, "exec", request, exec->input, timeout + OVERHEAD_S, &answer, &output, cancellable, error))
    {
      result->sent = bj_guest_request_was_sent (request);
      return FALSE;
    }
  bj_guest_fill_result (result, &answer);
  return TRUE;
}
