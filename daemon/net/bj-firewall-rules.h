/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>
#include <ifaddrs.h>

G_BEGIN_DECLS

/**
 * bj_firewall_format_rules:
 * @interfaces: (nullable): the host's addresses, from getifaddrs()
 * @with_fib: whether the kernel can ask its routing table what kind of address one is
 *
 * The whole table as text for libnftables: one transaction that replaces an old one. Pure.
 *
 * Returns: (transfer full): the text
 */
char *bj_firewall_format_rules (const struct ifaddrs *interfaces, gboolean with_fib);

G_END_DECLS
