/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-upstream.h"

G_BEGIN_DECLS

/* One exchange that is passed on as it comes: a piece is asked for when the agent has taken the piece before. */
typedef struct _BjRelay BjRelay;

typedef struct
{
  const char *path;
  guint status; /* what the agent got */
  guint64 request_bytes;
  const char *request_sha256;
  guint64 response_bytes;
  const char *response_sha256;
  double duration_s;
  double first_byte_s; /* 0: none came */
  const char *error;   /* "" if it went well */
} BjRelayFacts;

/** BjRelayDone: called once, before the relay frees itself */
typedef void (*BjRelayDone) (BjRelay *relay, const BjRelayFacts *facts, gpointer user_data);

/**
 * bj_relay_start:
 * @message: the agent's request; paused until something can be answered
 * @path: where it goes
 * @body: (nullable): what is sent
 *
 * Returns: (transfer none): for bj_relay_cancel(), until @done was called
 */
BjRelay *bj_relay_start (BjUpstream *upstream, SoupServerMessage *message, const char *method, const char *path,
                         GBytes *body, BjRelayDone done, gpointer user_data);

/** bj_relay_cancel: @done is called now or from the main loop */
void bj_relay_cancel (BjRelay *self);

/** bj_relay_answer_error: Answers @message with {"error", "code"}; unpauses nothing. */
void bj_relay_answer_error (SoupServerMessage *message, guint status, const char *text, const char *code);

G_END_DECLS
