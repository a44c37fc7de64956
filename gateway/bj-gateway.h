/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What the daemon sees of the gateway: org.belljar1.Gateway (see the interface's XML for what each method means). */
#define BJ_TYPE_GATEWAY (bj_gateway_get_type ())
G_DECLARE_FINAL_TYPE (BjGateway, bj_gateway, BJ, GATEWAY, GObject)

#define BJ_GATEWAY_PATH "/org/belljar1/gateway"

/** bj_gateway_new: Exports the interface on @connection. */
BjGateway *bj_gateway_new (GDBusConnection *connection, GError **error);

G_END_DECLS
