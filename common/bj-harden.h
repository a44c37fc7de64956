/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** bj_harden: First act of a process that holds secrets or is assumed hostile: no core dumps, no tracing, no new privileges. */
void bj_harden (void);

G_END_DECLS
