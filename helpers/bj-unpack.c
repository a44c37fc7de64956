/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-unpack.h"

#include "bj-error.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK (128u << 10)

/* Not ARCHIVE_EXTRACT_PERM: permissions go through the umask then, without setuid. */
#define FLAGS                                                                                                          \
  (ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS          \
   | ARCHIVE_EXTRACT_TIME)

typedef struct archive BjReader;
typedef struct archive BjDisk;

static void
free_reader (BjReader *reader)
{
  archive_read_free (reader);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjReader, free_reader)

static void
free_disk (BjDisk *disk)
{
  archive_write_free (disk);
}

typedef struct archive BjDiskWriter;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BjDiskWriter, free_disk)

void
bj_unpack_facts_clear (BjUnpackFacts *facts)
{
  g_clear_pointer (&facts->first_skipped, g_free);
}

static gboolean
has_dot_dot (const char *name)
{
  for (const char *at = name; at != NULL; at = strchr (at, '/'))
    {
      at += *at == '/';
      if (strncmp (at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
        return TRUE;
    }
  return FALSE;
}

/* How many folders deep @path leads, starting @depth deep; -1 once it was above. */
static int
walk (const char *path, int depth)
{
  g_auto(GStrv) parts = g_strsplit (path, "/", -1);

  for (guint i = 0; parts[i] != NULL && depth >= 0; i++)
    if (g_str_equal (parts[i], ".."))
      depth--;
    else if (*parts[i] != '\0' && !g_str_equal (parts[i], "."))
      depth++;
  return depth;
}

gboolean
bj_unpack_leads_out (const char *name, const char *target)
{
  return *target == '/' || walk (target, walk (name, 0) - 1) < 0;
}

/* libarchive checks the same again, with every link on the way; it takes what the system says for the whole truth. */
static gboolean
check_name (const char *what, const char *name, GError **error)
{
  if (name == NULL || *name == '\0')
    return bj_error_set (error, BJ_ERROR_DENIED, "The archive from the guest has %s without a name", what);
  if (*name == '/' || has_dot_dot (name))
    return bj_error_set (error, BJ_ERROR_DENIED, "The archive from the guest has %s that leads out of what was asked for: %s",
                         what, name);
  return TRUE;
}

static gboolean
is_wanted (struct archive_entry *entry)
{
  mode_t type = archive_entry_filetype (entry);

  return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK || archive_entry_hardlink (entry) != NULL;
}

static void
note_skipped (BjUnpackFacts *facts, const char *name)
{
  facts->skipped++;
  if (facts->first_skipped == NULL)
    facts->first_skipped = g_strdup (name);
}

static gboolean
set_write_error (BjDisk *disk, const char *name, GError **error)
{
  int code = archive_errno (disk);

  return bj_error_set (error, code == ENOSPC || code == EDQUOT ? BJ_ERROR_NO_SPACE : BJ_ERROR_FAILED, "Writing %s: %s", name,
                       archive_error_string (disk));
}

static gboolean
set_read_error (BjReader *reader, GError **error)
{
  return bj_error_set (error, BJ_ERROR_FAILED, "The archive from the guest is cut off or none: %s", archive_error_string (reader));
}

static gboolean
copy_content (BjReader *reader, BjDisk *disk, const char *name, GError **error)
{
  const void *data;
  size_t size;
  la_int64_t offset;
  int result;

  while ((result = archive_read_data_block (reader, &data, &size, &offset)) == ARCHIVE_OK)
    if (archive_write_data_block (disk, data, size, offset) < ARCHIVE_OK)
      return set_write_error (disk, name, error);
  return result == ARCHIVE_EOF || set_read_error (reader, error);
}

static gboolean
unpack_entry (BjReader *reader, BjDisk *disk, struct archive_entry *entry, BjUnpackFacts *facts, GError **error)
{
  const char *name = archive_entry_pathname (entry);
  const char *link = archive_entry_hardlink (entry);
  const char *target = archive_entry_symlink (entry);

  if (!check_name ("an entry", name, error) || (link != NULL && !check_name ("a hard link", link, error)))
    return FALSE;
  if (!is_wanted (entry))
    {
      note_skipped (facts, name);
      return TRUE;
    }
  if (target != NULL && bj_unpack_leads_out (name, target))
    facts->outward++;
  archive_entry_set_perm (entry, archive_entry_perm (entry) & 0777);
  archive_entry_set_fflags (entry, 0, 0);
  archive_entry_xattr_clear (entry);
  archive_entry_acl_clear (entry);
  if (archive_write_header (disk, entry) < ARCHIVE_WARN)
    return set_write_error (disk, name, error);
  if (link == NULL && archive_entry_filetype (entry) == AE_IFREG && !copy_content (reader, disk, name, error))
    return FALSE;
  return archive_write_finish_entry (disk) >= ARCHIVE_WARN || set_write_error (disk, name, error);
}

/* Tar only: every other reader of libarchive would be more code for a guest to play with. */
static BjReader *
open_reader (int fd, GError **error)
{
  g_autoptr(BjReader) reader = archive_read_new ();

  archive_read_support_format_tar (reader);
  if (archive_read_open_fd (reader, fd, BLOCK) == ARCHIVE_OK)
    return g_steal_pointer (&reader);
  set_read_error (reader, error);
  return NULL;
}

gboolean
bj_unpack (int fd, BjUnpackFacts *facts, GError **error)
{
  g_autoptr(BjReader) reader = open_reader (fd, error);
  g_autoptr(BjDiskWriter) disk = archive_write_disk_new ();
  struct archive_entry *entry;
  int result;

  *facts = (BjUnpackFacts) { 0 };
  if (reader == NULL)
    return FALSE;
  archive_write_disk_set_options (disk, FLAGS);
  while ((result = archive_read_next_header (reader, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN)
    if (!unpack_entry (reader, disk, entry, facts, error))
      return FALSE;
  if (result != ARCHIVE_EOF)
    return set_read_error (reader, error);
  /* Times and modes of folders come last. */
  return archive_write_close (disk) >= ARCHIVE_WARN || set_write_error (disk, "the folders", error);
}
