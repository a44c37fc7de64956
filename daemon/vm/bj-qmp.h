/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* The form of commands and answers that QEMU's monitor and the guest agent have in common. */

/**
 * bj_qmp_build_command:
 * @arguments: (transfer full) (nullable)
 *
 * Returns: (transfer full): {"execute": @command, "arguments": @arguments}
 */
char *bj_qmp_build_command (const char *command, JsonObject *arguments);

/**
 * bj_qmp_parse:
 * @text: what a guest, or a QEMU that it may have taken over, said
 * @max_size: bytes
 *
 * The parser is recursive, so depth is checked before it sees the text.
 *
 * Returns: (transfer full) (nullable): the root; %NULL when it is too long, too deep or malformed
 */
JsonNode *bj_qmp_parse (const char *text, gsize max_size);

G_END_DECLS
