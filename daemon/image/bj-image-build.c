/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-image-build.h"

#include "bj-apt-sources.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-image-smoke.h"
#include "bj-initrd.h"
#include "bj-remove.h"
#include "bj-spawn.h"
#include "bj-vmlinuz.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define BOOTSTRAP_TIMEOUT (45 * 60)
#define STEP_TIMEOUT (15 * 60)

/* How many lines mmdebstrap and its dpkg print, about: only for progress. */
#define BOOTSTRAP_LINES 1850

/* What a step needs while the build lasts. */
typedef struct
{
  const BjImageBuild *build;
  BjProgress *progress;
  GCancellable *cancellable;
  BjFd log;
  char *root;    /* (owned): the tree */
  char *raw;     /* (owned): the disk before it is packed */
  GStrv environ; /* (owned): of every program */
  char *release; /* (owned): the kernel's, once it is known */
  guint lines;
} BjBuilding;

static gboolean
needs_programs (const BjRecipe *recipe, GError **error)
{
  static const struct { const char *program, *package; } needed[] = {
    { "mmdebstrap", "mmdebstrap" }, { "unshare", "util-linux" }, { "mke2fs", "e2fsprogs" },
    { "qemu-img", "qemu-utils" },   { "modprobe", "kmod" },      { "xz", "xz-utils" },
  };

  for (guint i = recipe->script != NULL ? 1 : 0; i < G_N_ELEMENTS (needed); i++)
    {
      g_autofree char *path = g_find_program_in_path (needed[i].program);

      if (path == NULL)
        return bj_error_set (error, BJ_ERROR_FAILED, "Building an image needs the program %s: apt install %s",
                             needed[i].program, needed[i].package);
    }
  if (geteuid () != 0)
    return bj_error_set (error, BJ_ERROR_DENIED, "Building an image needs a daemon that runs as root, because the "
                         "files in it belong to several users");
  return TRUE;
}

gboolean
bj_image_build_check_space (const BjRecipe *recipe, const char *dir, GError **error)
{
  const guint64 needed = (guint64) recipe->space_mib * 1024 * 1024;
  struct statvfs fs;
  guint64 available;

  if (statvfs (dir, &fs) < 0)
    return bj_fd_set_io_error (error, errno, "Looking for free space in %s", dir);
  available = (guint64) fs.f_bavail * fs.f_frsize;
  if (available >= needed)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_NO_SPACE, "Building %s needs %u MiB of free space in %s, and %" G_GUINT64_FORMAT
                       " MiB are free", recipe->name, recipe->space_mib, dir, available / (1024 * 1024));
}

static void
log_line (BjBuilding *self, const char *line)
{
  g_autofree char *text = g_strdup_printf ("%s\n", line);

  (void) bj_fd_write_all (self->log, text, strlen (text), NULL);
}

static void
take_line (const char *line, gpointer user_data)
{
  BjBuilding *self = user_data;

  log_line (self, line);
  self->lines++;
  bj_progress_set (self->progress, MIN (0.98, (double) self->lines / BOOTSTRAP_LINES));
}

static gboolean
run (BjBuilding *self, const char *const *argv, guint timeout_s, GBytes *input, GError **error)
{
  BjSpawn spawn = { .argv = argv, .environ = (const char *const *) self->environ, .input = input,
                    .timeout_s = timeout_s, .max_output = 16 * 1024 * 1024, .on_line = take_line, .user_data = self };

  log_line (self, argv[0]);
  self->lines = 0;
  return bj_spawn_run (&spawn, NULL, self->cancellable, error);
}

/*
 * Programs that mount, chroot or leave children run in namespaces of their own: when the first process in there dies,
 * the kernel ends all others and takes their mounts away, whatever they did.
 */
static gboolean
run_contained (BjBuilding *self, const char *const *argv, guint timeout_s, GBytes *input, GError **error)
{
  static const char *const contain[] = { "unshare",      "--mount",      "--pid", "--fork",
                                         "--kill-child", "--mount-proc", "--" };
  g_autoptr(GPtrArray) all = g_ptr_array_new ();

  for (guint i = 0; i < G_N_ELEMENTS (contain); i++)
    g_ptr_array_add (all, (gpointer) contain[i]);
  for (guint i = 0; argv[i] != NULL; i++)
    g_ptr_array_add (all, (gpointer) argv[i]);
  g_ptr_array_add (all, NULL);
  return run (self, (const char *const *) all->pdata, timeout_s, input, error);
}

static gboolean
write_apt_options (const char *path, GError **error)
{
  const char *argv[] = { "apt-config", "dump", NULL };
  BjSpawn spawn = { .argv = argv, .timeout_s = 30 };
  g_autoptr(GBytes) output = NULL;
  g_autofree char *program = g_find_program_in_path (argv[0]);
  g_autofree char *text = NULL, *kept = NULL, *all = NULL;

  if (program != NULL && !bj_spawn_run (&spawn, &output, NULL, error))
    return FALSE;
  text = output ? g_strndup (g_bytes_get_data (output, NULL), g_bytes_get_size (output)) : g_strdup ("");
  kept = bj_apt_options_filter (text);
  all = g_strdup_printf ("Apt::Install-Recommends \"false\";\n%s", kept);
  /* A proxy's address may hold a password: a file that only root reads, never an argument. */
  return g_file_set_contents_full (path, all, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, error);
}

static GStrv
choose_sources (const BjImageBuild *build, GError **error)
{
  const BjRecipe *recipe = build->recipe;
  g_auto(GStrv) lines = NULL;

  if (build->mirror != NULL)
    return bj_apt_sources_for_mirror (build->mirror, recipe->suite, recipe->components, error);
  lines = bj_apt_sources_read (build->apt_dir, recipe->suite, recipe->components);
  return lines[0] != NULL ? g_steal_pointer (&lines) : g_strdupv (recipe->sources);
}

static GPtrArray *
make_bootstrap_command (BjBuilding *self, const char *options)
{
  const BjRecipe *recipe = self->build->recipe;
  g_autofree char *packages = g_strjoinv (",", recipe->packages);
  GPtrArray *argv = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (argv, g_strdup ("mmdebstrap"));
  g_ptr_array_add (argv, g_strdup ("--mode=root"));
  g_ptr_array_add (argv, g_strdup ("--verbose"));
  g_ptr_array_add (argv, g_strdup ("--format=directory"));
  g_ptr_array_add (argv, g_strdup_printf ("--variant=%s", recipe->variant));
  g_ptr_array_add (argv, g_strdup_printf ("--include=%s,%s", packages, recipe->kernel_package));
  g_ptr_array_add (argv, g_strdup_printf ("--aptopt=%s", options));
  g_ptr_array_add (argv, g_strdup ("--dpkgopt=force-unsafe-io"));
  for (guint i = 0; recipe->exclude[i] != NULL; i++)
    g_ptr_array_add (argv, g_strdup_printf ("--dpkgopt=path-exclude=%s", recipe->exclude[i]));
  for (guint i = 0; recipe->include[i] != NULL; i++)
    g_ptr_array_add (argv, g_strdup_printf ("--dpkgopt=path-include=%s", recipe->include[i]));
  g_ptr_array_add (argv, g_strdup (recipe->suite));
  g_ptr_array_add (argv, g_strdup (self->root));
  g_ptr_array_add (argv, g_strdup ("-"));
  g_ptr_array_add (argv, NULL);
  return argv;
}

static gboolean
bootstrap_with_mmdebstrap (BjBuilding *self, GError **error)
{
  g_autofree char *options = g_build_filename (self->build->dir, "apt.conf", NULL);
  g_auto(GStrv) sources = choose_sources (self->build, error);
  g_autoptr(GPtrArray) argv = NULL;
  g_autofree char *joined = NULL;
  g_autofree char *text = NULL;
  g_autoptr(GBytes) input = NULL;
  gboolean ok = FALSE;

  if (sources == NULL || !write_apt_options (options, error))
    return FALSE;
  joined = g_strjoinv ("\n", sources);
  text = g_strdup_printf ("%s\n", joined);
  input = g_bytes_new_static (text, strlen (text));
  argv = make_bootstrap_command (self, options);
  ok = run_contained (self, (const char *const *) argv->pdata, BOOTSTRAP_TIMEOUT, input, error);
  g_unlink (options);
  return ok;
}

static gboolean
run_recipe_script (BjBuilding *self, const char *dir, const char *name, guint timeout_s, GError **error)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  const char *argv[] = { "/bin/sh", path, NULL };

  self->environ = g_environ_setenv (self->environ, "BELLJAR_RECIPE_DIR", dir, TRUE);
  return run_contained (self, argv, timeout_s, NULL, error);
}

static gboolean
bootstrap (BjBuilding *self, GError **error)
{
  const BjRecipe *recipe = self->build->recipe;
  const char *script = recipe->script;

  if (script != NULL && g_mkdir (self->root, 0755) < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", self->root);
  if (script != NULL ? run_recipe_script (self, recipe->dir, script, BOOTSTRAP_TIMEOUT, error)
                     : bootstrap_with_mmdebstrap (self, error))
    return TRUE;
  g_prefix_error (error, "Making the tree of %s: ", recipe->name);
  return FALSE;
}

static gboolean
find_kernel (BjBuilding *self, GError **error)
{
  g_autofree char *boot = g_build_filename (self->root, "boot", NULL);
  g_autoptr(GDir) dir = g_dir_open (boot, 0, error);
  const char *name;

  if (dir == NULL)
    return FALSE;
  while ((name = g_dir_read_name (dir)) != NULL)
    if (g_str_has_prefix (name, "vmlinuz-"))
      {
        if (self->release != NULL)
          return bj_error_set (error, BJ_ERROR_FAILED, "The new tree has more than one kernel in /boot");
        self->release = g_strdup (name + strlen ("vmlinuz-"));
      }
  return self->release != NULL || bj_error_set (error, BJ_ERROR_FAILED, "The new tree has no kernel in /boot");
}

/* Files made while building are dated like the kernel package: two builds of the same packages differ less. */
static void
set_source_date (BjBuilding *self, const char *kernel)
{
  g_autofree char *date = NULL;
  struct stat st;

  if (g_environ_getenv (self->environ, "SOURCE_DATE_EPOCH") != NULL || stat (kernel, &st) < 0)
    return;
  date = g_strdup_printf ("%" G_GINT64_FORMAT, (gint64) st.st_mtime);
  self->environ = g_environ_setenv (self->environ, "SOURCE_DATE_EPOCH", date, TRUE);
  self->environ = g_environ_setenv (self->environ, "E2FSPROGS_FAKE_TIME", date, TRUE);
}

/* A kernel that has to unpack itself is fine too: it only starts later. */
static gboolean
write_kernel (BjBuilding *self, const char *from, const char *to, GError **error)
{
  g_autoptr(GError) local = NULL;
  g_autoptr(GBytes) packed = NULL;
  g_autoptr(GBytes) kernel = NULL;
  char *data = NULL;
  gsize length;

  if (!g_file_get_contents (from, &data, &length, error))
    return FALSE;
  packed = g_bytes_new_take (data, length);
  kernel = bj_vmlinuz_unpack (packed, g_random_int (), self->cancellable, &local);
  if (kernel == NULL)
    log_line (self, local->message);
  if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
    return FALSE;
  data = (char *) g_bytes_get_data (kernel ? kernel : packed, &length);
  return g_file_set_contents (to, data, (gssize) length, error);
}

static gboolean
take_kernel (BjBuilding *self, GError **error)
{
  const BjImageBuild *build = self->build;
  g_autofree char *to = g_build_filename (build->dir, "vmlinuz", NULL);
  g_autofree char *initrd = g_build_filename (build->dir, "initrd", NULL);
  g_autofree char *init = g_build_filename (build->guest_dir, "belljar-guest-init", NULL);
  g_autofree char *from = NULL;

  if (!find_kernel (self, error))
    return FALSE;
  from = g_strconcat (self->root, "/boot/vmlinuz-", self->release, NULL);
  set_source_date (self, from);
  return write_kernel (self, from, to, error)
         && bj_initrd_write (initrd, self->root, self->release, (const char *const *) build->recipe->modules, init,
                             self->cancellable, error);
}

static gboolean
customize (BjBuilding *self, GError **error)
{
  const BjImageBuild *build = self->build;
  const BjRecipe *recipe = build->recipe;

  log_line (self, "customize");
  if ((recipe->base_dir == NULL
       || run_recipe_script (self, recipe->base_dir, recipe->base_customize, STEP_TIMEOUT, error))
      && run_recipe_script (self, recipe->dir, recipe->customize, STEP_TIMEOUT, error))
    return TRUE;
  g_prefix_error (error, "Making a guest of the tree of %s: ", recipe->name);
  return FALSE;
}

/* A file system has an id of its own; derived, so that a build can be repeated. */
static char *
make_uuid (const BjImageBuild *build)
{
  g_autofree char *text = g_strdup_printf ("belljar %s %u", build->recipe->name, build->version);
  g_autofree char *hex = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);

  return g_strdup_printf ("%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17, hex + 20);
}

static gboolean
make_raw_disk (BjBuilding *self, GError **error)
{
  const guint64 size = (guint64) self->build->recipe->disk_mib * 1024 * 1024;
  g_autofree char *uuid = make_uuid (self->build);
  g_autofree char *seed = g_strdup_printf ("hash_seed=%s,lazy_itable_init=1", uuid);
  const char *argv[] = { "mke2fs", "-q", "-F", "-t", "ext4", "-d", self->root, "-L", "root", "-U", uuid, "-E", seed,
                         "-O", "^has_journal", "-m", "0", self->raw, NULL };
  g_auto(BjFd) fd = open (self->raw, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

  if (fd < 0 || ftruncate (fd, (off_t) size) < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", self->raw);
  return run (self, argv, STEP_TIMEOUT, NULL, error);
}

static gboolean
make_disk (BjBuilding *self, GError **error)
{
  g_autofree char *disk = g_build_filename (self->build->dir, "disk.qcow2", NULL);
  const char *argv[] = { "qemu-img", "convert", "-f", "raw", "-O", "qcow2", self->raw, disk, NULL };

  if (!make_raw_disk (self, error))
    return FALSE;
  bj_progress_set (self->progress, 0.4);
  if (!bj_remove_tree (self->root, error) || !run (self, argv, STEP_TIMEOUT, NULL, error))
    return FALSE;
  if (g_unlink (self->raw) < 0)
    return bj_fd_set_io_error (error, errno, "Removing %s", self->raw);
  return TRUE;
}

/* The smoke test's machine reads these files with a uid of its own; the tree with its setuid files is gone by now. */
static gboolean
open_to_machine (BjBuilding *self, GError **error)
{
  static const char *const names[] = { "disk.qcow2", "vmlinuz", "initrd" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_build_filename (self->build->dir, names[i], NULL);

      if (g_chmod (path, 0644) < 0)
        return bj_fd_set_io_error (error, errno, "Opening %s", path);
    }
  if (g_chmod (self->build->dir, 0755) < 0)
    return bj_fd_set_io_error (error, errno, "Opening %s", self->build->dir);
  return TRUE;
}

static gboolean
smoke (BjBuilding *self, GError **error)
{
  log_line (self, "smoke test");
  return open_to_machine (self, error) && bj_image_smoke_run (self->build, self->log, self->cancellable, error);
}

static const struct
{
  const char *phase;
  guint weight;
  gboolean (*run) (BjBuilding *self, GError **error);
} steps[] = {
  { "bootstrap", 70, bootstrap }, { "kernel", 1, take_kernel }, { "customize", 3, customize },
  { "disk", 8, make_disk },       { "smoke", 18, smoke },
};

static GStrv
make_environ (const BjImageBuild *build, const char *root)
{
  static const char *const inherited[] = { "PATH", "http_proxy", "https_proxy", "no_proxy", "SOURCE_DATE_EPOCH" };
  const BjRecipe *recipe = build->recipe;
  g_autofree char *version = g_strdup_printf ("%u", build->version);
  g_autofree char *api = g_strdup_printf ("%u", recipe->api);
  g_autofree char *mask = g_strjoinv (" ", recipe->mask);
  g_autofree char *idle = g_strjoinv (" ", recipe->idle);
  const char *const ours[][2] = {
    { "LC_ALL", "C.UTF-8" }, { "HOME", "/root" }, { "TMPDIR", build->dir }, { "DEBIAN_FRONTEND", "noninteractive" },
    /* The kernel package makes no initramfs: the machine has a small one of its own. */
    { "INITRD", "No" },
    { "BELLJAR_ROOT", root }, { "BELLJAR_GUEST_DIR", build->guest_dir },
    { "BELLJAR_NAME", recipe->name }, { "BELLJAR_VERSION", version }, { "BELLJAR_API", api },
    { "BELLJAR_MASK", mask }, { "BELLJAR_IDLE", idle },
  };
  GStrv all = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (inherited); i++)
    if (g_getenv (inherited[i]) != NULL)
      all = g_environ_setenv (all, inherited[i], g_getenv (inherited[i]), TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (ours); i++)
    all = g_environ_setenv (all, ours[i][0], ours[i][1], TRUE);
  return all;
}

static gboolean
run_steps (BjBuilding *self, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++)
    bj_progress_add_step (self->progress, steps[i].phase, steps[i].weight);
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++)
    {
      gint64 start = g_get_monotonic_time ();
      g_autofree char *line = NULL;

      if (!steps[i].run (self, error))
        return FALSE;
      line = g_strdup_printf ("%s took %.1f s", steps[i].phase,
                              (double) (g_get_monotonic_time () - start) / G_USEC_PER_SEC);
      log_line (self, line);
      bj_progress_step_done (self->progress);
    }
  return TRUE;
}

gboolean
bj_image_build_run (const BjImageBuild *build, BjProgress *progress, GCancellable *cancellable, GError **error)
{
  BjBuilding self = { .build = build, .progress = progress, .cancellable = cancellable, .log = -1 };
  g_autofree char *path = g_build_filename (build->dir, "build.log", NULL);
  gboolean ok = FALSE;

  if (!needs_programs (build->recipe, error) || !bj_image_build_check_space (build->recipe, build->dir, error))
    return FALSE;
  self.log = open (path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (self.log < 0)
    return bj_fd_set_io_error (error, errno, "Making %s", path);
  self.root = g_build_filename (build->dir, "root", NULL);
  self.raw = g_build_filename (build->dir, "disk.raw", NULL);
  self.environ = make_environ (build, self.root);
  ok = run_steps (&self, error);
  bj_fd_clear (&self.log);
  g_free (self.root);
  g_free (self.raw);
  g_free (self.release);
  g_strfreev (self.environ);
  return ok;
}
