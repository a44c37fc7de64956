/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* What belljar-tree answered: lines "KEY VALUE" that end with "end". It has read hostile files, so it may be hostile itself. */
typedef struct
{
  char *tree; /* (nullable): 40 lower-case hexadecimal digits */
  guint64 files;
  guint64 bytes;
  GPtrArray *warnings; /* (element-type utf8): printable, one line each */
  JsonArray *entries;  /* of a diff */
} BjProjectAnswer;

void bj_project_answer_clear (BjProjectAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjProjectAnswer, bj_project_answer_clear)
/** bj_project_answer_parse: Pure. Anything unexpected is an error. */
gboolean bj_project_answer_parse (GBytes *output, BjProjectAnswer *answer, GError **error);

/** bj_project_answer_parse_blob: "none" or "blob SIZE" and the bytes. @blob: (out) (nullable): %NULL for none */
gboolean bj_project_answer_parse_blob (GBytes *output, gsize max, GBytes **blob, GError **error);

/** bj_project_id_is_valid: 40 lower-case hexadecimal digits */
gboolean bj_project_id_is_valid (const char *id);

G_END_DECLS
