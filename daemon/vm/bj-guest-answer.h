/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-run-protocol.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* What /usr/lib/belljar/run answered, checked. Byte fields point into the data that was parsed. */
typedef struct
{
  guint32 flags;
  int exit;
  int signal;
  guint32 id;
  guint64 duration_us;
  guint64 out_total;
  guint64 err_total;
  guint64 dropped;
  const guint8 *out_sha256; /* 32 bytes */
  const guint8 *pieces[4];  /* head and tail of stdout, head and tail of stderr */
  gsize lengths[4];
} BjGuestAnswer;

/**
 * bj_guest_answer_parse:
 * @data: (array length=size): bytes from a hostile guest
 *
 * Pure. Accepts nothing but a whole answer whose numbers agree with each other.
 */
gboolean bj_guest_answer_parse (const guint8 *data, gsize size, BjGuestAnswer *answer, GError **error);

/**
 * bj_guest_answer_dup_stream:
 * @first: 0 for standard output, 2 for standard error
 * @total: how much was printed
 *
 * Returns: (transfer full): head and tail, with a line between them that says how much was left out
 */
GBytes *bj_guest_answer_dup_stream (const BjGuestAnswer *answer, guint first, guint64 total);

G_END_DECLS
