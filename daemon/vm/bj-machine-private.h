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
};

/** bj_machine_ref_domain: Returns: (transfer full): the domain, or %NULL with an error */
virDomainPtr bj_machine_ref_domain (BjMachine *self, GError **error);
/** bj_machine_dup_path: Returns: (transfer full): of a file in its folder */
char *bj_machine_dup_path (BjMachine *self, const char *name);

/* bj-machine-plug.c */

/** bj_machine_plug_nic: A network card with a MAC of the slot's, behind QEMU's user-mode network. */
gboolean bj_machine_plug_nic (BjMachine *self, GError **error);
gboolean bj_machine_plug_data_disk (BjMachine *self, GError **error);
/** bj_machine_dup_mac: Returns: (transfer full): what the slot's network card has */
char *bj_machine_dup_mac (BjMachine *self);

G_END_DECLS
