/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-capture.h"

#include <string.h>

struct _BjCapture
{
  GByteArray *head; /* (owned) */
  guint8 *ring;     /* (owned): the last bytes after the head, a ring of tail_size */
  gsize head_size;
  gsize tail_size;
  guint64 ring_total; /* bytes that ever went into the ring */
  GChecksum *sha256;  /* (owned) */
};

BjCapture *
bj_capture_new (gsize head, gsize tail)
{
  BjCapture *self = g_new0 (BjCapture, 1);

  self->head = g_byte_array_new ();
  self->head_size = head;
  self->tail_size = MAX (tail, 1);
  self->sha256 = g_checksum_new (G_CHECKSUM_SHA256);
  return self;
}

void
bj_capture_free (BjCapture *self)
{
  g_byte_array_unref (self->head);
  g_free (self->ring);
  g_checksum_free (self->sha256);
  g_free (self);
}

static void
append_to_ring (BjCapture *self, const guint8 *data, gsize length)
{
  if (self->ring == NULL)
    self->ring = g_malloc (self->tail_size);
  if (length > self->tail_size)
    {
      self->ring_total += length - self->tail_size;
      data += length - self->tail_size;
      length = self->tail_size;
    }
  while (length > 0)
    {
      gsize at = (gsize) (self->ring_total % self->tail_size);
      gsize n = MIN (length, self->tail_size - at);

      memcpy (self->ring + at, data, n);
      self->ring_total += n;
      data += n;
      length -= n;
    }
}

void
bj_capture_append (BjCapture *self, gconstpointer data, gsize length)
{
  const guint8 *next = data;
  gsize to_head = MIN (length, self->head_size - self->head->len);

  if (length == 0)
    return;
  g_checksum_update (self->sha256, next, (gssize) length);
  if (to_head > 0)
    g_byte_array_append (self->head, next, (guint) to_head);
  if (length > to_head)
    append_to_ring (self, next + to_head, length - to_head);
}

guint64
bj_capture_get_total (BjCapture *self)
{
  return self->head->len + self->ring_total;
}

gboolean
bj_capture_get_truncated (BjCapture *self)
{
  return self->ring_total > self->tail_size;
}

char *
bj_capture_dup_sha256 (BjCapture *self)
{
  g_autoptr(GChecksum) copy = g_checksum_copy (self->sha256);

  return g_strdup (g_checksum_get_string (copy));
}

GBytes *
bj_capture_dup_bytes (BjCapture *self)
{
  GByteArray *out = g_byte_array_new ();

  g_byte_array_append (out, self->head->data, self->head->len);
  if (bj_capture_get_truncated (self))
    {
      gsize at = (gsize) (self->ring_total % self->tail_size);
      g_autofree char *marker = g_strdup_printf ("\n[… %" G_GUINT64_FORMAT " bytes left out …]\n",
                                                 self->ring_total - self->tail_size);

      g_byte_array_append (out, (const guint8 *) marker, (guint) strlen (marker));
      g_byte_array_append (out, self->ring + at, (guint) (self->tail_size - at));
      g_byte_array_append (out, self->ring, (guint) at);
    }
  else if (self->ring_total > 0)
    g_byte_array_append (out, self->ring, (guint) self->ring_total);
  return g_byte_array_free_to_bytes (out);
}
