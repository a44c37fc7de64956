/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-child.h"

#include "bj-cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_GROUPS 256

static void
fail (int code, const char *what, const char *thing)
{
  dprintf (2, "belljar: %s %s: %s\n", what, thing, strerror (errno));
  _exit (code);
}

/* The files are read directly: a static program must not load the image's name service modules. */
static struct passwd *
find_user (const char *name)
{
  FILE *file = fopen ("/etc/passwd", "re");
  struct passwd *user = NULL;

  if (file == NULL)
    return NULL;
  while ((user = fgetpwent (file)) != NULL)
    if (name != NULL ? strcmp (user->pw_name, name) == 0 : user->pw_uid == geteuid ())
      break;
  fclose (file);
  errno = ENOENT;
  return user;
}

static int
find_groups (const struct passwd *user, gid_t groups[MAX_GROUPS])
{
  FILE *file;
  struct group *group;
  int n = 0;

  groups[n++] = user->pw_gid;
  /* Root needs none, and each command would read them. */
  if (user->pw_uid == 0 || (file = fopen ("/etc/group", "re")) == NULL)
    return n;
  while (n < MAX_GROUPS && (group = fgetgrent (file)) != NULL)
    for (char **member = group->gr_mem; *member != NULL; member++)
      if (strcmp (*member, user->pw_name) == 0 && group->gr_gid != user->pw_gid)
        {
          groups[n++] = group->gr_gid;
          break;
        }
  fclose (file);
  return n;
}

static void
become (const struct passwd *user)
{
  gid_t groups[MAX_GROUPS];
  int n = find_groups (user, groups);

  if (setgroups ((size_t) n, groups) < 0 || setresgid (user->pw_gid, user->pw_gid, user->pw_gid) < 0
      || setresuid (user->pw_uid, user->pw_uid, user->pw_uid) < 0)
    fail (126, "cannot become", user->pw_name);
}

static void
set_environment (const BjRequest *request, const struct passwd *user)
{
  clearenv ();
  setenv ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv ("LANG", "C.UTF-8", 1);
  setenv ("TERM", "dumb", 1);
  setenv ("HOME", user != NULL ? user->pw_dir : "/", 1);
  setenv ("SHELL", user != NULL ? user->pw_shell : "/bin/sh", 1);
  if (user != NULL)
    {
      setenv ("USER", user->pw_name, 1);
      setenv ("LOGNAME", user->pw_name, 1);
    }
  for (char **pair = request->env; *pair != NULL; pair++)
    if (strchr (*pair, '=') != NULL)
      putenv (*pair);
}

static void
enter_folder (const BjRequest *request, const struct passwd *user)
{
  if (request->cwd != NULL)
    {
      if (chdir (request->cwd) < 0)
        fail (126, "cannot enter the folder", request->cwd);
    }
  else if ((user == NULL || chdir (user->pw_dir) < 0) && chdir ("/") < 0)
    fail (126, "cannot enter the folder", "/");
}

/* Signals that somebody may have left ignored; what is caught is reset by the kernel. */
static void
reset_signals (void)
{
  static const int ignored[] = { SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD };
  sigset_t none;

  for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
    signal (ignored[i], SIG_DFL);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
}

/* The supervisor protects itself from the guest's OOM killer; the command must not inherit that. */
static void
be_killable (void)
{
  int fd = open ("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

  if (fd >= 0 && write (fd, "0", 1) != 1)
    errno = 0;
  if (fd >= 0)
    close (fd);
}

static void
close_others (void)
{
  if (syscall (SYS_close_range, 3u, ~0u, 0u) == 0)
    return;
  for (int fd = 3; fd < 1024; fd++)
    close (fd);
}

static void
run (const BjRequest *request, int in, int out, int err)
{
  struct passwd *user;

  setsid ();
  if (dup2 (in, 0) < 0 || dup2 (out, 1) < 0 || dup2 (err, 2) < 0)
    _exit (126);
  close_others ();
  reset_signals ();
  be_killable ();
  umask (022);

  user = find_user (request->user);
  if (request->user != NULL && user == NULL)
    fail (126, "there is no user", request->user);
  if (request->user != NULL && (user->pw_uid != geteuid () || user->pw_uid == 0))
    become (user);
  set_environment (request, user);
  enter_folder (request, user);
  if (request->no_new_privileges && prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    fail (126, "cannot give up privileges for", request->argv[0]);
  execvp (request->argv[0], request->argv);
  fail (errno == ENOENT ? 127 : 126, "cannot run", request->argv[0]);
}

pid_t
bj_child_start (const BjRequest *request, int in, int out, int err, int cgroup)
{
  pid_t pid = bj_cgroup_fork (cgroup);

  if (pid == 0)
    run (request, in, out, err);
  return pid;
}
