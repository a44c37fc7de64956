/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-engine.h"
#include "bj-guest.h"
#include "bj-template.h"

G_BEGIN_DECLS

/*
 * One throwaway machine: overlay, libvirt domain, share, guest channel. Every function blocks (worker threads only).
 * A machine object does not end its machine when it is freed: bj_machine_destroy() does.
 */
#define BJ_TYPE_MACHINE (bj_machine_get_type ())
G_DECLARE_FINAL_TYPE (BjMachine, bj_machine, BJ, MACHINE, GObject)

typedef struct
{
  char *id;       /* [a-z0-9-]{1,16}, unique in the engine; the domain is called "bj-ID" */
  guint slot;     /* below BJ_MACHINE_SLOTS, unique while the machine lives: uid, MAC and so on follow from it */
  char *run_dir;  /* made by prepare, root's; the machine may pass: overlay.qcow2 (its own), sockets, console.log */
  char *base;     /* qcow2 of the frozen image, read-only */
  char *kernel;   /* (nullable): for a direct boot */
  char *initrd;   /* (nullable) */
  char *cmdline;  /* (nullable) */
  char *hostname; /* set in the guest */
  guint memory_mib;
  guint cpus;
  gboolean tablet;  /* a pointer with absolute places, for a desktop */
  gboolean network; /* FALSE: no NIC at all */
  GStrv resolvers;  /* (nullable): addresses for the guest's resolv.conf */
  char *data_disk;  /* (nullable): raw file attached read-only as /dev/vdb (a tree's tar) */
  gboolean share;   /* whether a share will be attached (needs shared memory) */
  gboolean writable_base; /* no overlay: boot @base itself (smoke test of a fresh build) */
  BjTemplate *template;   /* (owned) (nullable): start as a clone of it instead of booting */
  BjRam *ram;             /* (owned) (nullable): boot with this memory (to become a template) */
} BjMachineSpec;

BjMachineSpec *bj_machine_spec_copy (const BjMachineSpec *spec);
void bj_machine_spec_free (BjMachineSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjMachineSpec, bj_machine_spec_free)

typedef enum
{
  BJ_MACHINE_STATE_ABSENT, /* not started, or gone */
  BJ_MACHINE_STATE_RUNNING,
  BJ_MACHINE_STATE_PAUSED,
  BJ_MACHINE_STATE_NO_SPACE, /* paused by QEMU because the host's disk is full */
} BjMachineState;

BjMachine *bj_machine_new (BjEngine *engine, const BjMachineSpec *spec);

/** bj_machine_prepare: Makes run_dir and the overlay, and in a clone's a hard link of its template's disk. */
gboolean bj_machine_prepare (BjMachine *self, GCancellable *cancellable, GError **error);
/**
 * bj_machine_create:
 *
 * Creates the domain, paused: before its first instruction, or where its template stopped. The share can be attached now, and
 * then bj_machine_run() lets it go. Without a share bj_machine_start() does both.
 */
gboolean bj_machine_create (BjMachine *self, GCancellable *cancellable, GError **error);
/** bj_machine_run: Plugs network card and data disk, as the spec says, and lets the machine run. */
gboolean bj_machine_run (BjMachine *self, GError **error);
gboolean bj_machine_start (BjMachine *self, GCancellable *cancellable, GError **error);
/** bj_machine_wait_ready: Returns when the guest's agent echoed a nonce, or fails at the deadline. */
gboolean bj_machine_wait_ready (BjMachine *self, guint deadline_s, GCancellable *cancellable, GError **error);
/** bj_machine_has_share: Whether one is plugged in. */
gboolean bj_machine_has_share (BjMachine *self);
/** bj_machine_adopt: Finds a live domain of this spec after a restart of the daemon. */
gboolean bj_machine_adopt (BjMachine *self, GError **error);

/* What a machine says of itself after its setup, and whether that proves it fresh. */
typedef struct
{
  gint64 clock_us; /* how far its clock may be off ours, at most */
  char *hostname;
  char *machine_id;
  char *mac;    /* "" without a network card */
  char *random; /* 32 bytes of its random pool, in hexadecimal */
  char *uuid;   /* what its kernel made of random numbers */
  gboolean reseeded; /* its kernel noticed by the generation id that it is a clone, and says that it drew new ones */
  guint old_host_keys;
} BjMachineFacts;

void bj_machine_facts_clear (BjMachineFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjMachineFacts, bj_machine_facts_clear)

/**
 * bj_machine_setup:
 * @mount_point: (nullable): where the guest mounts the attached share, for example /work/NAME
 * @facts: (out) (optional)
 *
 * One call: clock, random pool, host name, machine-id, host keys, resolv.conf, network, share. Then proves that the machine is
 * fresh, whatever it was cloned from: all of these must be its own. Otherwise fails.
 */
gboolean bj_machine_setup (BjMachine *self, const char *mount_point, BjMachineFacts *facts, GCancellable *cancellable,
                           GError **error);
/** bj_machine_mount_share: Mounts a share that was attached after the setup. */
gboolean bj_machine_mount_share (BjMachine *self, const char *mount_point, GCancellable *cancellable, GError **error);

/**
 * bj_machine_attach_share:
 * @dir_fd: the project's working folder
 * @uid: the project's owner: the guest's root is this uid on the host
 *
 * Starts virtiofsd in a user namespace of its own (never as real root unless the owner is root) and plugs it in, while the
 * machine is paused or while it runs. The guest has yet to mount it.
 */
gboolean bj_machine_attach_share (BjMachine *self, int dir_fd, uid_t uid, gid_t gid, GCancellable *cancellable,
                                  GError **error);
/** bj_machine_detach_share: Takes the share away from outside, whatever the guest does. Works on a paused machine too. */
gboolean bj_machine_detach_share (BjMachine *self, GError **error);

gboolean bj_machine_pause (BjMachine *self, GError **error);
gboolean bj_machine_resume (BjMachine *self, GError **error);
/** bj_machine_set_link: Plugs or unplugs the network cable. */
gboolean bj_machine_set_link (BjMachine *self, gboolean up, GError **error);
/**
 * bj_machine_save_state:
 * @fd: an empty file
 *
 * Pauses the machine for good and writes the state of its devices; its memory is the spec's and its disk the overlay.
 */
gboolean bj_machine_save_state (BjMachine *self, int fd, GCancellable *cancellable, GError **error);
/** bj_machine_screenshot: Returns: (transfer full): a PNG file from the hypervisor, no agent needed */
GBytes *bj_machine_screenshot (BjMachine *self, GError **error);
/** bj_machine_destroy: Ends domain, virtiofsd, overlay, sockets, run_dir. Safe to repeat, also after a crash. */
gboolean bj_machine_destroy (BjMachine *self, GError **error);

/**
 * bj_machine_adapt:
 * @spec: what somebody wants of a clone in stock
 *
 * Before bj_machine_run(): takes over host name, resolvers, network and data disk. What cannot change must be equal already.
 */
void bj_machine_adapt (BjMachine *self, const BjMachineSpec *spec);
/** bj_machine_take_over: Whoever is told that @from is gone is told that of @self instead. */
void bj_machine_take_over (BjMachine *self, BjMachine *from);
/** bj_machine_get_holding: (transfer none) (nullable): the user_data of bj_machine_on_gone() */
gpointer bj_machine_get_holding (BjMachine *self);
/** bj_machine_on_gone: @gone is called once, when nothing is left of it, or with the machine's own end. */
void bj_machine_on_gone (BjMachine *self, GDestroyNotify gone, gpointer user_data);

BjMachineState bj_machine_get_state (BjMachine *self);
const char *bj_machine_get_id (BjMachine *self);
/** bj_machine_get_spec: (transfer none) */
const BjMachineSpec *bj_machine_get_spec (BjMachine *self);
uid_t bj_machine_get_uid (BjMachine *self);
/** bj_machine_get_guest: (transfer none) */
BjGuest *bj_machine_get_guest (BjMachine *self);

G_END_DECLS
