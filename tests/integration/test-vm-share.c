/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "vm-fixture.h"

void
vm_add_share_tests (void)
{
}
