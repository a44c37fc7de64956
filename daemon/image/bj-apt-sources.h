/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * Where the host itself gets a Debian suite from, as lines of a sources.list: the suite, its updates and its security
 * updates; no backports, no proposed updates, nothing of other suites.
 */

/** bj_apt_sources_parse_list: adds the lines of a sources.list that serve @suite with one of @components to @lines */
void bj_apt_sources_parse_list (const char *text, const char *suite, const char *components, GPtrArray *lines);
/** bj_apt_sources_parse_deb822: likewise of a *.sources file */
void bj_apt_sources_parse_deb822 (const char *text, const char *suite, const char *components, GPtrArray *lines);

/**
 * bj_apt_sources_read:
 * @dir: /etc/apt
 *
 * Returns: (transfer full): the lines, empty if this host does not use the suite
 */
GStrv bj_apt_sources_read (const char *dir, const char *suite, const char *components);

/** bj_apt_sources_for_mirror: one line for a mirror that a person named; BJ_ERROR_INVALID if it is not a plain URL */
GStrv bj_apt_sources_for_mirror (const char *mirror, const char *suite, const char *components, GError **error);

/**
 * bj_apt_options_filter:
 * @dump: what apt-config dump printed
 *
 * Returns: (transfer full): its lines about proxies, certificates and the age of indexes, to be an apt.conf
 */
char *bj_apt_options_filter (const char *dump);

G_END_DECLS
