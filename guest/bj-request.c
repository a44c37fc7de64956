/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-request.h"

#include "bj-run-protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
read_exactly (int fd, void *data, size_t length)
{
  uint8_t *next = data;

  while (length > 0)
    {
      ssize_t n = read (fd, next, length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return false;
      next += n;
      length -= (size_t) n;
    }
  return true;
}

static bool
take_long (const char *value, uint64_t *number)
{
  char *end;

  if (*value < '0' || *value > '9')
    return false;
  errno = 0;
  *number = strtoull (value, &end, 10);
  return errno == 0 && *end == '\0';
}

static bool
take_number (const char *value, uint32_t max, uint32_t *number)
{
  uint64_t n;

  if (!take_long (value, &n) || n > max)
    return false;
  *number = (uint32_t) n;
  return true;
}

static bool
take_flag (const char *value, bool *flag)
{
  *flag = strcmp (value, "1") == 0;
  return *flag || strcmp (value, "0") == 0;
}

static bool
take_record (BjRequest *self, const char *key, const char *value)
{
  const struct
  {
    const char *name;
    const char **field;
  } texts[] = {
    { "cwd", &self->cwd },
    { "user", &self->user },
    { "dir", &self->dir },
    { "nonce", &self->nonce },
    { "path", &self->path },
    { "hostname", &self->hostname },
    { "machine-id", &self->machine_id },
    { "resolv", &self->resolv },
    { "entropy", &self->entropy },
    { "device", &self->device },
    { "mount", &self->mount },
    { "unmount", &self->unmount },
    { "tag", &self->tag },
  };

  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (strcmp (key, texts[i].name) == 0)
      {
        *texts[i].field = value;
        return true;
      }
  if (strcmp (key, "timeout") == 0)
    return take_number (value, BJ_RUN_DAY, &self->timeout_s) && self->timeout_s > 0;
  if (strcmp (key, "cap") == 0)
    return take_number (value, BJ_RUN_KEEP_MAX, &self->cap);
  if (strcmp (key, "id") == 0)
    return take_number (value, BJ_RUN_IDS, &self->id);
  if (strcmp (key, "wait") == 0)
    return take_number (value, BJ_RUN_DAY, &self->wait_s);
  if (strcmp (key, "pid") == 0)
    return take_number (value, INT32_MAX, &self->pid);
  if (strcmp (key, "mode") == 0)
    return take_number (value, MODE_FORCE | 07777, &self->mode);
  if (strcmp (key, "offset") == 0)
    return take_long (value, &self->offset) && self->offset <= INT64_MAX - BJ_RUN_KEEP_MAX;
  if (strcmp (key, "clock") == 0)
    return take_long (value, &self->clock_us);
  if (strcmp (key, "append") == 0)
    return take_flag (value, &self->append);
  if (strcmp (key, "nic") == 0)
    return take_flag (value, &self->nic);
  if (strcmp (key, "nnp") == 0)
    return take_flag (value, &self->no_new_privileges);
  if (strcmp (key, "input") == 0)
    return take_flag (value, &self->input);
  return false;
}

static bool
parse (BjRequest *self, char *block, size_t length)
{
  size_t n_argv = 0;
  size_t n_env = 0;

  for (char *record = block; record < block + length; record += strlen (record) + 1)
    {
      char *value = strchr (record, '=');

      if (value == NULL)
        return false;
      if (strncmp (record, "argv=", 5) == 0)
        self->argv[n_argv++] = value + 1;
      else if (strncmp (record, "env=", 4) == 0)
        self->env[n_env++] = value + 1;
      else
        {
          /* Cut for the comparison, and put back: the loop goes on by the record's length. */
          bool known;

          *value = '\0';
          known = take_record (self, record, value + 1);
          *value = '=';
          if (!known)
            return false;
        }
    }
  return true;
}

static size_t
count_records (const char *block, size_t length)
{
  size_t n = 0;

  for (size_t i = 0; i < length; i++)
    n += block[i] == '\0';
  return n;
}

BjRequest *
bj_request_read (int fd)
{
  struct
  {
    char magic[BJ_RUN_MAGIC_SIZE];
    uint32_t length;
  } head;
  BjRequest *self = calloc (1, sizeof *self);
  char *block;
  size_t n;

  if (self == NULL || !read_exactly (fd, &head, sizeof head)
      || memcmp (head.magic, BJ_RUN_REQUEST_MAGIC, BJ_RUN_MAGIC_SIZE) != 0 || head.length > BJ_RUN_REQUEST_MAX)
    return NULL;
  block = malloc (head.length + 1u);
  if (block == NULL || !read_exactly (fd, block, head.length))
    return NULL;
  block[head.length] = '\0';
  if (head.length > 0 && block[head.length - 1] != '\0')
    return NULL;

  n = count_records (block, head.length);
  self->argv = calloc (n + 1, sizeof *self->argv);
  self->env = calloc (n + 1, sizeof *self->env);
  self->dir = BJ_RUN_DIR;
  self->timeout_s = BJ_RUN_DAY;
  if (self->argv == NULL || self->env == NULL || !parse (self, block, head.length))
    return NULL;
  return self;
}
