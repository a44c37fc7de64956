/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-budget.h"
#include "bj-config.h"
#include "bj-engine.h"
#include "bj-firewall.h"
#include "bj-gate.h"
#include "bj-image-store.h"
#include "bj-job.h"
#include "bj-project-store.h"
#include "bj-slots.h"
#include "bj-store.h"
#include "bj-teardown.h"
#include "bj-templates.h"

G_BEGIN_DECLS

/* The parts of the daemon, made once by bj-daemon.c in this order and passed down; nobody owns it but bj-daemon.c. */
typedef struct
{
  char *state_dir; /* absolute */
  char *build_dir; /* (nullable): set when belljard runs from a build folder: programs and data are taken from there */
  BjAuth auth;
  BjConfig *config;
  BjStore *store;
  BjEngine *engine;
  BjSlots *slots;
  BjFirewall *firewall; /* (nullable): without privileges */
  BjImageStore *images;
  BjTemplates *templates;
  BjBudget *budget;
  BjTeardown *teardown;
  struct _BjPool *pool; /* (nullable): while the world is being opened or closed */
  BjProjectStore *projects;
  BjGate *gate;
  GDBusObjectManagerServer *objects;
  BjJobs *jobs;
} BjContext;

/** bj_context_find_build_dir: Returns: (transfer full) (nullable): the build folder that the running program lies in */
char *bj_context_find_build_dir (void);
/** bj_context_dup_program: @name: for example "belljar-agent". Returns: (transfer full): its absolute path */
char *bj_context_dup_program (BjContext *context, const char *name);
/** bj_context_dup_data: @name: agent, images or guest. Returns: (transfer full): absolute path of that data folder */
char *bj_context_dup_data (BjContext *context, const char *name);

G_END_DECLS
