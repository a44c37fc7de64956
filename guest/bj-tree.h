/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

/*
 * Sends signal (0: none) to every living descendant of this process, wherever it set its session or group to. With
 * PR_SET_CHILD_SUBREAPER an orphan stays a descendant. Returns how many there are.
 */
int bj_tree_signal (int signal);

/* Lets the caller win against a guest that forks as fast as it can: nothing else gets the CPU before it. */
void bj_tree_hurry (void);
