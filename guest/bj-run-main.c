/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-modes.h"
#include "bj-network.h"
#include "bj-serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool
print_all (const void *data, size_t length)
{
  const uint8_t *next = data;

  while (length > 0)
    {
      ssize_t n = write (1, next, length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return false;
      next += n;
      length -= (size_t) n;
    }
  return true;
}

void
bj_reply_init (BjReply *self)
{
  *self = (BjReply) { .answer = { .exit = -1 } };
  memcpy (self->answer.magic, BJ_RUN_ANSWER_MAGIC, BJ_RUN_MAGIC_SIZE);
}

int
bj_reply_print (BjReply *self)
{
  const BjRunAnswer *answer = &self->answer;
  const uint32_t lengths[4] = { answer->out_head, answer->out_tail, answer->err_head, answer->err_tail };

  if (!print_all (answer, sizeof *answer))
    return 1;
  for (int i = 0; i < 4; i++)
    if (!print_all (self->pieces[i], lengths[i]))
      return 1;
  return 0;
}

/* Slewing is for clocks that drift; this one may stand where its machine was frozen. */
void
bj_set_clock (uint64_t host_us)
{
  const struct timespec host = { .tv_sec = (time_t) (host_us / 1000000), .tv_nsec = (long) (host_us % 1000000) * 1000 };

  if (host_us != 0 && clock_settime (CLOCK_REALTIME, &host) < 0)
    fputs ("belljar: cannot set the clock\n", stderr);
}

static int
mode_hello (const BjRequest *request)
{
  BjReply reply;

  bj_set_clock (request->clock_us);
  mkdir (request->dir, 0700);
  bj_reply_init (&reply);
  if (request->nonce != NULL)
    {
      reply.answer.out_head = (uint32_t) strlen (request->nonce);
      reply.pieces[0] = (const uint8_t *) request->nonce;
    }
  return bj_reply_print (&reply);
}

/* Only a run of this same program may be stopped: the pid may belong to somebody else by now. */
static int
mode_stop (const BjRequest *request)
{
  char link[64];
  struct stat theirs;
  struct stat ours;
  BjReply reply;

  snprintf (link, sizeof link, "/proc/%u/exe", request->pid);
  bj_reply_init (&reply);
  if (request->pid > 1 && stat (link, &theirs) == 0 && stat ("/proc/self/exe", &ours) == 0
      && theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev && kill ((pid_t) request->pid, SIGTERM) == 0)
    reply.answer.flags = BJ_RUN_STOPPED;
  else
    reply.answer.flags = BJ_RUN_UNKNOWN;
  return bj_reply_print (&reply);
}

static const struct
{
  const char *name;
  int (*run) (const BjRequest *request);
} modes[] = {
  { "hello", mode_hello },  { "exec", bj_mode_exec }, { "stream", bj_mode_stream }, { "start", bj_mode_start },
  { "poll", bj_mode_poll }, { "send", bj_mode_send }, { "kill", bj_mode_kill },     { "stop", mode_stop },
  { "read", bj_mode_read }, { "write", bj_mode_write },
  { "setup", bj_mode_setup },
};

int
bj_mode_run (const char *name)
{
  BjRequest *request = bj_request_read (0);

  if (request == NULL)
    {
      fputs ("belljar: malformed request\n", stderr);
      return 2;
    }
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
    if (strcmp (name, modes[i].name) == 0)
      return modes[i].run (request);
  fputs ("belljar: unknown mode\n", stderr);
  return 2;
}

static bool
use_request_file (const char *path)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  return fd >= 0 && unlink (path) == 0 && dup2 (fd, 0) == 0 && close (fd) == 0;
}

int
main (int argc, char **argv)
{
  if (argc == 3 && strcmp (argv[1], "serve") == 0)
    return bj_serve (argv[2]);
  if (argc == 2 && strcmp (argv[1], "network") == 0)
    return bj_network_main ();
  if (argc < 2 || argc > 3 || (argc == 3 && !use_request_file (argv[2])))
    {
      fputs ("usage: run MODE [REQUEST-FILE] | run serve PORT | run network (see bj-run-protocol.h, bj-lane-protocol.h)\n", stderr);
      return 2;
    }
  return bj_mode_run (argv[1]);
}
