/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "vm-fixture.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER 12345u

/* The project's folder of a person with uid OWNER, nobody else may enter. */
static char *
make_folder (VmFixture *vm, int *fd)
{
  char *path = g_build_filename (vm->dir, "work-XXXXXX", NULL);
  g_autofree char *file = NULL;

  g_assert_nonnull (g_mkdtemp (path));
  file = g_build_filename (path, "theirs", NULL);
  g_assert_true (g_file_set_contents (file, "by the owner\n", -1, NULL));
  g_assert_cmpint (chown (file, OWNER, OWNER), ==, 0);
  g_assert_cmpint (g_chmod (file, 0600), ==, 0);
  g_assert_cmpint (chown (path, OWNER, OWNER), ==, 0);
  *fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_assert_cmpint (*fd, >=, 0);
  return path;
}

static void
assert_owner (int dir, const char *name, guint uid)
{
  struct stat info;

  g_assert_cmpint (fstatat (dir, name, &info, AT_SYMLINK_NOFOLLOW), ==, 0);
  g_test_message ("%s belongs to %u:%u, mode %o", name, info.st_uid, info.st_gid, info.st_mode);
  g_assert_cmpuint (info.st_uid, ==, uid);
  g_assert_cmpuint (info.st_gid, ==, uid);
}

static void
test_owners (VmFixture *vm, int dir)
{
  guint other = BJ_SHARE_UID_BASE + 7 * 65536 + 1000;
  g_autofree char *text = vm_sh_ok (vm->guest, "cat /work/p/theirs; echo root >/work/p/by-root; id -u");
  g_autofree char *seen = NULL;
  g_autofree char *made = NULL;
  g_auto(BjExecResult) node = { 0 };

  g_assert_cmpstr (text, ==, "by the owner\n0");
  assert_owner (dir, "by-root", OWNER);
  seen = vm_sh_ok (vm->guest, "stat -c %u /work/p/theirs; chmod 777 /work/p; cd /work/p; "
                              "runuser -u check -- sh -c 'echo x >by-check; mkdir d; echo y >d/f; cat by-check'");
  g_assert_cmpstr (seen, ==, "0\nx");
  assert_owner (dir, "by-check", other);
  assert_owner (dir, "d", other);
  made = vm_sh_ok (vm->guest, "chown check /work/p/by-root; echo more >>/work/p/d/f; rm /work/p/by-check; "
                              "ln -s /etc/shadow /work/p/link; ls /work/p | tr '\\n' ' '");
  g_assert_cmpstr (made, ==, "by-root d link theirs");
  {
    struct stat info;

    g_assert_cmpint (fstatat (dir, "by-root", &info, 0), ==, 0);
    g_assert_cmpuint (info.st_uid, ==, other);
  }
  vm_sh (vm->guest, "mknod /work/p/null c 1 3", &node);
  g_assert_cmpint (node.exit, !=, 0);
}

/* The folder may be swapped for a link under its name: what counts is the fd. */
static void
test_swapped (VmFixture *vm, const char *path)
{
  g_autofree char *aside = g_strconcat (path, ".aside", NULL);
  g_autofree char *text = NULL;

  g_assert_cmpint (g_rename (path, aside), ==, 0);
  g_assert_cmpint (symlink ("/etc", path), ==, 0);
  text = vm_sh_ok (vm->guest, "cat /work/p/theirs; ls /work/p/passwd 2>/dev/null || echo none");
  g_assert_cmpstr (text, ==, "by the owner\nnone");
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_rename (aside, path), ==, 0);
}

static gboolean
server_runs (VmFixture *vm)
{
  g_autofree char *pid = g_build_filename (vm->dir, "one", "virtiofsd.sock.pid", NULL);

  return g_file_test (pid, G_FILE_TEST_EXISTS);
}

static void
test_share (void)
{
  VmFixture *vm = vm_get_image () ? vm_get () : NULL;
  g_autoptr(GError) error = NULL;
  g_autofree char *path = NULL;
  g_autofree char *text = NULL;
  double start;
  int fd;

  if (vm == NULL)
    return;
  path = make_folder (vm, &fd);
  start = vm_now ();
  bj_machine_attach_share (vm->machine, fd, OWNER, OWNER, NULL, &error);
  g_assert_no_error (error);
  bj_machine_mount_share (vm->machine, "/work/p", NULL, &error);
  g_assert_no_error (error);
  vm_report ("attach share and mount", vm_now () - start);
  test_owners (vm, fd);
  test_swapped (vm, path);

  g_assert_true (server_runs (vm));
  start = vm_now ();
  bj_machine_detach_share (vm->machine, &error);
  g_assert_no_error (error);
  vm_report ("detach share, running", vm_now () - start);
  g_assert_false (server_runs (vm));
  text = vm_sh_ok (vm->guest, "timeout 10 cat /work/p/theirs 2>/dev/null || echo gone");
  g_assert_cmpstr (text, ==, "gone");

  start = vm_now ();
  bj_machine_attach_share (vm->machine, fd, OWNER, OWNER, NULL, &error);
  g_assert_no_error (error);
  bj_machine_mount_share (vm->machine, "/work/q", NULL, &error);
  g_assert_no_error (error);
  bj_machine_pause (vm->machine, &error);
  g_assert_no_error (error);
  start = vm_now ();
  bj_machine_detach_share (vm->machine, &error);
  g_assert_no_error (error);
  vm_report ("detach share, paused", vm_now () - start);
  g_assert_false (server_runs (vm));
  bj_machine_resume (vm->machine, &error);
  g_assert_no_error (error);
  g_free (vm_sh_ok (vm->guest, "true"));
  close (fd);
}

void
vm_add_share_tests (void)
{
  g_test_add_func ("/vm/share", test_share);
}
