/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <sys/types.h>

/*
 * A control group for one command: what it may start is limited, so that a fork bomb leaves room for us, and all of it can be
 * killed at once. The groups stay and are used again: making one takes milliseconds.
 *
 * Returns an fd to hold while the command runs, or -1: there are no control groups here, and it runs without.
 */
int bj_cgroup_take (void);

/* As fork(); the child begins its life in the group, if there is one and it has room. */
pid_t bj_cgroup_fork (int cgroup);

/* Kills all that is in it; -1 is fine. */
void bj_cgroup_kill (int cgroup);
