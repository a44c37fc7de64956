/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/*
 * Takes out of a text what looks like a secret: tokens of well-known forms, passwords in addresses, what follows “Authorization:”,
 * private keys, and values of the caller's own environment variables that are named like secrets. What looks like none may stay: nobody
 * can know every secret.
 */
typedef struct _BjScrubber BjScrubber;

/** bj_scrubber_new: @environ: (nullable): "NAME=value" */
BjScrubber *bj_scrubber_new (const char *const *environ);
void bj_scrubber_free (BjScrubber *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjScrubber, bj_scrubber_free)

/** bj_scrubber_clean_text: Any bytes without NUL. Returns: (transfer full): the text without them */
char *bj_scrubber_clean_text (BjScrubber *self, const char *text);
/** bj_scrubber_clean_node: Every text in @node, in place; also the whole of one whose name says that it is a secret */
void bj_scrubber_clean_node (BjScrubber *self, JsonNode *node);
/** bj_scrubber_get_count: Returns: how many were taken out so far */
guint bj_scrubber_get_count (BjScrubber *self);

G_END_DECLS
