/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-fd.h"
#include "bj-project-folder.h"
#include "bj-sandbox.h"
#include "bj-spawn.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define UID 1900100003u /* an agent's */

/* The real sandbox around a real shell or python. */

static char *
run_inside (const BjSandbox *base, const char *program, const char *const *arguments, int fd, GError **error)
{
  BjSandbox sandbox = *base;
  g_auto(GStrv) argv = NULL;
  g_autoptr(GBytes) output = NULL;
  BjSpawn spawn = { .timeout_s = 60, .pass_fd = { fd > 0 ? fd : 0, fd > 0 ? fd : 0 } };

  sandbox.program = program;
  sandbox.arguments = arguments;
  argv = bj_sandbox_dup_argv (&sandbox);
  spawn.argv = (const char *const *) argv;
  if (!bj_spawn_run (&spawn, &output, NULL, error))
    return NULL;
  return g_bytes_get_size (output) > 0 ? g_strndup (g_bytes_get_data (output, NULL), g_bytes_get_size (output)) : g_strdup ("");
}

static char *
shell (const BjSandbox *sandbox, const char *script, int fd)
{
  const char *arguments[] = { "-c", script, NULL };
  g_autoptr(GError) error = NULL;
  char *output = run_inside (sandbox, "/usr/bin/sh", arguments, fd, &error);

  g_assert_no_error (error);
  return g_strchomp (output);
}

static void
test_identity (void)
{
  static const BjSandbox sandbox = { .uid = UID, .gid = UID };
  g_autofree char *id = shell (&sandbox, "echo $(id -u) $(id -g) $(id -G)", 0);
  g_autofree char *rights = shell (&sandbox, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status | cut -f2 | tr -d '0\\n'", 0);
  g_autofree char *expected = NULL;

  expected = geteuid () == 0 ? g_strdup_printf ("%u %u %u", UID, UID, UID) : g_strdup (id);
  g_assert_cmpstr (id, ==, expected);
  g_assert_cmpstr (rights, ==, "1"); /* all capability sets are zero */
}

static void
test_view (void)
{
  static const char *const words[] = { "BELLJAR_TEST=a b=c", NULL };
  static const char *const more[] = { "/etc/ssl", NULL };
  static const BjSandbox sandbox = { .uid = UID, .gid = UID, .environ = words, .read_only = more };
  g_autofree char *top = shell (&sandbox, "echo /*", 0);
  g_autofree char *etc = shell (&sandbox, "echo /etc/*", 0);
  g_autofree char *net = shell (&sandbox, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n'", 0);
  g_autofree char *variables = NULL;
  g_autofree char *written = shell (&sandbox, "for d in / /usr /etc /etc/ssl /proc/sys/kernel; do"
                                              " touch $d/x 2>/dev/null && echo $d; done; true", 0);
  g_autofree char *processes = shell (&sandbox, "ls /proc | grep -c '^[0-9]'", 0);

  g_setenv ("BELLJAR_SECRET", "token", TRUE);
  variables = shell (&sandbox, "env | grep -v -e PWD -e ^_= -e OLDPWD -e SHLVL", 0);
  g_assert_null (strstr (top, "home"));
  g_assert_null (strstr (top, "root"));
  g_assert_null (strstr (top, "var"));
  g_assert_cmpstr (etc, ==, "/etc/ssl");
  g_assert_cmpstr (net, ==, "lo");
  g_assert_cmpstr (variables, ==, "BELLJAR_TEST=a b=c");
  g_assert_true (g_str_equal (written, "") || geteuid () != 0);
  g_assert_cmpint (g_ascii_strtoll (processes, NULL, 10), <, 8);
}

static void
test_folder_is_the_end_of_the_world (void)
{
  static const BjSandbox sandbox = { .uid = UID, .gid = UID };
  g_autofree char *dir = g_dir_make_tmp ("bjsand-XXXXXX", NULL);
  g_autofree char *inner = g_build_filename (dir, "inner", NULL);
  g_autofree char *secret = g_build_filename (dir, "secret", NULL);
  g_auto(BjFd) folder = -1;
  g_auto(BjFd) door = -1;
  g_autofree char *seen = NULL;
  g_autoptr(GError) error = NULL;

  if (geteuid () != 0)
    {
      g_test_skip ("needs root");
      return;
    }
  g_assert_cmpint (chmod (dir, 0755), ==, 0);
  g_assert_cmpint (mkdir (inner, 0777), ==, 0);
  g_assert_true (g_file_set_contents (secret, "x", -1, NULL));
  folder = open (inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  door = bj_sandbox_open_folder (folder, FALSE, &error);
  g_assert_no_error (error);
  seen = shell (&sandbox, "cd -P /proc/self/fd/3 && cat ../secret; cd ..; ls; touch x; true", door);
  g_assert_cmpstr (seen, ==, "");
  g_clear_pointer (&seen, g_free);
  seen = shell (&sandbox, "cd -P /proc/self/fd/3 && cat ../secret", folder); /* the danger is real */
  g_assert_cmpstr (seen, ==, "x");
  g_assert_true (bj_project_folder_remove (AT_FDCWD, dir, NULL));
}

/* How the agent reaches its gateway: an O_PATH handle of a socket, from inside another network namespace. */
static void
test_socket_handle (void)
{
  static const BjSandbox sandbox = { .uid = UID, .gid = UID };
  static const char *const arguments[] = {
    "-c", "import socket\nfor i in 1, 2:\n s = socket.socket(socket.AF_UNIX); s.connect('/proc/self/fd/4'); s.close()\nprint('ok')", NULL };
  g_autofree char *dir = g_dir_make_tmp ("bjsand-XXXXXX", NULL);
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  g_auto(BjFd) listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_auto(BjFd) handle = -1;
  g_autofree char *output = NULL;
  g_autoptr(GError) error = NULL;
  BjSandbox other = { .uid = UID + 1, .gid = UID + 1 };

  g_snprintf (address.sun_path, sizeof address.sun_path, "%s/s", dir);
  g_assert_cmpint (bind (listener, (struct sockaddr *) &address, sizeof address), ==, 0);
  g_assert_cmpint (listen (listener, 5), ==, 0);
  g_assert_cmpint (chmod (address.sun_path, 0600), ==, 0);
  if (geteuid () == 0)
    g_assert_cmpint (chown (address.sun_path, UID, UID), ==, 0);
  handle = open (address.sun_path, O_PATH | O_CLOEXEC);
  output = run_inside (&sandbox, "/usr/bin/python3", arguments, handle, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (output, ==, "ok\n");
  if (geteuid () == 0)
    g_assert_null (run_inside (&other, "/usr/bin/python3", arguments, handle, NULL));
  g_assert_true (bj_project_folder_remove (AT_FDCWD, dir, NULL));
}

static void
test_root_for_ownership (void)
{
  static const BjSandbox sandbox = { .keep_root_for_chown = TRUE };
  g_autofree char *rights = NULL;

  if (geteuid () != 0)
    {
      g_test_skip ("needs root");
      return;
    }
  rights = shell (&sandbox, "id -u; ls -d /proc /dev 2>/dev/null; chown 5:5 /tmp && ls -ldn /tmp | cut -d' ' -f3; "
                            "unshare -m true 2>/dev/null || echo no-mount", 0);
  g_assert_cmpstr (rights, ==, "0\n5\nno-mount");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sandbox/identity", test_identity);
  g_test_add_func ("/sandbox/view", test_view);
  g_test_add_func ("/sandbox/folder", test_folder_is_the_end_of_the_world);
  g_test_add_func ("/sandbox/socket-handle", test_socket_handle);
  g_test_add_func ("/sandbox/root-for-ownership", test_root_for_ownership);
  return g_test_run ();
}
