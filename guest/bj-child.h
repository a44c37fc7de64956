/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-request.h"

#include <sys/types.h>

/*
 * Starts the command as its user, in a session of its own, with in, out and err as its first three fds and nothing else.
 * What keeps it from starting is printed to err, and it "exits" with 126, or 127 if there is no such program.
 * @cgroup is as bj_cgroup_take() gives it. Returns its pid, or -1.
 */
pid_t bj_child_start (const BjRequest *request, int in, int out, int err, int cgroup);
