/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-caller.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * Who may call what. The action stands beside the method in the XML (org.belljar1.Polkit); none means refused, "open" means
 * anybody. The check is asynchronous and comes before dispatch: a refused call never reaches its handler.
 */
#define BJ_TYPE_GATE (bj_gate_get_type ())
G_DECLARE_FINAL_TYPE (BjGate, bj_gate, BJ, GATE, GObject)

typedef enum
{
  BJ_AUTH_POLKIT,
  BJ_AUTH_OWNER, /* only the uid that runs the daemon (and root) */
} BjAuth;

BjGate *bj_gate_new (GDBusConnection *connection, BjAuth auth);

/**
 * bj_gate_guard:
 * @skeleton: an interface skeleton made by gdbus-codegen, before it is exported
 * @owner_uid: uid the object belongs to, or BJ_GATE_NOBODY. For another caller the actions org.belljar1.view,
 *   .session.control and .job.cancel become view-other, session.control-other and job.cancel-other
 * @label: names the object in a password prompt, for example "session abcdefgh"
 *
 * From then on each call on @skeleton is checked first.
 */
#define BJ_GATE_NOBODY ((uid_t) -1)
void bj_gate_guard (BjGate *self, GDBusInterfaceSkeleton *skeleton, uid_t owner_uid, const char *label);

/** bj_gate_get_caller: (transfer none): who made this call; only inside handlers of a guarded skeleton */
const BjCaller *bj_gate_get_caller (GDBusMethodInvocation *invocation);

/**
 * bj_gate_check_owner_async:
 * For methods that name another object by path (Manager.WaitReport): asks for @action on an object of @owner_uid.
 */
void bj_gate_check_owner_async (BjGate *self, GDBusMethodInvocation *invocation, const char *action, uid_t owner_uid,
                                const char *label, GAsyncReadyCallback callback, gpointer user_data);
gboolean bj_gate_check_owner_finish (BjGate *self, GAsyncResult *result, GError **error);

/** bj_gate_return_error: (transfer full) @invocation: the one door for errors: converts foreign ones, then answers */
void bj_gate_return_error (GDBusMethodInvocation *invocation, const GError *error);

G_END_DECLS
