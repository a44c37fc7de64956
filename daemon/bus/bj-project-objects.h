/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"
#include "bj-session-manager.h"

G_BEGIN_DECLS

/* Every project as an object on the bus, org.belljar1.Project. Follows the project store and the sessions. Main loop only. */
typedef struct _BjProjectObjects BjProjectObjects;

BjProjectObjects *bj_project_objects_new (BjContext *context, BjSessionManager *sessions);
void bj_project_objects_free (BjProjectObjects *self);

G_END_DECLS
