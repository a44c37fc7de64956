/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * bj_vmlinuz_unpack:
 * @kernel: an x86-64 bzImage whose payload is packed with xz and can be relocated
 * @slot: which of the addresses that the kernel can have becomes its own; any number
 * @error: return location; BJ_ERROR_FAILED for a file that is no such kernel
 *
 * Makes a bzImage of the same kernel that does not have to unpack itself: without KVM that takes longer than all else
 * the kernel does until its init starts. The real-mode part stays, so the machine has its text console. What the
 * unpacker would have done happens here: the kernel moves to another address, so that it is not where every Debian
 * kernel lies, and it is told to place its memory areas at random at each start.
 *
 * Returns: (transfer full): the file
 */
GBytes *bj_vmlinuz_unpack (GBytes *kernel, guint32 slot, GCancellable *cancellable, GError **error);

/** bj_vmlinuz_wrap: the same, of a kernel's unpacked payload: @elf is an ELF file and the relocations after it */
GBytes *bj_vmlinuz_wrap (GBytes *kernel, GBytes *elf, guint32 slot, GError **error);

G_END_DECLS
