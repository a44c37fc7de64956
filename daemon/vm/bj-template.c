/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-template.h"

#include "bj-digest.h"
#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define GROUP "template"
#define STATE_MAX (64u << 20)

struct _BjTemplate
{
  gatomicrefcount ref_count;
  char *key;
  char *disk;
  char *kernel; /* (nullable) */
  struct stat disk_facts;
  BjRam *ram; /* (owned) */
  int state;  /* sealed memfd */
};

static gboolean
make_durable (const char *path, mode_t mode, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

  if (fd < 0 || fchmod (fd, mode) < 0 || (geteuid () == 0 && fchown (fd, 0, 0) < 0) || fsync (fd) < 0)
    return bj_fd_set_io_error (error, errno, "Finishing %s", path);
  return TRUE;
}

gboolean
bj_template_write_description (const char *dir, const BjTemplateFacts *facts, GCancellable *cancellable, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *disk = g_build_filename (dir, "disk.qcow2", NULL);
  g_autofree char *state = g_build_filename (dir, "state", NULL);
  g_autofree char *path = g_build_filename (dir, "template.ini", NULL);
  g_autofree char *disk_digest = NULL;
  g_autofree char *state_digest = NULL;

  /* Machines open the disk with uids of their own. */
  if (!make_durable (disk, 0444, error) || !make_durable (state, 0400, error))
    return FALSE;
  disk_digest = bj_digest_file (disk, NULL, NULL, cancellable, error);
  if (disk_digest == NULL)
    return FALSE;
  state_digest = bj_digest_file (state, NULL, NULL, cancellable, error);
  if (state_digest == NULL)
    return FALSE;
  g_key_file_set_string (file, GROUP, "key", facts->key);
  g_key_file_set_string (file, GROUP, "image", facts->image_digest);
  g_key_file_set_integer (file, GROUP, "memory-mib", (int) facts->memory_mib);
  g_key_file_set_integer (file, GROUP, "cpus", (int) facts->cpus);
  g_key_file_set_string (file, GROUP, "disk", disk_digest);
  g_key_file_set_string (file, GROUP, "state", state_digest);
  g_key_file_set_string (file, GROUP, "ram", facts->ram_digest);
  return g_key_file_save_to_file (file, path, error);
}

static GKeyFile *
read_facts (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "template.ini", NULL);
  g_autoptr(GKeyFile) file = g_key_file_new ();

  return g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, NULL) ? g_steal_pointer (&file) : NULL;
}

gboolean
bj_template_is_obsolete (const char *dir, const BjTemplateFacts *facts)
{
  g_autoptr(GKeyFile) file = read_facts (dir);
  g_autofree char *key = file != NULL ? g_key_file_get_string (file, GROUP, "key", NULL) : NULL;
  g_autofree char *image = file != NULL ? g_key_file_get_string (file, GROUP, "image", NULL) : NULL;

  if (key == NULL || image == NULL)
    return TRUE;
  return !g_str_equal (key, facts->key) && g_str_equal (image, facts->image_digest)
         && g_key_file_get_integer (file, GROUP, "memory-mib", NULL) == (int) facts->memory_mib
         && g_key_file_get_integer (file, GROUP, "cpus", NULL) == (int) facts->cpus;
}

gboolean
bj_template_is_of (const char *dir, const char *const *image_digests)
{
  g_autoptr(GKeyFile) file = read_facts (dir);
  g_autofree char *image = file != NULL ? g_key_file_get_string (file, GROUP, "image", NULL) : NULL;

  return image != NULL && g_strv_contains (image_digests, image);
}

static gboolean
check_digest (const char *path, GKeyFile *file, const char *name, GCancellable *cancellable, GError **error)
{
  g_autofree char *expected = g_key_file_get_string (file, GROUP, name, error);
  g_autofree char *found = expected != NULL ? bj_digest_file (path, NULL, NULL, cancellable, error) : NULL;

  if (found == NULL)
    return FALSE;
  return g_str_equal (found, expected)
         || bj_error_set (error, BJ_ERROR_INVALID, "%s is damaged: its content is not what it was", path);
}

static GKeyFile *
read_description (const char *dir, const char *key, GError **error)
{
  g_autofree char *path = g_build_filename (dir, "template.ini", NULL);
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autofree char *found = NULL;

  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    {
      bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no template in %s", dir);
      return NULL;
    }
  if (!g_key_file_load_from_file (file, path, G_KEY_FILE_NONE, error))
    return NULL;
  found = g_key_file_get_string (file, GROUP, "key", NULL);
  if (g_strcmp0 (found, key) != 0)
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s is of another template", path);
      return NULL;
    }
  return g_steal_pointer (&file);
}

static gboolean
keep_state (BjTemplate *self, const char *path, GError **error)
{
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  g_autoptr(GBytes) bytes = NULL;

  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Opening %s", path);
  bytes = bj_fd_read_to_end (fd, STATE_MAX, error);
  if (bytes == NULL)
    return FALSE;
  self->state = bj_fd_seal_bytes ("belljar-state", bytes, error);
  return self->state >= 0;
}

static gboolean
load_ram (BjTemplate *self, const char *dir, GKeyFile *file, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = g_build_filename (dir, "ram", NULL);
  g_autofree char *digest = g_key_file_get_string (file, GROUP, "ram", error);
  int mib = digest != NULL ? g_key_file_get_integer (file, GROUP, "memory-mib", error) : 0;

  if (digest == NULL)
    return FALSE;
  if (mib < 1)
    return bj_error_set (error, BJ_ERROR_INVALID, "The template in %s has no memory-mib", dir);
  self->ram = bj_ram_load (path, (guint) mib, digest, cancellable, error);
  return self->ram != NULL;
}

BjTemplate *
bj_template_load (const char *dir, const char *key, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjTemplate) self = g_new0 (BjTemplate, 1);
  g_autofree char *state = g_build_filename (dir, "state", NULL);
  g_autoptr(GKeyFile) file = NULL;

  g_atomic_ref_count_init (&self->ref_count);
  self->state = -1;
  self->key = g_strdup (key);
  self->disk = g_build_filename (dir, "disk.qcow2", NULL);
  self->kernel = g_build_filename (dir, "kernel", NULL);
  if (!g_file_test (self->kernel, G_FILE_TEST_EXISTS))
    g_clear_pointer (&self->kernel, g_free);
  file = read_description (dir, key, error);
  if (file == NULL)
    return NULL;
  if (stat (self->disk, &self->disk_facts) < 0)
    {
      bj_fd_set_io_error (error, errno, "Looking at %s", self->disk);
      return NULL;
    }
  if (!check_digest (self->disk, file, "disk", cancellable, error)
      || !check_digest (state, file, "state", cancellable, error) || !keep_state (self, state, error)
      || !load_ram (self, dir, file, cancellable, error))
    return NULL;
  return g_steal_pointer (&self);
}

BjTemplate *
bj_template_ref (BjTemplate *self)
{
  g_atomic_ref_count_inc (&self->ref_count);
  return self;
}

void
bj_template_unref (BjTemplate *self)
{
  if (!g_atomic_ref_count_dec (&self->ref_count))
    return;
  g_clear_pointer (&self->ram, bj_ram_unref);
  bj_fd_clear (&self->state);
  g_free (self->key);
  g_free (self->disk);
  g_free (self->kernel);
  g_free (self);
}

const char *
bj_template_get_key (BjTemplate *self)
{
  return self->key;
}

const char *
bj_template_get_disk (BjTemplate *self)
{
  return self->disk;
}

const char *
bj_template_get_kernel (BjTemplate *self)
{
  return self->kernel;
}

BjRam *
bj_template_get_ram (BjTemplate *self)
{
  return self->ram;
}

/* Opened anew: duplicates of one fd would share their place in the file, and clones start at the same time. */
int
bj_template_open_state (BjTemplate *self, GError **error)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/fd/%d", self->state);
  int fd = open (path, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    bj_fd_set_io_error (error, errno, "Opening the state of a template");
  return fd;
}

gboolean
bj_template_is_unchanged (BjTemplate *self, GError **error)
{
  const struct stat *then = &self->disk_facts;
  struct stat now;

  if (stat (self->disk, &now) < 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "The template's disk %s is gone", self->disk);
  if (now.st_size != then->st_size || now.st_ino != then->st_ino || now.st_mtim.tv_sec != then->st_mtim.tv_sec
      || now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
    return bj_error_set (error, BJ_ERROR_INVALID, "The template's disk %s was changed", self->disk);
  return TRUE;
}
