/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-name.h"
#include "bj-tree.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define LEVELS_MAX 900 /* of folders; deeper ones stay as they are, with a warning */

/* One run. Guests' ids are a range of their own, so nothing that was somebody else's becomes the owner's. */
typedef struct
{
  uid_t uid;
  gid_t gid;
  uid_t first, last; /* of guests' files */
  BjTreeAnswer *answer;
  guint64 changed;
  guint64 moved;
} BjOwn;

static gboolean
may_take (BjOwn *own, const struct stat *st)
{
  return st->st_uid == own->uid || (st->st_uid >= own->first && st->st_uid <= own->last);
}

static mode_t
wanted_mode (const struct stat *st)
{
  mode_t mode = st->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);

  /* The owner has to be able to read it; a sticky folder is harmless but useless. */
  return S_ISDIR (st->st_mode) ? mode | S_IRWXU : mode | S_IRUSR;
}

/* Through an open fd: what was checked is what is changed. */
static gboolean
take_open (BjOwn *own, int fd, mode_t type, const char *path, const char *name)
{
  struct stat st;

  if (fstat (fd, &st) < 0 || (st.st_mode & S_IFMT) != type)
    {
      bj_tree_answer_warn (own->answer, path, name, "changed while its owner was set; it stays as it is");
      return FALSE;
    }
  if (!may_take (own, &st))
    {
      bj_tree_answer_warn (own->answer, path, name, "belongs to another user of this system; it stays as it is");
      return FALSE;
    }
  if ((st.st_uid != own->uid || st.st_gid != own->gid) && fchown (fd, own->uid, own->gid) < 0)
    {
      bj_tree_answer_warn (own->answer, path, name, "could not get its owner");
      return FALSE;
    }
  if ((st.st_mode & 07777) != wanted_mode (&st) && fchmod (fd, wanted_mode (&st)) < 0)
    bj_tree_answer_warn (own->answer, path, name, "could not get its permissions");
  own->changed++;
  return TRUE;
}

static void
take_special (BjOwn *own, int folder, const char *path, const char *name, const struct stat *st)
{
  if (!may_take (own, st))
    bj_tree_answer_warn (own->answer, path, name, "belongs to another user of this system; it stays as it is");
  else if (st->st_uid == own->uid && st->st_gid == own->gid)
    own->changed++;
  else if (fchownat (folder, name, own->uid, own->gid, AT_SYMLINK_NOFOLLOW) < 0)
    bj_tree_answer_warn (own->answer, path, name, "could not get its owner");
  else
    own->changed++;
}

/* Returns: (transfer full): the new name, or NULL if it could not be moved */
static char *
move_aside (BjOwn *own, int folder, const char *path, const char *name)
{
  for (guint i = 1; i < 1000; i++)
    {
      guint n = i <= 100 ? i : g_random_int ();
      g_autofree char *aside = g_strdup_printf (BJ_TREE_ASIDE "%u", n);

      if (renameat2 (folder, name, folder, aside, RENAME_NOREPLACE) == 0)
        {
          g_autofree char *what = g_strdup_printf ("was moved aside to %s: no git runs what a guest put there", aside);

          own->moved++;
          bj_tree_answer_warn (own->answer, path, name, what);
          return g_steal_pointer (&aside);
        }
      if (errno != EEXIST)
        break;
    }
  bj_tree_answer_warn (own->answer, path, name, "could not be moved aside: do not run git in this folder");
  return NULL;
}

/* Returns: an fd of a folder that is the owner's now, to go into; -1 for everything else */
static int
take_entry (BjOwn *own, int folder, const char *path, const char *name)
{
  struct stat st;
  gboolean is_folder;
  g_auto(BjFd) fd = -1;

  if (fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return -1; /* gone meanwhile */
  is_folder = S_ISDIR (st.st_mode);
  if (!is_folder && !S_ISREG (st.st_mode))
    {
      take_special (own, folder, path, name, &st);
      return -1;
    }
  fd = bj_tree_open (folder, name, is_folder ? O_RDONLY | O_DIRECTORY : O_RDONLY);
  if (fd < 0)
    {
      bj_tree_answer_warn (own->answer, path, name,
                           errno == EXDEV ? "is on another file system; it stays as it is" : "could not be opened");
      return -1;
    }
  if (!take_open (own, fd, st.st_mode & S_IFMT, path, name) || !is_folder)
    return -1;
  return g_steal_fd (&fd);
}

static void take_folder (BjOwn *own, int folder, const char *path, guint level);

static void
take_name (BjOwn *own, int folder, const char *path, const char *name, guint level)
{
  g_autofree char *aside = bj_tree_name_is_dot_git (name) ? move_aside (own, folder, path, name) : NULL;
  const char *now = aside != NULL ? aside : name;
  g_auto(BjFd) fd = take_entry (own, folder, path, now);
  g_autofree char *below = NULL;

  if (fd < 0)
    return;
  if (level >= LEVELS_MAX)
    {
      bj_tree_answer_warn (own->answer, path, now, "is nested too deep; what is in it stays as it is");
      return;
    }
  below = *path != '\0' ? g_strdup_printf ("%s/%s", path, now) : g_strdup (now);
  take_folder (own, fd, below, level + 1);
}

static void
take_folder (BjOwn *own, int folder, const char *path, guint level)
{
  g_autoptr(GPtrArray) names = bj_tree_list (folder, NULL);

  if (names == NULL)
    {
      bj_tree_answer_warn (own->answer, path, "", "could not be listed");
      return;
    }
  for (guint i = 0; i < names->len; i++)
    take_name (own, folder, path, g_ptr_array_index (names, i), level);
}

/* own UID GID FIRST LAST; fd 3: the folder */
gboolean
bj_tree_own (const char *const *args, BjTreeAnswer *answer, GError **error)
{
  guint64 numbers[4];
  BjOwn own = { .answer = answer };
  g_auto(BjFd) top = -1;

  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (!g_ascii_string_to_unsigned (args[i], 10, 0, G_MAXUINT32 - 1, &numbers[i], error))
      return FALSE;
  own.uid = (uid_t) numbers[0];
  own.gid = (gid_t) numbers[1];
  own.first = (uid_t) numbers[2];
  own.last = (uid_t) numbers[3];
  umask (0);
  bj_tree_confine ((const int[]) { 3 }, (const gboolean[]) { TRUE }, 1);
  top = bj_tree_open (3, ".", O_RDONLY | O_DIRECTORY);
  if (top < 0)
    return bj_fd_set_io_error (error, errno, "Opening the project's folder");
  if (!take_open (&own, top, S_IFDIR, "", "."))
    return bj_error_set (error, BJ_ERROR_DENIED, "The project's folder does not belong to its owner");
  take_folder (&own, top, "", 1);
  bj_tree_answer_add (answer, "changed", "%" G_GUINT64_FORMAT, own.changed);
  bj_tree_answer_add (answer, "moved", "%" G_GUINT64_FORMAT, own.moved);
  return TRUE;
}
