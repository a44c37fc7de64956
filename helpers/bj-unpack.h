/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * belljar-unpack: the only program that reads an archive which a guest made. `belljar copy` starts it with the archive as its
 * standard input and a fresh, empty folder as its working directory, and it can change nothing but that folder (Landlock, where
 * the kernel has it).
 */

/* What was in the archive beside files, folders and links within it. */
typedef struct
{
  guint64 skipped;     /* devices and the like: left out */
  guint64 outward;     /* symbolic links that lead out of what was copied: they are there */
  char *first_skipped; /* (owned) (nullable): its name, bytes */
} BjUnpackFacts;

void bj_unpack_facts_clear (BjUnpackFacts *facts);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjUnpackFacts, bj_unpack_facts_clear)

/**
 * bj_unpack:
 * @fd: where the archive comes from: tar, as it is
 * @facts: (out): what was in it
 * @error: return location; names the entry
 *
 * Unpacks into the working directory: files, folders, symbolic links, and hard links within. Never owners, setuid, setgid or
 * sticky bits; modes as the umask lets them. An entry that would leave the folder is an error, and so is an archive that is cut off.
 * What is there after an error is void.
 */
gboolean bj_unpack (int fd, BjUnpackFacts *facts, GError **error);

/** bj_unpack_leads_out: Whether a symbolic link called @name, to @target, leads out of the folder that @name is relative to. Pure. */
gboolean bj_unpack_leads_out (const char *name, const char *target);

/** bj_unpack_confine: From now on this process can open nothing but what is beneath @folder, where the kernel can enforce that. */
gboolean bj_unpack_confine (int folder, GError **error);

G_END_DECLS
