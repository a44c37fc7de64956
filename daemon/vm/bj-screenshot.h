/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-libvirt.h"

G_BEGIN_DECLS

/** bj_screenshot_take: Returns: (transfer full): a PNG of the domain's first screen */
GBytes *bj_screenshot_take (virDomainPtr domain, GError **error);

G_END_DECLS
