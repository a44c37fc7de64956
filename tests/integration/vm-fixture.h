/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-machine.h"

/*
 * One engine and one running machine that the tests of this program share. With BELLJAR_TEST_KEEP=DIR the machine stays
 * and is adopted by the next run, which saves a boot while one works on a test.
 */
typedef struct
{
  char *dir; /* short: sockets live below it */
  BjEngine *engine;
  BjMachine *machine;
  BjGuest *guest; /* (not owned) */
} VmFixture;

/* Returns NULL, having said why, if BELLJAR_TEST_IMAGE is not set. */
const char *vm_get_image (void);
VmFixture *vm_get (void);
/* A second machine in the same engine; prepared, not started. */
BjMachine *vm_new_machine (VmFixture *vm, const char *id, guint slot);
void vm_boot (BjMachine *machine);
void vm_end (void);

/* Runs sh -c SCRIPT as root; the test fails if the guest cannot be reached. */
void vm_sh (BjGuest *guest, const char *script, BjExecResult *result);
/* The same, and the script must succeed. Returns what it printed, without the last newline. */
char *vm_sh_ok (BjGuest *guest, const char *script);
void vm_report (const char *what, double seconds);
double vm_now (void);

void vm_add_share_tests (void);
void vm_add_lane_tests (void);
void vm_add_trouble_tests (void);
