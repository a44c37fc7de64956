/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-initrd.h"

#include "bj-error.h"
#include "bj-spawn.h"

#include <string.h>
#include <sys/stat.h>

#define MODPROBE_TIMEOUT 60

struct _BjCpio
{
  GByteArray *bytes;
  guint inode;
};

BjCpio *
bj_cpio_new (void)
{
  BjCpio *self = g_new0 (BjCpio, 1);

  self->bytes = g_byte_array_new ();
  return self;
}

void
bj_cpio_free (BjCpio *self)
{
  if (self == NULL)
    return;
  g_byte_array_unref (self->bytes);
  g_free (self);
}

static void
pad (BjCpio *self)
{
  static const guint8 zeros[4];

  g_byte_array_append (self->bytes, zeros, (4 - self->bytes->len % 4) % 4);
}

void
bj_cpio_add (BjCpio *self, const char *name, guint mode, gconstpointer data, gsize length)
{
  const guint name_size = (guint) strlen (name) + 1;
  g_autofree char *header = NULL;

  /* magic, inode, mode, uid, gid, links, mtime, size, device, special device, length of the name, no checksum */
  header = g_strdup_printf ("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", ++self->inode, mode, 0u, 0u,
                            S_ISDIR (mode) ? 2u : 1u, 0u, (guint) length, 0u, 0u, 0u, 0u, name_size, 0u);
  g_byte_array_append (self->bytes, (const guint8 *) header, (guint) strlen (header));
  g_byte_array_append (self->bytes, (const guint8 *) name, name_size);
  pad (self);
  if (length > 0)
    g_byte_array_append (self->bytes, data, (guint) length);
  pad (self);
}

GBytes *
bj_cpio_finish (BjCpio *self)
{
  GByteArray *bytes = NULL;

  self->inode = G_MAXUINT; /* the trailer's is 0 */
  bj_cpio_add (self, "TRAILER!!!", 0, NULL, 0);
  bytes = g_steal_pointer (&self->bytes);
  self->bytes = g_byte_array_new ();
  self->inode = 0;
  return g_byte_array_free_to_bytes (bytes);
}

void
bj_initrd_parse_modprobe (const char *output, GPtrArray *paths)
{
  g_auto(GStrv) lines = g_strsplit (output, "\n", -1);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_autofree char *path = NULL;

      if (!g_str_has_prefix (lines[i], "insmod /"))
        continue;
      path = g_strdup (lines[i] + strlen ("insmod "));
      path[strcspn (path, " ")] = '\0';
      if (!g_ptr_array_find_with_equal_func (paths, path, g_str_equal, NULL))
        g_ptr_array_add (paths, g_steal_pointer (&path));
    }
}

static GPtrArray *
find_modules (const char *root, const char *release, const char *const *modules, GCancellable *cancellable,
              GError **error)
{
  g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; modules[i] != NULL; i++)
    {
      /* The host's own modprobe.d has no say here. */
      const char *argv[] = { "modprobe", "-C", "/dev/null", "-d", root, "-S", release, "--show-depends", modules[i],
                             NULL };
      BjSpawn spawn = { .argv = argv, .timeout_s = MODPROBE_TIMEOUT };
      g_autoptr(GBytes) output = NULL;
      g_autofree char *text = NULL;

      if (!bj_spawn_run (&spawn, &output, cancellable, error))
        {
          g_prefix_error (error, "Looking for the kernel module %s: ", modules[i]);
          return NULL;
        }
      text = g_strndup (g_bytes_get_data (output, NULL), g_bytes_get_size (output));
      bj_initrd_parse_modprobe (text, paths);
    }
  return g_steal_pointer (&paths);
}

static gboolean
add_file (BjCpio *cpio, const char *name, guint mode, const char *path, GError **error)
{
  g_autofree char *data = NULL;
  gsize length;

  if (!g_file_get_contents (path, &data, &length, error))
    return FALSE;
  bj_cpio_add (cpio, name, S_IFREG | mode, data, length);
  return TRUE;
}

static gboolean
add_modules (BjCpio *cpio, GPtrArray *paths, GError **error)
{
  g_autoptr(GString) list = g_string_new (NULL);

  for (guint i = 0; i < paths->len; i++)
    {
      const char *path = g_ptr_array_index (paths, i);
      g_autofree char *base = g_path_get_basename (path);
      g_autofree char *name = g_strdup_printf ("modules.d/%s", base);

      if (!g_str_has_suffix (base, ".ko"))
        return bj_error_set (error, BJ_ERROR_FAILED, "The kernel module %s is compressed, which the small init of a "
                             "machine cannot load", base);
      if (!add_file (cpio, name, 0644, path, error))
        return FALSE;
      g_string_append_printf (list, "/%s\n", name);
    }
  bj_cpio_add (cpio, "modules", S_IFREG | 0644, list->str, list->len);
  return TRUE;
}

gboolean
bj_initrd_write (const char *path, const char *root, const char *release, const char *const *modules,
                 const char *init, GCancellable *cancellable, GError **error)
{
  static const char *const dirs[] = { "dev", "modules.d", "proc", "root", "sys" };
  g_autoptr(GPtrArray) paths = find_modules (root, release, modules, cancellable, error);
  g_autoptr(BjCpio) cpio = bj_cpio_new ();
  g_autoptr(GBytes) bytes = NULL;

  if (paths == NULL)
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (dirs); i++)
    bj_cpio_add (cpio, dirs[i], S_IFDIR | 0755, NULL, 0);
  if (!add_file (cpio, "init", 0755, init, error) || !add_modules (cpio, paths, error))
    return FALSE;
  bytes = bj_cpio_finish (cpio);
  return g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize) g_bytes_get_size (bytes), error);
}
