/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-agent-config.h"

#include "bj-error.h"

#include <stddef.h>
#include <string.h>

static const struct
{
  const char *group;
  const char *key;
  gsize offset;
  guint min;
  guint max;
} keys[] = {
  { "loop", "nudges", offsetof (BjAgentConfig, nudges), 0, 100 },
  { "loop", "calls-per-turn", offsetof (BjAgentConfig, calls_per_turn), 1, 1000 },
  { "loop", "guest-errors", offsetof (BjAgentConfig, guest_errors), 0, 100 },
  { "model", "retries", offsetof (BjAgentConfig, retries), 0, 20 },
  { "model", "backoff-ms", offsetof (BjAgentConfig, backoff_ms), 0, 60000 },
  { "model", "stall", offsetof (BjAgentConfig, stall_s), 1, 3600 },
  { "model", "answer-seconds", offsetof (BjAgentConfig, answer_s), 1, 86400 },
  { "model", "answer-bytes", offsetof (BjAgentConfig, answer_bytes), 1024, 4194304 },
  { "context", "default-tokens", offsetof (BjAgentConfig, default_tokens), 1024, 1048576 },
  { "context", "reply-tokens", offsetof (BjAgentConfig, reply_tokens), 128, 65536 },
  { "context", "result-bytes", offsetof (BjAgentConfig, result_bytes), 512, 1048576 },
  { "context", "message-bytes", offsetof (BjAgentConfig, message_bytes), 512, 1048576 },
  { "tools", "run-timeout", offsetof (BjAgentConfig, run_timeout_s), 1, 3600 },
  { "tools", "helper-timeout", offsetof (BjAgentConfig, helper_timeout_s), 1, 3600 },
  { "tools", "fetch-timeout", offsetof (BjAgentConfig, fetch_timeout_s), 1, 3600 },
};

static gboolean
is_known (const char *group, const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_str_equal (keys[i].group, group) && g_str_equal (keys[i].key, key))
      return TRUE;
  return FALSE;
}

static gboolean
refuse_unknown (GKeyFile *file, const char *path, GError **error)
{
  g_auto(GStrv) groups = g_key_file_get_groups (file, NULL);

  for (guint i = 0; groups[i] != NULL; i++)
    {
      g_auto(GStrv) names = g_key_file_get_keys (file, groups[i], NULL, NULL);

      for (guint k = 0; names != NULL && names[k] != NULL; k++)
        if (!is_known (groups[i], names[k]))
          return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s is no parameter of the agent", path, groups[i],
                               names[k]);
    }
  return TRUE;
}

gboolean
bj_agent_config_load (BjAgentConfig *config, const char *path, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();

  if (!g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, error))
    {
      g_prefix_error (error, "%s: ", path);
      return FALSE;
    }
  if (!refuse_unknown (file, path, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      g_autofree char *text = g_key_file_get_string (file, keys[i].group, keys[i].key, NULL);
      guint64 value = 0;
      guint number;

      if (text == NULL || !g_ascii_string_to_unsigned (text, 10, keys[i].min, keys[i].max, &value, NULL))
        return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s must be a number from %u to %u", path, keys[i].group,
                             keys[i].key, keys[i].min, keys[i].max);
      number = (guint) value;
      memcpy ((char *) config + keys[i].offset, &number, sizeof number);
    }
  return TRUE;
}
