/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-unpack.h"

#include "bj-fd.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All that the first version of Landlock knows; later ones add what an unpacker has no use for, unless it renames. */
#define ALL_RIGHTS ((1ull << 13) - 1)
#define RENAME (1ull << 13) /* LANDLOCK_ACCESS_FS_REFER: since the second version */
#define TRUNCATE (1ull << 14) /* since the third */

static guint64
get_rights (void)
{
  long version = syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

  if (version < 1)
    return 0;
  return ALL_RIGHTS | (version >= 2 ? RENAME : 0) | (version >= 3 ? TRUNCATE : 0);
}

gboolean
bj_unpack_confine (int folder, GError **error)
{
  const guint64 devices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK
                          | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_EXECUTE;
  const guint64 rights = get_rights ();
  const struct landlock_ruleset_attr all = { .handled_access_fs = rights };
  const struct landlock_path_beneath_attr beneath = { .allowed_access = rights & ~devices, .parent_fd = folder };
  g_auto(BjFd) rules = -1;

  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return bj_fd_set_io_error (error, errno, "Giving up privileges");
  if (rights == 0)
    return TRUE;
  rules = (int) syscall (SYS_landlock_create_ruleset, &all, sizeof all.handled_access_fs, 0);
  if (rules < 0 || syscall (SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0
      || syscall (SYS_landlock_restrict_self, rules, 0) < 0)
    return bj_fd_set_io_error (error, errno, "Confining the unpacker to its folder");
  return TRUE;
}
