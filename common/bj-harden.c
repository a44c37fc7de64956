/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-harden.h"

#include <sys/prctl.h>
#include <sys/resource.h>

void
bj_harden (void)
{
  const struct rlimit no_core = { 0, 0 };

  prctl (PR_SET_DUMPABLE, 0);
  prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  setrlimit (RLIMIT_CORE, &no_core);
}
