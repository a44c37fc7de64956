/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"
#include "bj-slots.h"

G_BEGIN_DECLS

/* The templates of one state folder: found, checked, made when there is none, made anew when something changed. Thread-safe. */
typedef struct _BjTemplates BjTemplates;

/** bj_templates_new: @dir: STATE/templates. Neither @engine nor @slots is owned. */
BjTemplates *bj_templates_new (BjEngine *engine, BjSlots *slots, const char *dir);
void bj_templates_free (BjTemplates *self);

/** BjTemplatesMakes: Called in the thread that asked, when there is none yet and it takes a boot. */
typedef void (*BjTemplatesMakes) (gpointer user_data);

/**
 * bj_templates_get:
 * @spec: a machine that shall be a clone
 * @makes: (nullable)
 *
 * Blocks: a second when it has to be read, a boot when it has to be made. Whoever comes meanwhile waits for the same one. A
 * template that cannot be made is not tried again for ten minutes.
 *
 * Returns: (transfer full): the template; without one the machine must be booted
 */
BjTemplate *bj_templates_get (BjTemplates *self, const char *image_digest, const BjMachineSpec *spec,
                              BjTemplatesMakes makes, gpointer user_data, GCancellable *cancellable, GError **error);

/** bj_templates_clean: Removes what an interrupted capture left, and templates of images that are gone. Blocks. */
void bj_templates_clean (BjTemplates *self, const char *const *image_digests);

/** bj_templates_list_obsolete: Returns: (transfer full): keys of templates that were made of none of these images. Blocks. */
GStrv bj_templates_list_obsolete (BjTemplates *self, const char *const *image_digests);
/** bj_templates_forget: Removes one, unless somebody reads or makes it just now; clones of it live on. Blocks. Returns: whether it did */
gboolean bj_templates_forget (BjTemplates *self, const char *key);

/** bj_templates_dup_failure: Returns: (transfer full) (nullable): why the last one could not be made; for doctor */
char *bj_templates_dup_failure (BjTemplates *self);

G_END_DECLS
