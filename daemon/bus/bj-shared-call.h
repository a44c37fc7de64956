/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-call.h"

G_BEGIN_DECLS

/*
 * One method whose answer is the same for everybody: whoever asks while a run goes on waits for the next one, which serves
 * all of them. However many calls come, there is never more than one run.
 */
typedef struct _BjSharedCall BjSharedCall;

/** BjSharedMake: Returns: (transfer full): the data of one run, on the main loop */
typedef gpointer (*BjSharedMake) (gpointer user_data);

/**
 * bj_shared_call_new:
 * @func: in a worker, once for all that wait
 * @free_data: for what @make returned
 */
BjSharedCall *bj_shared_call_new (BjCallFunc func, BjSharedMake make, gpointer user_data, GDestroyNotify free_data);

/** bj_shared_call_free: what waits is answered with an error; a run under way is answered when it is through */
void bj_shared_call_free (BjSharedCall *self);

/** bj_shared_call_add: (transfer full) @invocation: answered after a whole run, or refused if its caller has too many */
void bj_shared_call_add (BjSharedCall *self, GDBusMethodInvocation *invocation);

G_END_DECLS
