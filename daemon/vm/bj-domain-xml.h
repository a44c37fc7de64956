/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/* The program that machines run in. */
#define BJ_DOMAIN_EMULATOR "/usr/bin/qemu-system-x86_64"

#define BJ_DOMAIN_PREFIX "bj-"
/* The network card's QEMU id, for set_link. */
#define BJ_DOMAIN_NIC "nic0"
/* What the guest mounts the share by. */
#define BJ_DOMAIN_SHARE_TAG "project"
/* libvirt's name for the share's device, to unplug it by. */
#define BJ_DOMAIN_SHARE_ALIAS "ua-share"

/**
 * bj_domain_xml_build:
 * @spec: a machine
 * @disk: its first disk: the overlay, or the base itself
 * @accelerator: KVM or TCG
 *
 * Pure. The domain has only what is listed here, runs as the slot's uid, and every end of it (power off, reboot, crash)
 * destroys it.
 *
 * Returns: (transfer full): libvirt domain XML
 */
char *bj_domain_xml_build (const BjMachineSpec *spec, const char *disk, BjAccelerator accelerator);
/** bj_domain_xml_build_agent_channel: Returns: (transfer full): the agent's channel alone, for unplugging and plugging */
char *bj_domain_xml_build_agent_channel (const char *run_dir);
/** bj_domain_xml_build_share: Returns: (transfer full): a virtiofs device that connects to @socket */
char *bj_domain_xml_build_share (const char *socket);

G_END_DECLS
