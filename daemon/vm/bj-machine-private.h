/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-libvirt.h"
#include "bj-machine.h"
#include "bj-share.h"

G_BEGIN_DECLS

struct _BjMachine
{
  GObject parent_instance;

  BjEngine *engine;    /* (owned) */
  BjMachineSpec *spec; /* (owned) */
  BjGuest *guest;      /* (owned) */
  GDestroyNotify gone; /* (nullable) */
  gpointer gone_data;
  GMutex lock; /* guards the two below */
  virDomainPtr domain; /* (owned) (nullable) */
  BjShare *share;      /* (owned) (nullable): %NULL also for a share that an earlier daemon started */

  /* Of the thread that drives the machine. */
  gboolean share_plugged;
  gboolean nic_plugged;
  gboolean unmounted; /* the guest had the share mounted and has not any more */
};

/** bj_machine_ref_domain: Returns: (transfer full): the domain, or %NULL with an error */
virDomainPtr bj_machine_ref_domain (BjMachine *self, GError **error);
/** bj_machine_end_domain: Ends what runs of it; its files stay. */
gboolean bj_machine_end_domain (BjMachine *self, GError **error);
/** bj_machine_create_incoming: Starts QEMU, which waits for a state. @type: its machine type */
gboolean bj_machine_create_incoming (BjMachine *self, const char *type, GCancellable *cancellable, GError **error);
/** bj_machine_unmount_share: In the guest. @users: (out): how many processes used it */
gboolean bj_machine_unmount_share (BjMachine *self, const char *mount_point, guint *users, GCancellable *cancellable,
                                   GError **error);
/** bj_machine_dup_path: Returns: (transfer full): of a file in its folder */
char *bj_machine_dup_path (BjMachine *self, const char *name);

/* bj-machine-plug.c */

/** bj_machine_plug_nic: A network card with a MAC of the slot's, behind QEMU's user-mode network. */
gboolean bj_machine_plug_nic (BjMachine *self, GError **error);
gboolean bj_machine_plug_data_disk (BjMachine *self, GError **error);
/** bj_machine_dup_mac: Returns: (transfer full): what the slot's network card has */
char *bj_machine_dup_mac (BjMachine *self);

G_END_DECLS
