/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-answer.h"

#include "bj-error.h"

#include <string.h>

static gboolean
is_consistent (const BjGuestAnswer *answer)
{
  if (answer->exit < -1 || answer->exit > 255 || answer->signal < 0 || answer->signal > 64)
    return FALSE;
  if (answer->exit >= 0 && answer->signal != 0)
    return FALSE;
  for (int i = 0; i < 4; i++)
    if (answer->lengths[i] > BJ_RUN_KEEP_MAX)
      return FALSE;
  return answer->lengths[0] + answer->lengths[1] <= BJ_RUN_KEEP_MAX
         && answer->lengths[2] + answer->lengths[3] <= BJ_RUN_KEEP_MAX;
}

gboolean
bj_guest_answer_parse (const guint8 *data, gsize size, BjGuestAnswer *answer, GError **error)
{
  BjRunAnswer raw;
  gsize offset = sizeof raw;

  if (size < sizeof raw)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest's answer is cut short (%" G_GSIZE_FORMAT " bytes)",
                         size);
  memcpy (&raw, data, sizeof raw);
  if (memcmp (raw.magic, BJ_RUN_ANSWER_MAGIC, BJ_RUN_MAGIC_SIZE) != 0)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest's answer is not one: build the image again");

  *answer = (BjGuestAnswer) { .flags = raw.flags, .exit = raw.exit, .signal = raw.signal, .id = raw.id,
                              .duration_us = raw.duration_us, .out_total = raw.out_total, .err_total = raw.err_total,
                              .dropped = raw.dropped,
                              .out_sha256 = data + G_STRUCT_OFFSET (BjRunAnswer, out_sha256),
                              .lengths = { raw.out_head, raw.out_tail, raw.err_head, raw.err_tail } };
  if (!is_consistent (answer))
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest's answer contradicts itself");
  for (int i = 0; i < 4; i++)
    {
      if (answer->lengths[i] > size - offset)
        return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest's answer is shorter than it says");
      answer->pieces[i] = data + offset;
      offset += answer->lengths[i];
    }
  if (offset != size)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest's answer is longer than it says");
  return TRUE;
}

GBytes *
bj_guest_answer_dup_stream (const BjGuestAnswer *answer, guint first, guint64 total)
{
  g_autoptr(GByteArray) all = g_byte_array_new ();
  guint64 kept = answer->lengths[first] + answer->lengths[first + 1];

  g_byte_array_append (all, answer->pieces[first], (guint) answer->lengths[first]);
  if (total > kept)
    {
      g_autofree char *marker = g_strdup_printf ("\n[… %" G_GUINT64_FORMAT " bytes left out …]\n", total - kept);

      g_byte_array_append (all, (const guint8 *) marker, (guint) strlen (marker));
    }
  g_byte_array_append (all, answer->pieces[first + 1], (guint) answer->lengths[first + 1]);
  return g_byte_array_free_to_bytes (g_steal_pointer (&all));
}
