/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * The nftables layer: table inet belljar, drops by the machines' uid range (BJ_MACHINE_UID_BASE …) for everything that is "your
 * network" (DESIGN section 10). Through libnftables. Functions block (worker threads only).
 */
#define BJ_TYPE_FIREWALL (bj_firewall_get_type ())
G_DECLARE_FINAL_TYPE (BjFirewall, bj_firewall, BJ, FIREWALL, GObject)

BjFirewall *bj_firewall_new (void);
/** bj_firewall_install: One transaction; replaces an old table of ours, with the networks that the host is on now. */
gboolean bj_firewall_install (BjFirewall *self, GError **error);
/**
 * bj_firewall_prove:
 * A UDP send as a machine's uid must give EPERM and raise the rule's counter, while another uid is not refused.
 * Run it before each session: the table is installed anew first, so that it is there even if someone removed it, and knows the
 * networks that the host is on now.
 */
gboolean bj_firewall_prove (BjFirewall *self, GError **error);
/**
 * bj_firewall_is_intact:
 * A cheap look (some milliseconds, at most once a second for all who ask), for while machines with network run.
 *
 * Returns: whether the table is, rule by rule, the one that was installed; if not, bj_firewall_prove() puts it back
 */
gboolean bj_firewall_is_intact (BjFirewall *self);
/** bj_firewall_get_losses: How often the table had to be put back because somebody else removed or changed it. Thread-safe. */
guint bj_firewall_get_losses (BjFirewall *self);
/** bj_firewall_remove: At the daemon's end; a table left by a crash is replaced at the next start. */
void bj_firewall_remove (BjFirewall *self);
/** bj_firewall_get_status: @reason: (out) (transfer full): one sentence. Thread-safe. */
void bj_firewall_get_status (BjFirewall *self, gboolean *active, gboolean *proven, char **reason);

G_END_DECLS
