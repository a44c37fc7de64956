/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One request as it came from the host. Strings are bytes and point into the block that was read. */
#define MODE_FORCE 010000u

typedef struct
{
  char **argv;      /* NULL-terminated */
  char **env;       /* NULL-terminated, NAME=VALUE */
  const char *cwd;  /* or NULL: the user's home */
  const char *user; /* or NULL: whoever runs this */
  const char *dir;
  const char *nonce;
  const char *path;
  const char *hostname;   /* setup: these are NULL where nothing is to be done */
  const char *machine_id;
  const char *resolv;
  const char *entropy;    /* lower-case hex */
  const char *device;     /* to wait for */
  const char *mount;      /* where the share goes */
  const char *tag;
  const char *unmount;    /* setup: where the share was; it goes, before everything else */
  uint32_t timeout_s; /* never 0 */
  uint32_t cap;
  uint32_t id;
  uint32_t wait_s;
  uint32_t pid;
  uint32_t mode;   /* of a file that write makes; with MODE_FORCE also of one that is there */
  uint64_t offset;
  uint64_t clock_us; /* hello: the host's time; 0: leave the clock alone */
  bool no_new_privileges;
  bool append;
  bool nic; /* setup: a network card was plugged */
  bool input; /* the rest of standard input is the command's */
} BjRequest;

/* Reads one from fd, not a byte further. Returns NULL if it is malformed or too long. */
BjRequest *bj_request_read (int fd);
