/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-disk-use.h"

#include "bj-measure.h"

#define DEADLINE_S 60

typedef enum
{
  BJ_USE_IMAGES,
  BJ_USE_TEMPLATES,
  BJ_USE_PROJECTS,
  BJ_USE_EVIDENCE,
  BJ_USE_OVERLAYS,
  BJ_USE_PARKED,
  BJ_USE_POOL,
  BJ_USE_DATABASE,
  BJ_USE_ENGINE,
  BJ_USE_OTHER,
  BJ_USE_N,
} BjUse;

static const char *const names[BJ_USE_N]
    = { "images", "templates", "projects", "evidence", "overlays", "parked", "pool", "database", "engine", "other" };

typedef struct
{
  guint64 bytes[BJ_USE_N];
  guint count[BJ_USE_N];
  BjMeter *meter;
} BjDiskUse;

static void
add (BjDiskUse *use, BjUse kind, const char *path, guint count)
{
  use->bytes[kind] += bj_meter_add (use->meter, path);
  use->count[kind] += count;
}

static guint
count_entries (const char *path)
{
  g_autoptr(GDir) dir = g_dir_open (path, 0, NULL);
  guint n = 0;

  while (dir != NULL && g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* What is neither evidence nor a parked machine is a machine's: its overlay above all. */
static void
add_session (BjDiskUse *use, const char *path)
{
  g_autoptr(GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *below = g_build_filename (path, name, NULL);
      BjUse kind = g_str_equal (name, "evidence") ? BJ_USE_EVIDENCE
                   : g_str_equal (name, "parked") ? BJ_USE_PARKED
                                                  : BJ_USE_OVERLAYS;

      add (use, kind, below, kind != BJ_USE_OVERLAYS || g_str_has_prefix (name, "run") ? 1 : 0);
    }
}

static void
add_sessions (BjDiskUse *use, const char *path)
{
  g_autoptr(GDir) dir = g_dir_open (path, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *below = g_build_filename (path, name, NULL);

      add_session (use, below);
    }
}

static void
add_top (BjDiskUse *use, const char *path, const char *name)
{
  if (g_str_equal (name, "sessions"))
    {
      add_sessions (use, path);
      return;
    }
  if (g_str_has_prefix (name, "belljar.db"))
    {
      add (use, BJ_USE_DATABASE, path, g_str_equal (name, "belljar.db") ? 1 : 0);
      return;
    }
  for (guint i = 0; i < BJ_USE_N; i++)
    if (g_str_equal (name, names[i]) && i != BJ_USE_EVIDENCE && i != BJ_USE_OVERLAYS && i != BJ_USE_PARKED)
      {
        add (use, (BjUse) i, path, i == BJ_USE_ENGINE ? 1 : count_entries (path));
        return;
      }
  add (use, BJ_USE_OTHER, path, 1);
}

static GVariant *
describe (const BjDiskUse *use)
{
  GVariantBuilder all = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));

  for (guint i = 0; i < BJ_USE_N; i++)
    {
      g_variant_builder_open (&all, G_VARIANT_TYPE_VARDICT);
      g_variant_builder_add (&all, "{sv}", "kind", g_variant_new_string (names[i]));
      g_variant_builder_add (&all, "{sv}", "bytes", g_variant_new_uint64 (use->bytes[i]));
      g_variant_builder_add (&all, "{sv}", "count", g_variant_new_uint32 (use->count[i]));
      g_variant_builder_add (&all, "{sv}", "complete", g_variant_new_boolean (bj_meter_is_complete (use->meter)));
      g_variant_builder_close (&all);
    }
  return g_variant_new ("(aa{sv})", &all);
}

gboolean
bj_disk_use_list (gpointer data, GVariant **reply, GError **error)
{
  const char *state_dir = data;
  g_autoptr(BjMeter) meter = bj_meter_new (DEADLINE_S, NULL);
  g_autoptr(GDir) dir = g_dir_open (state_dir, 0, error);
  BjDiskUse use = { .meter = meter };
  const char *name;

  if (dir == NULL)
    return FALSE;
  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (state_dir, name, NULL);

      add_top (&use, path, name);
    }
  *reply = describe (&use);
  return TRUE;
}
