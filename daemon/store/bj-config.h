/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-engine.h"

G_BEGIN_DECLS

/*
 * belljar.conf, a keyfile. An unknown group or key or a bad value is an error that names file, line and key.
 * A missing file means all defaults.
 */
typedef struct
{
  char *model_url;   /* [model] url, default http://127.0.0.1:11434 */
  char *model_name;  /* [model] name, "" when none is set */
  GStrv model_allow; /* [model] allow, default: only model_name */
  int model_vision;  /* [model] vision: 1, 0, or -1 to ask the server */
  char *engine_uri;  /* [engine] uri, NULL: embedded */
  BjAccelerator accelerator;
  guint sessions;       /* [limits] sessions, default 4 */
  guint sessions_per_user; /* [limits] sessions-per-user: of one caller, default: as many as all may have */
  guint memory_mib;     /* [limits] memory-mib: one machine's default, 1024 */
  guint memory_total_mib; /* [limits] memory-total-mib: all machines', 0: three quarters of the host's */
  guint cpus;           /* [limits] cpus, default 2 */
  guint steps;          /* [limits] steps, default 200 */
  guint wall_clock_s;   /* [limits] wall-clock, "20m", "1h", "90" (seconds); default 1200 */
  guint64 output_bytes; /* [limits] output-bytes, default 64 KiB, of each stream of one command */
  guint screenshots;    /* [limits] screenshots: of one session, default 500 */
  guint64 screenshot_bytes; /* [limits] screenshot-bytes: what they take on the disk, default 256 MiB */
  guint idle_s;         /* [limits] idle: after it a session without a sub-agent ends, default 600 */
  guint park_after_s;   /* [limits] park-after, default 900 */
  guint pool_size;      /* [pool] size: paused clones in stock, default 0 */
  gboolean templates;   /* [pool] templates: clone machines instead of booting them, default true */
  GStrv resolvers;      /* [network] resolvers, default 9.9.9.9 and 149.112.112.112 */
  char *image_default;  /* [images] default, NULL: the first one built */
  char *mirror;         /* [images] mirror, NULL: the host's */
  char *project_backend; /* [projects] backend: only "none" in this version */
  guint64 project_quota; /* [projects] quota, bytes, "64M"; 0 none */
  guint64 evidence_bytes; /* [projects] evidence: of all sessions of one project, "1G"; 0 no cap */
  guint evidence_keep_s;  /* [projects] evidence-keep: what ended less than this ago stays, default 7 days */
  char *publish_remote;     /* [publish] remote */
  char *publish_token_file; /* [publish] token-file */
  gboolean keep_sessions;   /* [sessions] on-stop = end|keep: what SIGTERM does to them, default end */
} BjConfig;

/** bj_config_load: @path: (nullable): %NULL or a missing default file means defaults; a named file must exist */
BjConfig *bj_config_load (const char *path, gboolean must_exist, GError **error);
void bj_config_free (BjConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjConfig, bj_config_free)

G_END_DECLS
