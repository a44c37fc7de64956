/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * A guest's memory as a file without a name (a memfd), so that nothing can be left behind and nobody else can open it.
 * QEMU runs under a machine's own uid and opens its memory for writing; a template's memory is therefore sealed: it can be
 * mapped privately (copy-on-write) and by no means changed. All functions block shortly and are thread-safe.
 */
typedef struct _BjRam BjRam;

/** bj_ram_new: @mib: its size. Returns: (transfer full): empty memory that can be written */
BjRam *bj_ram_new (guint mib, GError **error);
/** bj_ram_copy: Returns: (transfer full): memory of its own with the same content; pages of zeros take no room */
BjRam *bj_ram_copy (BjRam *self, GError **error);
/**
 * bj_ram_load:
 * @path: a file that bj_ram_save() made
 * @mib: the size it must have
 * @digest: what bj_ram_save() said of it
 *
 * Returns: (transfer full): sealed memory; BJ_ERROR_INVALID if the file is not what it was
 */
BjRam *bj_ram_load (const char *path, guint mib, const char *digest, GCancellable *cancellable, GError **error);
/** bj_ram_save: Into a new file with holes, durably. Returns: (transfer full): its digest, "sha256:HEX" */
char *bj_ram_save (BjRam *self, const char *path, GCancellable *cancellable, GError **error);
/** bj_ram_seal: No change is possible any more, by anybody. Fails while a machine still uses it. */
gboolean bj_ram_seal (BjRam *self, GError **error);
/** bj_ram_get_used: bytes that are really there, in pages */
guint64 bj_ram_get_used (BjRam *self);
guint bj_ram_get_mib (BjRam *self);

BjRam *bj_ram_ref (BjRam *self);
void bj_ram_unref (BjRam *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjRam, bj_ram_unref)

/* While it lives, a path leads to the memory for processes of one uid. */
typedef struct _BjRamLoan BjRamLoan;

/** bj_ram_lend: @uid: who may open it (as root: that uid; else: ourselves) */
BjRamLoan *bj_ram_lend (BjRam *self, uid_t uid, GError **error);
const char *bj_ram_loan_get_path (BjRamLoan *loan);
void bj_ram_loan_free (BjRamLoan *loan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjRamLoan, bj_ram_loan_free)

G_END_DECLS
