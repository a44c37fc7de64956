/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-context.h"
#include "bj-session-manager.h"

G_BEGIN_DECLS

/* Every base image as an object on the bus, org.belljar1.Image. Follows the image store and the sessions. Main loop only. */
typedef struct _BjImageObjects BjImageObjects;

BjImageObjects *bj_image_objects_new (BjContext *context, BjSessionManager *sessions);
void bj_image_objects_free (BjImageObjects *self);

G_END_DECLS
