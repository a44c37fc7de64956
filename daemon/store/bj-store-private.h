/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-database.h"
#include "bj-store.h"

G_BEGIN_DECLS

BjDatabase *bj_store_get_database (BjStore *self);

G_END_DECLS
