/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
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
  *self = (BjKeep) { .sink = { keep_room, keep_put, NULL, NULL, -1 }, .head = memory, .head_size = cap / 2,
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

/* Pipe */

static void
pipe_flush (BjPipe *self)
{
  while (self->length > 0 && !self->broken)
    {
      ssize_t n = write (self->sink.fd, self->data + self->start, self->length);

      if (n < 0 && errno == EAGAIN)
        return;
      if (n < 0 && errno != EINTR)
        self->broken = true;
      if (n > 0)
        {
          self->start += (size_t) n;
          self->length -= (size_t) n;
        }
    }
}

static bool
pipe_closed (BjSink *sink)
{
  BjPipe *self = (BjPipe *) sink;
  struct pollfd poll_fd = { self->sink.fd, 0, 0 };

  if (!self->broken && poll (&poll_fd, 1, 0) == 1)
    self->broken = true;
  return self->broken;
}

static bool
pipe_pending (BjSink *sink)
{
  BjPipe *self = (BjPipe *) sink;

  pipe_flush (self);
  return self->length > 0 && !self->broken;
}

static size_t
pipe_room (BjSink *sink)
{
  return pipe_pending (sink) ? 0 : CHUNK;
}

static void
pipe_put (BjSink *sink, const uint8_t *data, size_t length)
{
  BjPipe *self = (BjPipe *) sink;

  if (self->broken)
    return;
  memcpy (self->data, data, length);
  self->start = 0;
  self->length = length;
  pipe_flush (self);
}

bool
bj_pipe_init (BjPipe *self, int fd)
{
  self->sink = (BjSink) { pipe_room, pipe_put, pipe_closed, pipe_pending, fd };
  self->broken = false;
  self->start = self->length = 0;
  return fcntl (fd, F_SETFL, O_WRONLY | O_NONBLOCK) == 0 && fcntl (fd, F_SETFD, FD_CLOEXEC) == 0;
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
  *self = (BjRingSink) { .sink = { ring_room, ring_put, NULL, NULL, -1 }, .ring = ring };
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
