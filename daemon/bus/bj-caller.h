/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Who calls: asked of the bus once, then passed down. Nothing deeper reads a sender string or trusts a uid argument. */
typedef struct
{
  char *sender; /* unique bus name */
  uid_t uid;
  gid_t gid; /* the uid's primary group; the uid itself as a number when it has no account */
} BjCaller;

BjCaller *bj_caller_copy (const BjCaller *caller);
void bj_caller_free (BjCaller *caller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjCaller, bj_caller_free)

G_END_DECLS
