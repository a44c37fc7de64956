/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (64u << 10)

static size_t
smaller (size_t a, size_t b)
{
  return a < b ? a : b;
}

/* Keep */

static size_t
keep_room (BjSink *sink)
{
  return CHUNK;
}

static void
keep_put (BjSink *sink, const uint8_t *data, size_t length)
{
  BjKeep *self = (BjKeep *) sink;
  size_t n = smaller (length, self->head_size - self->head_used);

  memcpy (self->head + self->head_used, data, n);
  self->head_used += n;
  data += n;
  length -= n;
  if (self->tail_size == 0)
    return;
  if (length > self->tail_size)
    {
      self->tail_total += length - self->tail_size;
      data += length - self->tail_size;
      length = self->tail_size;
    }
  while (length > 0)
    {
      size_t at = self->tail_total % self->tail_size;

      n = smaller (length, self->tail_size - at);
      memcpy (self->tail + at, data, n);
      self->tail_total += n;
      data += n;
      length -= n;
    }
}

bool
bj_keep_init (BjKeep *self, size_t cap)
{
  uint8_t *memory = mmap (NULL, cap + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (memory == MAP_FAILED)
    return false;
  *self = (BjKeep) { .sink = { keep_room, keep_put, NULL }, .head = memory, .head_size = cap / 2,
                     .tail = memory + cap / 2, .tail_size = cap - cap / 2 };
  return true;
}

size_t
bj_keep_get_tail_length (const BjKeep *self)
{
  return self->tail_total < self->tail_size ? (size_t) self->tail_total : self->tail_size;
}

static void
reverse (uint8_t *data, size_t length)
{
  for (size_t i = 0; i < length / 2; i++)
    {
      uint8_t byte = data[i];

      data[i] = data[length - 1 - i];
      data[length - 1 - i] = byte;
    }
}

const uint8_t *
bj_keep_finish_tail (BjKeep *self)
{
  if (self->tail_total > self->tail_size)
    {
      size_t at = self->tail_total % self->tail_size;

      reverse (self->tail, at);
      reverse (self->tail + at, self->tail_size - at);
      reverse (self->tail, self->tail_size);
    }
  return self->tail;
}

/* Spool */

static void
read_acknowledgement (BjSpool *self)
{
  BjRunAck ack;
  struct stat info;
  uint64_t acked;

  if (fstat (self->ack_fd, &info) < 0 || info.st_size < (off_t) sizeof ack
      || pread (self->ack_fd, &ack, sizeof ack, (info.st_size / (off_t) sizeof ack - 1) * (off_t) sizeof ack)
           != sizeof ack)
    return;
  acked = self->second ? ack.err : ack.out;
  if (acked > self->acked && (acked <= self->written || acked == UINT64_MAX))
    self->acked = acked;
}

static void
give_back (BjSpool *self)
{
  uint64_t whole = self->acked & ~(uint64_t) 4095;

  if (self->acked == UINT64_MAX || whole <= self->punched)
    return;
  if (fallocate (self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) self->punched,
                 (off_t) (whole - self->punched)) == 0)
    self->punched = whole;
}

static bool
spool_closed (BjSink *sink)
{
  BjSpool *self = (BjSpool *) sink;

  read_acknowledgement (self);
  return self->acked == UINT64_MAX;
}

static size_t
spool_room (BjSink *sink)
{
  BjSpool *self = (BjSpool *) sink;

  if (self->lost || self->acked == UINT64_MAX)
    return CHUNK;
  give_back (self);
  return smaller (CHUNK, BJ_RUN_WINDOW - (size_t) (self->written - self->acked));
}

static void
spool_put (BjSink *sink, const uint8_t *data, size_t length)
{
  BjSpool *self = (BjSpool *) sink;

  while (length > 0 && !self->lost && self->acked != UINT64_MAX)
    {
      ssize_t n = pwrite (self->fd, data, length, (off_t) self->written);

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        self->lost = true;
      else
        {
          self->written += (size_t) n;
          data += n;
          length -= (size_t) n;
        }
    }
}

bool
bj_spool_open (BjSpool *self, const char *spool, const char *suffix, int ack_fd, bool second)
{
  char path[256];

  if (snprintf (path, sizeof path, "%s%s", spool, suffix) >= (int) sizeof path)
    return false;
  *self = (BjSpool) { .sink = { spool_room, spool_put, spool_closed }, .ack_fd = ack_fd, .second = second };
  self->fd = open (path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  return self->fd >= 0 && unlink (path) == 0;
}

/* Ring */

static size_t
ring_room (BjSink *sink)
{
  return CHUNK;
}

static void
ring_put (BjSink *sink, const uint8_t *data, size_t length)
{
  BjRing *ring = ((BjRingSink *) sink)->ring;
  uint64_t total = ring->total;

  while (length > 0)
    {
      size_t at = total % BJ_RUN_RING;
      size_t n = smaller (length, BJ_RUN_RING - at);

      memcpy (ring->data + at, data, n);
      total += n;
      data += n;
      length -= n;
    }
  __atomic_store_n (&ring->total, total, __ATOMIC_RELEASE);
}

void
bj_ring_sink_init (BjRingSink *self, BjRing *ring)
{
  *self = (BjRingSink) { .sink = { ring_room, ring_put, NULL }, .ring = ring };
}

/* The writer does not wait for us: what it may have overwritten while we copied counts as dropped. */
size_t
bj_ring_take (BjRing *ring, uint8_t *data, size_t max, uint64_t *dropped)
{
  uint64_t total = __atomic_load_n (&ring->total, __ATOMIC_ACQUIRE);
  uint64_t start = ring->taken > total ? total : ring->taken;
  uint64_t oldest = total > BJ_RUN_RING ? total - BJ_RUN_RING : 0;
  size_t length;
  size_t lost = 0;

  *dropped = oldest > start ? oldest - start : 0;
  start += *dropped;
  length = smaller (max, (size_t) (total - start));
  for (size_t done = 0; done < length;)
    {
      size_t at = (start + done) % BJ_RUN_RING;
      size_t n = smaller (length - done, BJ_RUN_RING - at);

      memcpy (data + done, ring->data + at, n);
      done += n;
    }
  /* A put in progress has written at most one chunk beyond the total that we see. */
  total = __atomic_load_n (&ring->total, __ATOMIC_ACQUIRE) + CHUNK;
  if (ring->running && total > start + BJ_RUN_RING)
    lost = smaller (length, (size_t) (total - BJ_RUN_RING - start));
  memmove (data, data + lost, length - lost);
  *dropped += lost;
  ring->taken = start + length;
  return length - lost;
}
