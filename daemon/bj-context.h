/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-config.h"
#include "bj-engine.h"
#include "bj-firewall.h"
#include "bj-gate.h"
#include "bj-image-store.h"
#include "bj-job.h"
#include "bj-project-store.h"
#include "bj-slots.h"
#include "bj-store.h"

G_BEGIN_DECLS

/* The parts of the daemon, made once by bj-daemon.c in this order and passed down; nobody owns it but bj-daemon.c. */
typedef struct
{
  char *state_dir;      /* absolute */
  char *program_dir;    /* where belljar-agent, belljar-gateway, belljar-tree lie: libexec or the build folder's parts */
  BjConfig *config;
  BjStore *store;
  BjEngine *engine;
  BjSlots *slots;
  BjFirewall *firewall; /* (nullable): without privileges */
  BjImageStore *images;
  BjProjectStore *projects;
  BjGate *gate;
  GDBusObjectManagerServer *objects;
  BjJobs *jobs;
} BjContext;

/** bj_context_dup_program: @name: for example "belljar-agent". Returns: (transfer full): its absolute path */
char *bj_context_dup_program (BjContext *context, const char *name);

G_END_DECLS
