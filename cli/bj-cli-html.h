/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-cli.h"

G_BEGIN_DECLS

/*
 * A transcript as one HTML file. It needs nothing from elsewhere and runs nothing: there is no script, pictures are inside, and a
 * Content-Security-Policy forbids the rest, should an escape ever be missing.
 */
typedef struct _BjHtml BjHtml;

/**
 * bj_html_new:
 * @path: the file, made anew; "-" is standard output
 * @search: (nullable): what was searched for, told at the top
 */
BjHtml *bj_html_new (BjCli *cli, BjDBusSession *session, const char *path, const char *search, GError **error);
/** bj_html_free: Removes a file that was not finished. */
void bj_html_free (BjHtml *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjHtml, bj_html_free)

/** bj_html_add_record: @line: of the transcript, without its newline; @shown: else only its place in the chain counts */
gboolean bj_html_add_record (BjHtml *self, const char *line, gsize length, gboolean shown, GError **error);
/** bj_html_finish: Writes the end. */
gboolean bj_html_finish (BjHtml *self, GError **error);

/** bj_html_escape: Pure. Returns: (transfer full): any text as text between tags or in an attribute */
char *bj_html_escape (const char *text);

G_END_DECLS
