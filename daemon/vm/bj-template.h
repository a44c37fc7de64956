/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-ram.h"

G_BEGIN_DECLS

/*
 * A machine that was booted once, warmed and stopped: its disk (an overlay over the image, never written again), its memory
 * and the state of its devices. Clones start from there in about a second. Immutable, thread-safe.
 * On disk: a folder with disk.qcow2, kernel, ram (with holes), state and template.ini, which has the digests of the three.
 */
typedef struct _BjTemplate BjTemplate;

/**
 * bj_template_load:
 * @dir: its folder
 * @key: what it must have been made for
 *
 * Reads and checks every byte, and keeps memory and device state in sealed memory, so that later damage does no harm.
 *
 * Returns: (transfer full): it; BJ_ERROR_NOT_FOUND if there is none, BJ_ERROR_INVALID if it is damaged
 */
BjTemplate *bj_template_load (const char *dir, const char *key, GCancellable *cancellable, GError **error);

/* What template.ini says beside digests of files. */
typedef struct
{
  const char *key;
  const char *image_digest; /* of the image it was booted from */
  guint memory_mib;
  guint cpus;
  const char *ram_digest; /* as bj_ram_save() said */
} BjTemplateFacts;

/**
 * bj_template_write_description:
 * @dir: a folder with disk.qcow2, ram and state
 *
 * Makes the disk read-only and durable, and writes template.ini, the last thing that makes the folder a template.
 */
gboolean bj_template_write_description (const char *dir, const BjTemplateFacts *facts, GCancellable *cancellable,
                                        GError **error);

/**
 * bj_template_is_obsolete:
 * @dir: a folder of templates
 * @facts: of a newer template
 *
 * Whether the template in @dir was for the same machine of the same image (QEMU was updated, say), or is none at all.
 */
gboolean bj_template_is_obsolete (const char *dir, const BjTemplateFacts *facts);
/** bj_template_is_of: Whether the template in @dir was made of one of the images with these digests. */
gboolean bj_template_is_of (const char *dir, const char *const *image_digests);

BjTemplate *bj_template_ref (BjTemplate *self);
void bj_template_unref (BjTemplate *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjTemplate, bj_template_unref)

const char *bj_template_get_key (BjTemplate *self);
const char *bj_template_get_disk (BjTemplate *self);
/** bj_template_get_kernel: (nullable): the beginning of its kernel, enough for QEMU; the rest of it runs already */
const char *bj_template_get_kernel (BjTemplate *self);
/** bj_template_get_ram: (transfer none): sealed */
BjRam *bj_template_get_ram (BjTemplate *self);
/** bj_template_open_state: Returns: an fd of its own at the beginning, or -1; owned by the caller */
int bj_template_open_state (BjTemplate *self, GError **error);
/** bj_template_is_unchanged: Whether the disk is still the file that was read, by its size, time and inode. */
gboolean bj_template_is_unchanged (BjTemplate *self, GError **error);

G_END_DECLS
