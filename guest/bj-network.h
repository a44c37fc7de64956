/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdbool.h>

/* QEMU's user-mode network always looks the same, so nobody needs to ask it for an address. Can be repeated. Sets errno. */
bool bj_network_up (void);

/* The same as a program, for a boot that nobody sets up. Returns its exit code. */
int bj_network_main (void);
