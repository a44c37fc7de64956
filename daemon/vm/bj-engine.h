/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * The hypervisor: one libvirt connection (embedded QEMU driver by default). Every function that talks to libvirt blocks and
 * belongs into a worker thread (bj_worker_run()), never on the main loop. All functions are thread-safe.
 */
#define BJ_TYPE_ENGINE (bj_engine_get_type ())
G_DECLARE_FINAL_TYPE (BjEngine, bj_engine, BJ, ENGINE, GObject)

typedef enum
{
  BJ_ACCELERATOR_AUTO, /* only a wish: probe decides */
  BJ_ACCELERATOR_KVM,
  BJ_ACCELERATOR_TCG,
} BjAccelerator;

/* Machines' uids: BJ_MACHINE_UID_BASE + slot. nftables drops by this whole range. */
#define BJ_MACHINE_UID_BASE 1900000000u
#define BJ_MACHINE_SLOTS 1024u
/* Agents' uids: BJ_AGENT_UID_BASE + slot; the gateway's and the helpers' own uids. Outside the machines' range. */
#define BJ_AGENT_UID_BASE 1900100000u
#define BJ_GATEWAY_UID 1900200000u
#define BJ_HELPER_UID 1900200001u
/* Ids of a share's guest users other than root: BJ_SHARE_UID_BASE + slot * 65536 + guest uid. */
#define BJ_SHARE_UID_BASE 1910000000u

/**
 * bj_engine_new:
 * @uri: (nullable): a libvirt URI; %NULL means qemu:///embed?root=@root_dir
 * @root_dir: the embedded driver's folder (STATE/engine); made, with its etc/qemu.conf, if it is missing
 * @accelerator: auto probes KVM by running a tiny guest under a deadline; the answer is cached per boot in @root_dir
 *
 * Returns: (transfer full): an engine that is not open yet
 */
BjEngine *bj_engine_new (const char *uri, const char *root_dir, BjAccelerator accelerator);

/** bj_engine_open: Connects, probes the accelerator. Blocks, a few seconds on the first start. */
gboolean bj_engine_open (BjEngine *self, GCancellable *cancellable, GError **error);
/** bj_engine_close: Ends libvirt's event thread and the connection; machines live on. Blocks. */
void bj_engine_close (BjEngine *self);

const char *bj_engine_get_uri (BjEngine *self);
BjAccelerator bj_engine_get_accelerator (BjEngine *self);
/** bj_engine_get_accelerator_reason: (transfer none): one sentence on how the accelerator was chosen, for doctor */
const char *bj_engine_get_accelerator_reason (BjEngine *self);
const char *bj_accelerator_to_string (BjAccelerator accelerator); /* "kvm", "tcg", "auto" */

/** bj_engine_list_machines: Returns: (transfer full): ids of all live machines of ours in this engine. Blocks. */
GStrv bj_engine_list_machines (BjEngine *self, GError **error);

G_END_DECLS
