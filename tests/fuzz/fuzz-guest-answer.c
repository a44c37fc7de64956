/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-answer.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  BjGuestAnswer answer;
  g_autoptr(GError) error = NULL;

  if (!bj_guest_answer_parse (data, size, &answer, &error))
    {
      g_assert_nonnull (error);
      return 0;
    }
  for (guint i = 0; i < 4; i += 2)
    {
      g_autoptr(GBytes) stream = bj_guest_answer_dup_stream (&answer, i, answer.out_total);

      g_assert_cmpuint (g_bytes_get_size (stream), >=, answer.lengths[i] + answer.lengths[i + 1]);
    }
  return 0;
}
