/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdbool.h>

/*
 * Takes the share away from @folder, also when it is in use. @users: how many processes had a file of it open or worked in it: what
 * they hold leads nowhere from now on. Returns false and sets errno when it fails; not being mounted is no failure.
 */
bool bj_unmount (const char *folder, unsigned int *users);
