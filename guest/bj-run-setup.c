/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-modes.h"

#include "bj-network.h"
#include "bj-unmount.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * One step that makes a machine its own, also one that was cloned from another's memory: clock, random pool, name, ids, keys,
 * network, mounts. What was not asked for is left alone. The answer says what is true afterwards; the host compares.
 */

#define WAIT_TRIES 2000
#define WAIT_PAUSE_NS 5000000 /* together 10 seconds */
#define ENTROPY_MAX 64
#define NIC_DIR "/sys/class/net/eth0"
#define KEY_PROGRAM "/usr/bin/ssh-keygen"
#define HOST_KEYS "/etc/ssh/ssh_host_*"
#define KERNEL_LOG 65536 /* bytes of its end that are looked at */
#define KLOG_READ_ALL 3

typedef struct
{
  char text[256]; /* what failed; empty: nothing */
} BjFailure;

static bool
fail (BjFailure *failure, const char *what)
{
  snprintf (failure->text, sizeof failure->text, "%s: %s", what, strerror (errno));
  return false;
}

static void
pause_shortly (void)
{
  const struct timespec pause = { .tv_nsec = WAIT_PAUSE_NS };

  nanosleep (&pause, NULL);
}

static bool
wait_for (const char *path, BjFailure *failure)
{
  for (int i = 0; i < WAIT_TRIES; i++)
    {
      if (access (path, F_OK) == 0)
        return true;
      pause_shortly ();
    }
  return fail (failure, path);
}

/* A link that somebody left at @path is replaced, not followed. */
static bool
write_file (const char *path, const char *text, BjFailure *failure)
{
  size_t length = strlen (text);
  int fd;

  unlink (path);
  fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 || write (fd, text, length) != (ssize_t) length || fchmod (fd, 0644) < 0)
    {
      fail (failure, path);
      if (fd >= 0)
        close (fd);
      return false;
    }
  return close (fd) == 0 || fail (failure, path);
}

static bool
write_line (const char *path, const char *line, BjFailure *failure)
{
  char text[512];

  snprintf (text, sizeof text, "%s\n", line);
  return write_file (path, text, failure);
}

static int
hex_digit (char c)
{
  const char *digits = "0123456789abcdef";
  const char *found = c != '\0' ? strchr (digits, c) : NULL;

  return found != NULL ? (int) (found - digits) : -1;
}

/* Machines cloned from one memory would else go on with the same random numbers. */
static bool
stir_random_pool (const char *hex, BjFailure *failure)
{
  /* As struct rand_pool_info, whose data has no length. */
  struct
  {
    int entropy_count;
    int size;
    uint8_t data[ENTROPY_MAX];
  } pool = { 0 };
  size_t n = strlen (hex) / 2;
  int fd;
  bool ok;

  if (n > ENTROPY_MAX)
    n = ENTROPY_MAX;
  for (size_t i = 0; i < n; i++)
    pool.data[i] = (uint8_t) (hex_digit (hex[2 * i]) * 16 + hex_digit (hex[2 * i + 1]));
  pool.entropy_count = (int) n * 8;
  pool.size = (int) n;
  fd = open ("/dev/urandom", O_RDWR | O_CLOEXEC);
  ok = fd >= 0 && ioctl (fd, RNDADDENTROPY, &pool) == 0 && ioctl (fd, RNDRESEEDCRNG) == 0;
  if (!ok)
    fail (failure, "/dev/urandom");
  if (fd >= 0)
    close (fd);
  return ok;
}

static bool
set_hostname (const char *name, BjFailure *failure)
{
  char hosts[320];

  snprintf (hosts, sizeof hosts, "127.0.0.1 localhost %s", name);
  if (sethostname (name, strlen (name)) < 0)
    return fail (failure, "setting the host name");
  return write_line ("/etc/hostname", name, failure) && write_line ("/etc/hosts", hosts, failure);
}

/* Returns the exit code, or -1. */
static int
run_program (const char *const *argv)
{
  pid_t pid = fork ();
  int status = 0;

  if (pid == 0)
    {
      int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

      dup2 (null, 0);
      dup2 (null, 1);
      dup2 (null, 2);
      execv (argv[0], (char **) argv);
      _exit (127);
    }
  if (pid < 0 || waitpid (pid, &status, 0) != pid || !WIFEXITED (status))
    return -1;
  return WEXITSTATUS (status);
}

static bool
renew_host_keys (BjFailure *failure)
{
  const char *make_keys[] = { KEY_PROGRAM, "-A", NULL };
  glob_t keys;

  if (glob (HOST_KEYS, 0, NULL, &keys) == 0)
    {
      for (size_t i = 0; i < keys.gl_pathc; i++)
        unlink (keys.gl_pathv[i]);
      globfree (&keys);
    }
  if (access (KEY_PROGRAM, X_OK) != 0 || run_program (make_keys) == 0)
    return true;
  errno = EIO;
  return fail (failure, KEY_PROGRAM);
}

/*
 * In a cloned machine the card comes after systemd looked for it. Telling systemd would cost a tenth of a second of every start; a unit
 * that wants network-online.target has it start belljar-network.service, which then finds everything done.
 */
static bool
start_network (BjFailure *failure)
{
  if (!wait_for (NIC_DIR, failure))
    return false;
  return bj_network_up () || fail (failure, NIC_DIR);
}

static bool
make_folders (const char *path)
{
  char partial[1024];
  size_t length = strlen (path);

  if (length >= sizeof partial)
    return false;
  for (size_t i = 1; i <= length; i++)
    if (path[i] == '/' || path[i] == '\0')
      {
        memcpy (partial, path, i);
        partial[i] = '\0';
        if (mkdir (partial, 0755) < 0 && errno != EEXIST)
          return false;
      }
  return true;
}

/* The device may need a moment to appear after it was plugged. */
static bool
mount_share (const char *tag, const char *target, BjFailure *failure)
{
  if (!make_folders (target))
    return fail (failure, target);
  for (int i = 0; i < WAIT_TRIES; i++)
    {
      if (mount (tag, target, "virtiofs", 0, NULL) == 0)
        return true;
      pause_shortly ();
    }
  return fail (failure, "mounting the share");
}

static bool
do_all (const BjRequest *request, unsigned int *users, BjFailure *failure)
{
  bj_set_clock (request->clock_us);
  return (request->unmount == NULL || bj_unmount (request->unmount, users) || fail (failure, request->unmount))
         && (request->entropy == NULL || stir_random_pool (request->entropy, failure))
         && (request->hostname == NULL || (set_hostname (request->hostname, failure) && renew_host_keys (failure)))
         && (request->machine_id == NULL || write_line ("/etc/machine-id", request->machine_id, failure))
         && (request->resolv == NULL || write_line ("/etc/resolv.conf", request->resolv, failure))
         && (!request->nic || start_network (failure))
         && (request->device == NULL || wait_for (request->device, failure))
         && (request->mount == NULL || request->tag == NULL || mount_share (request->tag, request->mount, failure));
}

static void
add_fact (char *facts, size_t size, const char *name, const char *value)
{
  size_t used = strlen (facts);

  snprintf (facts + used, size - used, "%s=%.*s\n", name, (int) strcspn (value, "\n"), value);
}

static void
add_file_fact (char *facts, size_t size, const char *name, const char *path)
{
  char value[256] = "";
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read (fd, value, sizeof value - 1) : 0;

  value[n > 0 ? n : 0] = '\0';
  if (fd >= 0)
    close (fd);
  add_fact (facts, size, name, value);
}

static void
add_random_fact (char *facts, size_t size)
{
  uint8_t sample[32];
  char hex[2 * sizeof sample + 1] = "";

  if (getrandom (sample, sizeof sample, GRND_NONBLOCK) == (ssize_t) sizeof sample)
    for (size_t i = 0; i < sizeof sample; i++)
      snprintf (hex + 2 * i, 3, "%02x", sample[i]);
  add_fact (facts, size, "random", hex);
}

static void
add_number_fact (char *facts, size_t size, const char *name, long long value)
{
  char number[32];

  snprintf (number, sizeof number, "%lld", value);
  add_fact (facts, size, name, number);
}

/* Whether the kernel itself noticed, by its generation id, that it is another machine now: it says so in its log. */
static bool
kernel_reseeded (void)
{
  static char log[KERNEL_LOG + 1];
  int n = klogctl (KLOG_READ_ALL, log, KERNEL_LOG);

  log[n > 0 ? n : 0] = '\0';
  return strstr (log, "crng reseeded due to virtual machine fork") != NULL;
}

/* How many there are that were not made just now. */
static void
add_key_fact (char *facts, size_t size, time_t begun)
{
  unsigned int old = 0;
  glob_t keys;
  struct stat info;

  if (glob (HOST_KEYS, 0, NULL, &keys) == 0)
    {
      for (size_t i = 0; i < keys.gl_pathc; i++)
        old += stat (keys.gl_pathv[i], &info) != 0 || info.st_mtime < begun - 1;
      globfree (&keys);
    }
  add_number_fact (facts, size, "old-host-keys", old);
}

static void
collect_facts (char *facts, size_t size, time_t begun)
{
  char name[65] = "";
  struct timespec now;

  gethostname (name, sizeof name - 1);
  add_fact (facts, size, "hostname", name);
  add_file_fact (facts, size, "machine-id", "/etc/machine-id");
  add_file_fact (facts, size, "mac", NIC_DIR "/address");
  add_key_fact (facts, size, begun);
  add_random_fact (facts, size);
  add_file_fact (facts, size, "uuid", "/proc/sys/kernel/random/uuid");
  add_number_fact (facts, size, "reseeded", kernel_reseeded ());
  clock_gettime (CLOCK_REALTIME, &now);
  add_number_fact (facts, size, "clock", (long long) now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

int
bj_mode_setup (const BjRequest *request)
{
  char facts[2048] = "";
  BjFailure failure = { "" };
  unsigned int users = 0;
  BjReply reply;

  bj_reply_init (&reply);
  mkdir (request->dir, 0700);
  if (do_all (request, &users, &failure))
    {
      reply.answer.exit = 0;
      add_number_fact (facts, sizeof facts, "users", users);
      collect_facts (facts, sizeof facts, (time_t) (request->clock_us / 1000000));
    }
  reply.answer.out_head = (uint32_t) strlen (facts);
  reply.answer.out_total = reply.answer.out_head;
  reply.pieces[0] = (const uint8_t *) facts;
  reply.answer.err_head = (uint32_t) strlen (failure.text);
  reply.answer.err_total = reply.answer.err_head;
  reply.pieces[2] = (const uint8_t *) failure.text;
  return bj_reply_print (&reply);
}
