/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-tar.h"

#include "bj-error.h"

#include <gio/gunixoutputstream.h>
#include <string.h>

#define BLOCK 512
#define NAME_MAX_BYTES 99

/* The header of POSIX.1-1988; numbers are octal text. */
typedef struct
{
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6];
  char version[2];
  char user[32];
  char group[32];
  char major[8];
  char minor[8];
  char prefix[155];
  char padding[12];
} BjTarHeader;
G_STATIC_ASSERT (sizeof (BjTarHeader) == BLOCK);

static void
make_header (BjTarHeader *header, const char *name, guint64 size)
{
  const guchar *bytes = (const guchar *) header;
  guint sum = 0;

  memset (header, 0, sizeof *header);
  g_strlcpy (header->name, name, sizeof header->name);
  g_strlcpy (header->mode, "0000600", sizeof header->mode);
  g_strlcpy (header->uid, "0000000", sizeof header->uid);
  g_strlcpy (header->gid, "0000000", sizeof header->gid);
  g_snprintf (header->size, sizeof header->size, "%011" G_GINT64_MODIFIER "o", size);
  g_snprintf (header->mtime, sizeof header->mtime, "%011" G_GINT64_MODIFIER "o",
              (guint64) (g_get_real_time () / G_USEC_PER_SEC));
  header->type = '0';
  memcpy (header->magic, "ustar", 6);
  memcpy (header->version, "00", 2);
  memset (header->checksum, ' ', sizeof header->checksum);
  for (guint i = 0; i < sizeof *header; i++)
    sum += bytes[i];
  g_snprintf (header->checksum, sizeof header->checksum, "%06o", sum);
}

static gboolean
write_all (GOutputStream *stream, gconstpointer data, gsize length, GError **error)
{
  return length == 0 || g_output_stream_write_all (stream, data, length, NULL, NULL, error);
}

static gboolean
add (GOutputStream *stream, const char *name, GBytes *content, GError **error)
{
  static const char zeros[BLOCK];
  gsize size;
  gconstpointer data = g_bytes_get_data (content, &size);
  BjTarHeader header;

  if (strlen (name) > NAME_MAX_BYTES || size > G_MAXUINT32)
    return bj_error_set (error, BJ_ERROR_LIMIT, "“%s” does not fit into an archive", name);
  make_header (&header, name, size);
  return write_all (stream, &header, sizeof header, error) && write_all (stream, data, size, error)
         && write_all (stream, zeros, (BLOCK - size % BLOCK) % BLOCK, error);
}

gboolean
bj_tar_write (int fd, const char *folder, const char *const *names, GPtrArray *contents, GError **error)
{
  static const char end[2 * BLOCK];
  g_autoptr(GZlibCompressor) gzip = g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP, -1);
  g_autoptr(GOutputStream) file = g_unix_output_stream_new (fd, FALSE);
  g_autoptr(GOutputStream) stream = g_converter_output_stream_new (file, G_CONVERTER (gzip));

  for (guint i = 0; names[i] != NULL; i++)
    {
      g_autofree char *path = g_strconcat (folder, "/", names[i], NULL);

      if (!add (stream, path, g_ptr_array_index (contents, i), error))
        return FALSE;
    }
  return write_all (stream, end, sizeof end, error) && g_output_stream_close (stream, NULL, error);
}
