/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-sandbox.h"

#include "bj-fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>

static void
add (GPtrArray *argv, ...)
{
  va_list args;
  const char *word;

  va_start (args, argv);
  while ((word = va_arg (args, const char *)) != NULL)
    g_ptr_array_add (argv, g_strdup (word));
  va_end (args);
}

/*
 * Root makes the mounts itself and gives up its ids inside: that works without user namespaces and with a program below
 * a folder that only root can enter. Anybody else needs a user namespace, and then no second one.
 */
static void
add_namespaces (GPtrArray *argv, const BjSandbox *sandbox, gboolean root)
{
  add (argv, "bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
       "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", NULL);
  if (!root)
    add (argv, "--unshare-user", "--disable-userns", NULL);
  else if (sandbox->keep_root_for_chown)
    add (argv, "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_DAC_READ_SEARCH", "--cap-add",
         "CAP_FOWNER", NULL);
  else
    add (argv, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP", NULL);
}

/* /lib and its kin are links into /usr on a merged system and folders elsewhere. */
static void
add_system (GPtrArray *argv)
{
  static const char *const names[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64" };

  add (argv, "--ro-bind", "/usr", "/usr", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *target = g_file_read_link (names[i], NULL);

      if (target != NULL)
        add (argv, "--symlink", target, names[i], NULL);
      else
        add (argv, "--ro-bind-try", names[i], names[i], NULL);
    }
}

/* Bubblewrap makes missing folders above a mount for itself only: the program's uid has to pass through them. */
static void
add_visible (GPtrArray *argv, const char *path)
{
  for (const char *slash = strchr (path + 1, '/'); slash != NULL; slash = strchr (slash + 1, '/'))
    {
      g_autofree char *above = g_strndup (path, (gsize) (slash - path));

      add (argv, "--perms", "0755", "--dir", above, NULL);
    }
  add (argv, "--ro-bind", path, path, NULL);
}

static void
add_environment (GPtrArray *argv, const char *const *environment)
{
  for (guint i = 0; environment != NULL && environment[i] != NULL; i++)
    {
      const char *equals = strchr (environment[i], '=');
      g_autofree char *name = equals != NULL ? g_strndup (environment[i], (gsize) (equals - environment[i])) : NULL;

      if (name != NULL)
        add (argv, "--setenv", name, equals + 1, NULL);
    }
}

static void
add_identity (GPtrArray *argv, const BjSandbox *sandbox)
{
  g_autofree char *uid = g_strdup_printf ("--reuid=%u", sandbox->uid);
  g_autofree char *gid = g_strdup_printf ("--regid=%u", sandbox->gid);

  add (argv, "setpriv", uid, gid, "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--", NULL);
}

GStrv
bj_sandbox_dup_argv (const BjSandbox *sandbox)
{
  GPtrArray *argv = g_ptr_array_new ();
  gboolean root = geteuid () == 0;
  g_autofree char *folder = g_path_get_dirname (sandbox->program);

  add_namespaces (argv, sandbox, root);
  add_system (argv);
  add (argv, "--tmpfs", "/tmp", NULL);
  /* Root with capabilities gets no /proc: there are switches of the whole machine in it. */
  if (!root || !sandbox->keep_root_for_chown)
    add (argv, "--dev", "/dev", "--proc", "/proc", NULL);
  if (!g_str_has_prefix (sandbox->program, "/usr/"))
    add_visible (argv, folder);
  for (guint i = 0; sandbox->read_only != NULL && sandbox->read_only[i] != NULL; i++)
    add_visible (argv, sandbox->read_only[i]);
  add_environment (argv, sandbox->environ);
  add (argv, "--chdir", "/", "--", NULL);
  if (root && !sandbox->keep_root_for_chown)
    add_identity (argv, sandbox);
  add (argv, sandbox->program, NULL);
  for (guint i = 0; sandbox->arguments != NULL && sandbox->arguments[i] != NULL; i++)
    add (argv, sandbox->arguments[i], NULL);
  g_ptr_array_add (argv, NULL);
  return (GStrv) g_ptr_array_free (argv, FALSE);
}

int
bj_sandbox_open_folder (int folder, gboolean writable, GError **error)
{
  struct mount_attr attributes = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
  g_auto(BjFd) fd = -1;

  if (geteuid () != 0)
    fd = fcntl (folder, F_DUPFD_CLOEXEC, 10);
  else
    fd = open_tree (folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!writable)
    attributes.attr_set |= MOUNT_ATTR_RDONLY;
  if (fd < 0 || (geteuid () == 0 && mount_setattr (fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0))
    {
      bj_fd_set_io_error (error, errno, "Preparing a folder for a sandbox");
      return -1;
    }
  return g_steal_fd (&fd);
}
