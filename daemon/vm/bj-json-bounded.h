/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/**
 * bj_json_parse_bounded:
 * @text: what a guest, or a QEMU that it may have taken over, said
 * @max_size: bytes
 *
 * The parser is recursive, so depth is checked before it sees the text.
 *
 * Returns: (transfer full) (nullable): the root; %NULL when it is too long, too deep or malformed
 */
JsonNode *bj_json_parse_bounded (const char *text, gsize max_size);

G_END_DECLS
