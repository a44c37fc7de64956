/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-ram.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE 4096u
#define STEP (1u << 20) /* bytes between two looks at the cancellable */
#define LOAN_FD 3

struct _BjRam
{
  gatomicrefcount ref_count;
  int fd;
  guint mib;
};

struct _BjRamLoan
{
  GSubprocess *holder; /* (owned) */
  char *path;          /* (owned) */
};

static gsize
get_size (const BjRam *self)
{
  return (gsize) self->mib << 20;
}

BjRam *
bj_ram_new (guint mib, GError **error)
{
  g_autoptr(BjRam) self = g_new0 (BjRam, 1);

  g_atomic_ref_count_init (&self->ref_count);
  self->mib = mib;
  self->fd = memfd_create ("belljar-guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  /* Everybody's by its mode, but there is no name to open it by: see bj_ram_lend(). */
  if (self->fd < 0 || ftruncate (self->fd, (off_t) get_size (self)) < 0 || fchmod (self->fd, 0666) < 0)
    {
      bj_fd_set_io_error (error, errno, "Making a guest's memory of %u MiB", mib);
      return NULL;
    }
  return g_steal_pointer (&self);
}

BjRam *
bj_ram_ref (BjRam *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
bj_ram_unref (BjRam *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  bj_fd_clear (&self->fd);
  g_free (self);
}

guint
bj_ram_get_mib (BjRam *self)
{
  return self->mib;
}

guint64
bj_ram_get_used (BjRam *self)
{
  struct stat info;

  return fstat (self->fd, &info) == 0 ? (guint64) info.st_blocks * 512 : 0;
}

gboolean
bj_ram_seal (BjRam *self, GError **error)
{
  if (fcntl (self->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
    return bj_fd_set_io_error (error, errno, "Sealing a guest's memory");
  return TRUE;
}

/* What follows walks over a file's data, not its holes. @data is mapped, @start and @length are bytes of the file. */
typedef gboolean (*BjRamPiece) (gpointer user_data, const guint8 *data, gsize start, gsize length, GError **error);

static gboolean
is_zero (const guint8 *page)
{
  return page[0] == 0 && memcmp (page, page + 1, PAGE - 1) == 0;
}

/* Runs of pages that are not zeros. */
static gboolean
visit_pages (const guint8 *data, gsize start, gsize end, BjRamPiece visit, gpointer user_data, GError **error)
{
  gsize run = start;

  for (gsize at = start; at < end; at += PAGE)
    {
      if (!is_zero (data + at))
        continue;
      if (at > run && !visit (user_data, data + run, run, at - run, error))
        return FALSE;
      run = at + PAGE;
    }
  return run >= end || visit (user_data, data + run, run, end - run, error);
}

static gboolean
visit_mapped (int fd, const guint8 *data, gsize size, BjRamPiece visit, gpointer user_data, GCancellable *cancellable,
              GError **error)
{
  off_t start = 0;

  while ((start = lseek (fd, start, SEEK_DATA)) >= 0 && (gsize) start < size)
    {
      off_t end = lseek (fd, start, SEEK_HOLE);

      if (end < 0)
        return bj_fd_set_io_error (error, errno, "Looking for the end of data");
      while (start < end)
        {
          gsize next = MIN ((gsize) end, ((gsize) start / STEP + 1) * STEP);

          if (g_cancellable_set_error_if_cancelled (cancellable, error)
              || !visit_pages (data, (gsize) start, next, visit, user_data, error))
            return FALSE;
          start = (off_t) next;
        }
    }
  return start >= 0 || errno == ENXIO || bj_fd_set_io_error (error, errno, "Looking for data");
}

static gboolean
visit_data (int fd, gsize size, BjRamPiece visit, gpointer user_data, GCancellable *cancellable, GError **error)
{
  guint8 *data = mmap (NULL, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  gboolean ok;

  if (data == MAP_FAILED)
    return bj_fd_set_io_error (error, errno, "Mapping a guest's memory");
  ok = visit_mapped (fd, data, size, visit, user_data, cancellable, error);
  munmap (data, size);
  return ok;
}

/* Where pieces go to, and what they have in common. */
typedef struct
{
  int fd;             /* -1: nowhere */
  GChecksum *digest;  /* (nullable) */
} BjRamSink;

static gboolean
take_piece (gpointer user_data, const guint8 *data, gsize start, gsize length, GError **error)
{
  BjRamSink *sink = user_data;
  const guint64 head[2] = { GUINT64_TO_LE (start / PAGE), GUINT64_TO_LE (length / PAGE) };

  if (sink->digest != NULL)
    {
      g_checksum_update (sink->digest, (const guchar *) head, sizeof head);
      g_checksum_update (sink->digest, data, (gssize) length);
    }
  while (sink->fd >= 0 && length > 0)
    {
      gssize n = pwrite (sink->fd, data, length, (off_t) start);

      if (n < 0 && errno != EINTR)
        return bj_error_set (error, errno == ENOSPC ? BJ_ERROR_NO_SPACE : BJ_ERROR_FAILED,
                             "Writing a guest's memory: %s", g_strerror (errno));
      if (n > 0)
        {
          data += n;
          start += (gsize) n;
          length -= (gsize) n;
        }
    }
  return TRUE;
}

static char *
dup_digest (GChecksum *checksum)
{
  return g_strconcat ("sha256:", g_checksum_get_string (checksum), NULL);
}

BjRam *
bj_ram_copy (BjRam *self, GError **error)
{
  g_autoptr(BjRam) copy = bj_ram_new (self->mib, error);
  BjRamSink sink = { .fd = copy != NULL ? copy->fd : -1 };

  if (copy == NULL || !visit_data (self->fd, get_size (self), take_piece, &sink, NULL, error))
    return NULL;
  return g_steal_pointer (&copy);
}

/* A page's place counts with it, so that moved pages are noticed; the pieces depend on the content alone, not on holes. */
char *
bj_ram_save (BjRam *self, const char *path, GCancellable *cancellable, GError **error)
{
  g_autoptr(GChecksum) digest = g_checksum_new (G_CHECKSUM_SHA256);
  g_auto(BjFd) fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  BjRamSink sink = { .fd = fd, .digest = digest };

  if (fd < 0 || ftruncate (fd, (off_t) get_size (self)) < 0)
    {
      bj_fd_set_io_error (error, errno, "Making %s", path);
      return NULL;
    }
  if (!visit_data (self->fd, get_size (self), take_piece, &sink, cancellable, error))
    {
      g_prefix_error (error, "%s: ", path);
      return NULL;
    }
  if (fsync (fd) < 0)
    {
      bj_fd_set_io_error (error, errno, "Writing %s", path);
      return NULL;
    }
  return dup_digest (digest);
}

BjRam *
bj_ram_load (const char *path, guint mib, const char *digest, GCancellable *cancellable, GError **error)
{
  g_autoptr(GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autoptr(BjRam) self = bj_ram_new (mib, error);
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  BjRamSink sink = { .fd = self != NULL ? self->fd : -1, .digest = checksum };
  g_autofree char *found = NULL;
  struct stat info;

  if (self == NULL)
    return NULL;
  if (fd < 0 || fstat (fd, &info) < 0)
    {
      bj_fd_set_io_error (error, errno, "Opening %s", path);
      return NULL;
    }
  if ((gsize) info.st_size != get_size (self))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s is damaged: it has not the size it had", path);
      return NULL;
    }
  if (!visit_data (fd, get_size (self), take_piece, &sink, cancellable, error))
    return NULL;
  found = dup_digest (checksum);
  if (!g_str_equal (found, digest))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s is damaged: its content is not what it was", path);
      return NULL;
    }
  return bj_ram_seal (self, error) ? g_steal_pointer (&self) : NULL;
}

/* Between fork and exec: system calls only. */
static void
become (gpointer user_data)
{
  const uid_t *uid = user_data;

  if (setgroups (0, NULL) < 0 || setresgid (*uid, *uid, *uid) < 0 || setresuid (*uid, *uid, *uid) < 0)
    _exit (126);
}

/*
 * QEMU gets its memory by a path. /proc/PID/fd of a process with the machine's own uid is one that only this uid can
 * follow and that is gone with the process; cat waits until its standard input is closed, at the latest by our end.
 */
BjRamLoan *
bj_ram_lend (BjRam *self, uid_t uid, GError **error)
{
  const char *argv[] = { "/bin/cat", NULL };
  g_autoptr(GSubprocessLauncher) launcher
      = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_SILENCE);
  g_autoptr(BjRamLoan) loan = g_new0 (BjRamLoan, 1);
  int fd = fcntl (self->fd, F_DUPFD_CLOEXEC, 10);

  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Lending a guest's memory");
      return NULL;
    }
  g_subprocess_launcher_take_fd (launcher, fd, LOAN_FD);
  if (geteuid () == 0)
    g_subprocess_launcher_set_child_setup (launcher, become, &uid, NULL);
  loan->holder = g_subprocess_launcher_spawnv (launcher, argv, error);
  if (loan->holder == NULL)
    return NULL;
  loan->path = g_strdup_printf ("/proc/%s/fd/%d", g_subprocess_get_identifier (loan->holder), LOAN_FD);
  return g_steal_pointer (&loan);
}

const char *
bj_ram_loan_get_path (BjRamLoan *loan)
{
  return loan->path;
}

void
bj_ram_loan_free (BjRamLoan *loan)
{
  if (loan->holder != NULL)
    {
      g_subprocess_force_exit (loan->holder);
      g_subprocess_wait (loan->holder, NULL, NULL);
      g_object_unref (loan->holder);
    }
  g_free (loan->path);
  g_free (loan);
}
