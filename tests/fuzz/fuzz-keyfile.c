/* SPDX-License-Identifier: GPL-3.0-or-later */

/* Any bytes as belljar.conf: refused with a message that is text, or values within what they may be. */

#include "bj-config.h"
#include "bj-fd.h"
#include "fuzz.h"

static void
check (const BjConfig *config)
{
  g_assert_true (g_utf8_validate (config->model_url, -1, NULL));
  g_assert_true (g_utf8_validate (config->model_name, -1, NULL));
  g_assert_true (config->sessions >= 1 && config->sessions <= 256);
  g_assert_true (config->cpus >= 1 && config->cpus <= 256);
  g_assert_cmpuint (config->wall_clock_s, >=, 10);
  g_assert_cmpuint (config->memory_mib, >, 0);
  for (guint i = 0; config->resolvers[i] != NULL; i++)
    g_assert_true (g_hostname_is_ip_address (config->resolvers[i]));
  g_assert_true (config->publish_token_file == NULL || *config->publish_token_file == '/');
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) bytes = g_bytes_new_static (data, size);
  g_auto(BjFd) fd = bj_fd_seal_bytes ("fuzz", bytes, &error);
  g_autofree char *path = g_strdup_printf ("/proc/self/fd/%d", fd);
  g_autoptr(BjConfig) config = NULL;

  g_assert_no_error (error);
  config = bj_config_load (path, TRUE, &error);
  g_assert_true ((config == NULL) == (error != NULL));
  if (config != NULL)
    check (config);
  else
    g_assert_true (g_utf8_validate (error->message, -1, NULL));
  return 0;
}
