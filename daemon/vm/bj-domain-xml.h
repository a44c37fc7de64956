/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

G_BEGIN_DECLS

/* The program that machines run in. */
#define BJ_DOMAIN_EMULATOR "/usr/bin/qemu-system-x86_64"

#define BJ_DOMAIN_PREFIX "bj-"
/* QEMU's ids of the network card and what is behind it. */
#define BJ_DOMAIN_NIC "nic0"
#define BJ_DOMAIN_NETDEV "net0"
/* What the guest mounts the share by. */
#define BJ_DOMAIN_SHARE_TAG "project"
/* The port that the network card is plugged into: libvirt uses the lower ones first. */
#define BJ_DOMAIN_NIC_BUS "pci.8"
/* libvirt's name for the share's device, to unplug it by. */
#define BJ_DOMAIN_SHARE_ALIAS "ua-share"

/* The files of one machine. */
typedef struct
{
  const char *disk;         /* the first disk: an overlay, or the base itself */
  const char *const *chain; /* (nullable): what it stands on, nearest first */
  const char *kernel;       /* (nullable): instead of the spec's */
  const char *ram;          /* (nullable): the file that is its memory; else QEMU's own */
  gboolean ram_private;     /* what the guest writes stays in QEMU (copy-on-write) */
  gboolean incoming;        /* waits for a state: of a template's devices, or of a whole machine */
  const char *machine;      /* (nullable): QEMU's machine type; default its newest q35 */
} BjDomainFiles;

/**
 * bj_domain_xml_build:
 * @spec: a machine
 *
 * Pure. The domain has only what is listed here, runs as the slot's uid, and every end of it (power off, reboot, crash)
 * destroys it. What differs from machine to machine (network card, tree, share) is plugged before it runs, so that all
 * machines of one image, memory and number of processors are equal and can be cloned from one template.
 *
 * Returns: (transfer full): libvirt domain XML
 */
char *bj_domain_xml_build (const BjMachineSpec *spec, const BjDomainFiles *files, BjAccelerator accelerator);

/* The ways into a guest: its agent, and two lanes (bj-lane.h), so that much data does not hold up small calls. */
typedef enum
{
  BJ_DOMAIN_CHANNEL_AGENT,
  BJ_DOMAIN_CHANNEL_CONTROL,
  BJ_DOMAIN_CHANNEL_BULK,
} BjDomainChannel;
#define BJ_DOMAIN_CHANNELS 3

/** bj_domain_xml_build_channel: Returns: (transfer full): a channel alone, for unplugging and plugging */
char *bj_domain_xml_build_channel (const char *run_dir, BjDomainChannel channel);
/** bj_domain_xml_dup_socket: Returns: (transfer full): the path of a channel's socket */
char *bj_domain_xml_dup_socket (const char *run_dir, BjDomainChannel channel);
/** bj_domain_xml_build_share: Returns: (transfer full): a virtiofs device that connects to @socket */
char *bj_domain_xml_build_share (const char *socket);

/** bj_domain_xml_build_data_disk: Returns: (transfer full): a raw file as a disk that cannot be written, /dev/vdb */
char *bj_domain_xml_build_data_disk (const char *path);

G_END_DECLS
