/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-dbus-project.h"
#include "bj-store.h"

G_BEGIN_DECLS

/** bj_project_tasks_serve: Answers ListTasks, AddTask and SetTask of @skeleton for as long as it lives. */
void bj_project_tasks_serve (BjDBusProject *skeleton, BjStore *store, const char *project);

G_END_DECLS
