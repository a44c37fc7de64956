/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Parameters of the loop: data/agent/agent.ini, where each is explained. */
typedef struct
{
  guint nudges;
  guint calls_per_turn;
  guint guest_errors;
  guint retries;
  guint backoff_ms;
  guint stall_s;
  guint answer_s;
  guint answer_bytes;
  guint default_tokens;
  guint reply_tokens;
  guint result_bytes;
  guint message_bytes;
  guint run_timeout_s;
  guint helper_timeout_s;
  guint fetch_timeout_s;
} BjAgentConfig;

/** bj_agent_config_load: An unknown, missing or bad key is an error that names file, group and key. */
gboolean bj_agent_config_load (BjAgentConfig *config, const char *path, GError **error);

G_END_DECLS
