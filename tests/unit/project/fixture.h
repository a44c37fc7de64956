/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "bj-fd.h"
#include "bj-project-folder.h"
#include "bj-project-store.h"

#include <fcntl.h>
#include <sys/stat.h>

G_BEGIN_DECLS

/* A project "p" of a user of its own (when root), with the real helper and the real sandbox. */
typedef struct
{
  char *dir; /* (owned) */
  BjStore *database;
  BjProjectStore *store;
  int work; /* fd, with the test's own rights */
  uid_t uid;
  char *tree; /* (owned) (nullable): of the last write */
  GStrv warnings;
  guint64 files;
  int stop; /* atomic: of a thread beside the test */
} Fixture;

#define OWNER 1234567u
#define GUEST (1910000000u + 3 * 65536u + 1000u) /* what a guest's user 1000 in slot 3 is on the host */
#define PROJECT_TEST(path, func) g_test_add (path, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

void fixture_set_up (Fixture *self, gconstpointer data);
void fixture_tear_down (Fixture *self, gconstpointer data);
void fixture_put (Fixture *self, const char *path, const char *content);
/** fixture_give: when root */
void fixture_give (Fixture *self, const char *path, uid_t uid);
void fixture_put_link (Fixture *self, const char *path, const char *target);
void fixture_put_folder (Fixture *self, const char *path);
/** fixture_write: writes the tree, which has to work */
void fixture_write (Fixture *self);
gboolean fixture_warned (Fixture *self, const char *part);
/** fixture_blob: Returns: (transfer full) (nullable): a file of the last tree */
char *fixture_blob (Fixture *self, const char *path);
/** fixture_run: Returns: (transfer full): standard output of a program that has to work, started in @dir of the fixture */
char *fixture_run (Fixture *self, const char *dir, const char *const *argv);

G_END_DECLS
