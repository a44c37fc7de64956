/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-engine.h"

#include <libvirt/libvirt.h>

G_BEGIN_DECLS

/** bj_engine_get_connection: Returns: (transfer none): libvirt's handle, or %NULL with an error if it is not open */
virConnectPtr bj_engine_get_connection (BjEngine *self, GError **error);

/** bj_engine_forget_log: Removes what libvirt logged about the machine @id, which has ended. */
void bj_engine_forget_log (BjEngine *self, const char *id);

G_END_DECLS
