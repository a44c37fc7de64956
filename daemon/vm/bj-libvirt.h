/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-error.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

G_BEGIN_DECLS

G_DEFINE_AUTOPTR_CLEANUP_FUNC (virDomain, virDomainFree)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (virStream, virStreamFree)

/**
 * bj_libvirt_set_error:
 * @code: which error of ours
 * @format: what was tried; libvirt's own text of this thread's last error follows, made safe and short
 *
 * Returns: always %FALSE
 */
gboolean bj_libvirt_set_error (GError **error, BjError code, const char *format, ...) G_GNUC_PRINTF (3, 4);

/**
 * bj_libvirt_clean_text:
 * @text: (nullable): bytes that a guest may have chosen
 *
 * Returns: (transfer full): beginning and end of it, at most 365 printable ASCII characters
 */
char *bj_libvirt_clean_text (const char *text);

G_END_DECLS
