/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The store of images over real files and a real database; only the disk's content is tiny. */
#include "bj-error.h"
#include "bj-image-build.h"
#include "bj-image-info.h"
#include "bj-image-store.h"
#include "bj-remove.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECIPE \
  "[recipe]\nname=tiny\nos=Tiny 1\napi=1\n[bootstrap]\nscript=bootstrap.sh\n[kernel]\nmodules=none\ncmdline=quiet\n" \
  "[disk]\nsize-mib=64\nbuild-space-mib=%s\n[customize]\nscript=bootstrap.sh\n" \
  "[smoke]\nscript=bootstrap.sh\nboot-timeout=1\ntimeout=1\n"

typedef struct
{
  char *dir; /* holds recipes/ and images/ */
  char *images;
  BjStore *db;
  BjImageStore *store;
  guint changes;
} Fixture;

static void
count_change (BjImageStore *store, const char *name, gpointer user_data)
{
  Fixture *f = user_data;

  g_assert_cmpstr (name, ==, "tiny");
  f->changes++;
}

static void
write_file (const char *text, const char *first, ...)
{
  va_list args;
  g_autofree char *path = NULL;
  g_autofree char *dir = NULL;
  g_autoptr(GError) error = NULL;

  va_start (args, first);
  path = g_build_filename_valist (first, &args);
  va_end (args);
  dir = g_path_get_dirname (path);
  g_assert_cmpint (g_mkdir_with_parents (dir, 0755), ==, 0);
  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autofree char *recipes = NULL;
  g_autoptr(GError) error = NULL;

  f->dir = g_dir_make_tmp ("belljar-image-XXXXXX", NULL);
  f->images = g_build_filename (f->dir, "images", NULL);
  recipes = g_build_filename (f->dir, "recipes", NULL);
  f->db = bj_store_open (":memory:", &error);
  g_assert_no_error (error);
  f->store = bj_image_store_new (f->db, NULL, f->images, (const char *[]) { recipes, NULL }, f->dir);
  g_signal_connect (f->store, "changed", G_CALLBACK (count_change), f);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->store);
  g_object_unref (f->db);
  g_assert_true (bj_remove_tree (f->dir, NULL));
  g_free (f->images);
  g_free (f->dir);
}

/* A version as a build leaves it, taken in as after a crash between the last rename and the store. */
static void
add_version (Fixture *f, guint version, guint api)
{
  g_autofree char *number = g_strdup_printf ("%u", version);
  g_autofree char *dir = g_build_filename (f->images, "tiny", number, NULL);
  const BjImageInfo info = { .name = "tiny", .version = version, .os = "Tiny 1", .recipe = "tiny", .api = api,
                             .cmdline = "quiet", .built_at = 1000 };
  g_auto(GStrv) removed = NULL;

  write_file ("a disk", dir, "disk.qcow2", NULL);
  write_file ("a kernel", dir, "vmlinuz", NULL);
  write_file ("an initrd", dir, "initrd", NULL);
  g_assert_true (bj_image_info_write (dir, &info, NULL));
  removed = bj_image_store_clean (f->store);
  g_assert_cmpuint (g_strv_length (removed), ==, 0);
}

static BjImage *
lookup (Fixture *f)
{
  g_autoptr(GError) error = NULL;
  BjImage *image = bj_image_store_lookup (f->store, "tiny", &error);

  g_assert_no_error (error);
  return image;
}

static void
assert_start (Fixture *f, BjImage *image, int code, const char *word)
{
  g_autoptr(GError) error = NULL;
  gboolean ok = bj_image_store_check_start (f->store, image, &error);

  if (code < 0)
    {
      g_assert_no_error (error);
      g_assert_true (ok);
      return;
    }
  g_assert_false (ok);
  g_assert_error (error, BJ_ERROR, code);
  g_assert_nonnull (strstr (error->message, word));
}

static void
freeze (Fixture *f)
{
  g_autoptr(GError) error = NULL;

  g_assert_true (bj_image_store_freeze (f->store, "tiny", NULL, NULL, &error));
  g_assert_no_error (error);
}

static void
test_absent (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) images = bj_image_store_list (f->store);
  g_autofree char *chosen = bj_image_store_get_default (f->store);

  g_assert_cmpuint (images->len, ==, 0);
  g_assert_null (chosen);
  g_assert_null (bj_image_store_lookup (f->store, "tiny", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_assert_nonnull (strstr (error->message, "belljar image build tiny"));
  g_clear_error (&error);
  g_assert_false (bj_image_store_freeze (f->store, "tiny", NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_false (bj_image_store_delete (f->store, "../etc", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
}

static void
test_freeze (Fixture *f, gconstpointer data)
{
  g_autoptr(BjImage) before = NULL, after = NULL;
  struct stat st;

  add_version (f, 1, BJ_IMAGE_API);
  before = lookup (f);
  g_assert_cmpstr (before->state, ==, "unfrozen");
  g_assert_cmpstr (before->digest, ==, "");
  assert_start (f, before, BJ_ERROR_NOT_FROZEN, "belljar image freeze tiny");
  freeze (f);
  after = lookup (f);
  g_assert_cmpstr (after->state, ==, "frozen");
  g_assert_true (g_str_has_prefix (after->digest, "sha256:"));
  g_assert_cmpuint (strlen (after->digest), ==, strlen ("sha256:") + 64);
  g_assert_cmpint (stat (after->disk, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 07777, ==, 0444);
  assert_start (f, after, -1, NULL);
  g_assert_cmpuint (f->changes, ==, 1);
  freeze (f);
  g_assert_cmpuint (f->changes, ==, 1);
}

typedef enum
{
  HARM_SIZE,
  HARM_TIME,
  HARM_INODE,
  HARM_GONE,
  HARM_LINK,
} Harm;

static const struct
{
  const char *file;
  Harm harm;
  const char *word;
  gboolean bytes_differ;
} harms[] = {
  { "disk.qcow2", HARM_SIZE, "another size", TRUE },   { "disk.qcow2", HARM_TIME, "was written to", FALSE },
  { "disk.qcow2", HARM_INODE, "was replaced", FALSE }, { "disk.qcow2", HARM_GONE, "is not there", TRUE },
  { "disk.qcow2", HARM_LINK, "is not there", TRUE },   { "vmlinuz", HARM_SIZE, "another size", TRUE },
  { "initrd", HARM_INODE, "was replaced", FALSE },     { "image.ini", HARM_GONE, "image.ini", TRUE },
};

static void
do_harm (const char *path, Harm harm)
{
  const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1 } };
  g_autofree char *other = g_strconcat (path, ".new", NULL);
  g_autofree char *text = NULL;
  struct stat st;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_cmpint (stat (path, &st), ==, 0);
  if (harm == HARM_SIZE)
    g_assert_cmpint (truncate (path, 3), ==, 0);
  else if (harm == HARM_TIME)
    g_assert_cmpint (utimensat (AT_FDCWD, path, times, 0), ==, 0);
  else if (harm == HARM_GONE)
    g_assert_cmpint (g_unlink (path), ==, 0);
  else if (harm == HARM_LINK)
    {
      g_assert_cmpint (g_rename (path, other), ==, 0);
      g_assert_cmpint (symlink (other, path), ==, 0);
    }
  else
    {
      const struct timespec same[2] = { st.st_atim, st.st_mtim };

      g_assert_true (g_file_set_contents (other, text, -1, NULL));
      g_assert_cmpint (utimensat (AT_FDCWD, other, same, 0), ==, 0);
      g_assert_cmpint (g_rename (other, path), ==, 0);
    }
}

static void
test_tampered (Fixture *f, gconstpointer data)
{
  const guint i = GPOINTER_TO_UINT (data);
  g_autoptr(BjImage) image = NULL, broken = NULL, verified = NULL;
  g_autofree char *path = NULL;
  g_autoptr(GError) error = NULL;

  add_version (f, 1, BJ_IMAGE_API);
  freeze (f);
  image = lookup (f);
  path = g_build_filename (image->dir, harms[i].file, NULL);
  do_harm (path, harms[i].harm);
  assert_start (f, image, BJ_ERROR_FAILED, harms[i].word);
  broken = lookup (f);
  g_assert_cmpstr (broken->state, ==, "broken");
  assert_start (f, broken, BJ_ERROR_FAILED, "belljar image verify tiny");
  g_assert_cmpint (bj_image_store_verify (f->store, "tiny", NULL, NULL, &error), ==, !harms[i].bytes_differ);
  verified = lookup (f);
  g_assert_cmpstr (verified->state, ==, harms[i].bytes_differ ? "broken" : "frozen");
  if (!harms[i].bytes_differ)
    {
      assert_start (f, verified, -1, NULL);
      return;
    }
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_clear_error (&error);
  g_assert_false (bj_image_store_freeze (f->store, "tiny", NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
}

/* Same size, time and inode: only reading every byte finds it. */
static void
test_verify_finds_bytes (Fixture *f, gconstpointer data)
{
  g_autoptr(BjImage) image = NULL, broken = NULL;
  g_autoptr(GError) error = NULL;
  struct stat st;
  int fd;

  add_version (f, 1, BJ_IMAGE_API);
  freeze (f);
  image = lookup (f);
  g_assert_true (bj_image_store_verify (f->store, "tiny", NULL, NULL, &error));
  g_assert_cmpint (stat (image->disk, &st), ==, 0);
  g_assert_cmpint (g_chmod (image->disk, 0644), ==, 0);
  fd = open (image->disk, O_WRONLY | O_CLOEXEC);
  g_assert_cmpint (write (fd, "A", 1), ==, 1);
  g_assert_cmpint (futimens (fd, (const struct timespec[2]) { st.st_atim, st.st_mtim }), ==, 0);
  close (fd);
  assert_start (f, image, -1, NULL);
  g_assert_false (bj_image_store_verify (f->store, "tiny", NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "disk.qcow2"));
  broken = lookup (f);
  g_assert_cmpstr (broken->state, ==, "broken");
  assert_start (f, image, BJ_ERROR_FAILED, "broken");
}

static void
test_api (Fixture *f, gconstpointer data)
{
  g_autoptr(BjImage) old = NULL, new = NULL, right = NULL;

  add_version (f, 1, BJ_IMAGE_API_OLDEST - 1);
  freeze (f);
  old = lookup (f);
  assert_start (f, old, BJ_ERROR_IMAGE_TOO_OLD, "belljar image build tiny");
  add_version (f, 2, BJ_IMAGE_API + 1);
  freeze (f);
  new = lookup (f);
  g_assert_cmpuint (new->version, ==, 2);
  assert_start (f, new, BJ_ERROR_IMAGE_TOO_NEW, "update Belljar");
  add_version (f, 3, BJ_IMAGE_API);
  right = lookup (f);
  g_assert_cmpuint (right->version, ==, 3);
}

/* A session keeps its version while a newer one is not frozen yet. */
static void
test_versions (Fixture *f, gconstpointer data)
{
  g_autoptr(BjImage) first = NULL, second = NULL;
  g_autoptr(GPtrArray) images = NULL;

  add_version (f, 1, BJ_IMAGE_API);
  freeze (f);
  first = lookup (f);
  add_version (f, 2, BJ_IMAGE_API);
  second = lookup (f);
  images = bj_image_store_list (f->store);
  g_assert_cmpuint (images->len, ==, 1);
  g_assert_cmpuint (second->version, ==, 2);
  assert_start (f, second, BJ_ERROR_NOT_FROZEN, "not frozen");
  assert_start (f, first, -1, NULL);
}

static void
test_delete (Fixture *f, gconstpointer data)
{
  g_autofree char *dir = g_build_filename (f->images, "tiny", NULL);
  g_autoptr(GError) error = NULL;
  g_autofree char *chosen = NULL, *none = NULL;

  add_version (f, 1, BJ_IMAGE_API);
  freeze (f);
  add_version (f, 2, BJ_IMAGE_API);
  g_assert_true (bj_image_store_set_default (f->store, "tiny", &error));
  chosen = bj_image_store_get_default (f->store);
  g_assert_cmpstr (chosen, ==, "tiny");
  g_assert_false (bj_image_store_set_default (f->store, "other", &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_true (bj_image_store_delete (f->store, "tiny", &error));
  g_assert_no_error (error);
  g_assert_false (g_file_test (dir, G_FILE_TEST_EXISTS));
  none = bj_image_store_get_default (f->store);
  g_assert_null (none);
}

static void
test_clean (Fixture *f, gconstpointer data)
{
  g_autofree char *away = g_build_filename (f->images, "tiny", ".deleted-1", NULL);
  g_autofree char *was = g_build_filename (f->images, "tiny", "1", NULL);
  g_auto(GStrv) removed = NULL;
  g_autoptr(GPtrArray) images = NULL, open_entries = NULL;

  add_version (f, 1, BJ_IMAGE_API);
  g_assert_cmpint (g_rename (was, away), ==, 0);
  write_file ("half", f->images, "tiny", ".build-abcdefgh", "root", "etc", "passwd", NULL);
  g_assert_cmpint (bj_journal_begin (f->db, "image/tiny", "image-build", "{}", NULL), >, 0);
  removed = bj_image_store_clean (f->store);
  g_assert_cmpuint (g_strv_length (removed), ==, 2);
  images = bj_image_store_list (f->store);
  g_assert_cmpuint (images->len, ==, 0);
  g_assert_false (g_file_test (away, G_FILE_TEST_EXISTS));
  open_entries = bj_journal_list_open (f->db, NULL);
  g_assert_cmpuint (open_entries->len, ==, 0);
}

static void
put_recipe (Fixture *f, const char *space, const char *script)
{
  g_autofree char *recipe = g_strdup_printf (RECIPE, space);

  write_file (recipe, f->dir, "recipes", "tiny", "recipe.ini", NULL);
  write_file (script, f->dir, "recipes", "tiny", "bootstrap.sh", NULL);
}

/* Nothing may be left of a build: no folder, no row, no open entry of the journal. */
static void
assert_nothing_left (Fixture *f)
{
  g_autofree char *dir = g_build_filename (f->images, "tiny", NULL);
  g_autoptr(GPtrArray) images = bj_image_store_list (f->store);
  g_autoptr(GPtrArray) entries = bj_journal_list_open (f->db, NULL);
  g_autofree char *mounts = NULL;

  g_assert_false (g_file_test (dir, G_FILE_TEST_EXISTS));
  g_assert_cmpuint (images->len, ==, 0);
  g_assert_cmpuint (entries->len, ==, 0);
  g_assert_true (g_file_get_contents ("/proc/self/mounts", &mounts, NULL, NULL));
  g_assert_null (strstr (mounts, f->dir));
}

static gboolean
needs_root (void)
{
  if (geteuid () == 0)
    return FALSE;
  g_test_skip ("builds need root");
  return TRUE;
}

static void
test_build_fails (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;

  if (needs_root ())
    return;
  put_recipe (f, "1", "mkdir \"$BELLJAR_ROOT/etc\" && mount -t tmpfs none \"$BELLJAR_ROOT/etc\" && echo no such mirror >&2; "
              "exit 7\n");
  g_assert_null (bj_image_store_build (f->store, "tiny", NULL, 1, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "no such mirror"));
  assert_nothing_left (f);
}

static void
test_build_no_space (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;

  if (needs_root ())
    return;
  put_recipe (f, "1048576", "exit 1\n");
  g_assert_null (bj_image_store_build (f->store, "tiny", NULL, 1, NULL, NULL, &error));
  /* A host with a TiB of free space gets one step further. */
  if (error->code == BJ_ERROR_NO_SPACE)
    {
      g_assert_nonnull (strstr (error->message, "1048576 MiB"));
      g_assert_nonnull (strstr (error->message, "are free"));
    }
  assert_nothing_left (f);
}

static void
test_build_bad_recipe (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;

  put_recipe (f, "much", "exit 1\n");
  g_assert_null (bj_image_store_build (f->store, "tiny", NULL, 1, NULL, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "build-space-mib"));
  assert_nothing_left (f);
}

typedef struct
{
  Fixture *fixture;
  GCancellable *cancellable;
  GError *error;
} Build;

static gpointer
build_thread (gpointer user_data)
{
  Build *build = user_data;

  g_assert_null (bj_image_store_build (build->fixture->store, "tiny", NULL, 1, NULL, build->cancellable,
                                       &build->error));
  return NULL;
}

static char *
wait_for_file (const char *path)
{
  char *text = NULL;
  gint64 deadline = g_get_monotonic_time () + 30 * G_USEC_PER_SEC;

  while (!(g_file_get_contents (path, &text, NULL, NULL) && *text != '\0'))
    {
      g_clear_pointer (&text, g_free);
      g_assert_cmpint (g_get_monotonic_time (), <, deadline);
      g_usleep (10000);
    }
  return text;
}

/* Whether any process has @word on its command line. */
static gboolean
process_with (const char *word)
{
  g_autoptr(GDir) proc = g_dir_open ("/proc", 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (proc)) != NULL)
    {
      g_autofree char *path = g_build_filename ("/proc", name, "cmdline", NULL);
      g_autofree char *text = NULL;
      gsize length;

      if (!g_ascii_isdigit (*name) || !g_file_get_contents (path, &text, &length, NULL))
        continue;
      for (gsize i = 0; i < length; i++)
        if (text[i] == '\0')
          text[i] = ' ';
      if (length > 0 && g_strstr_len (text, (gssize) length, word) != NULL)
        return TRUE;
    }
  return FALSE;
}

/* A child in a session of its own and a mount: both must go with the build. */
static void
test_build_cancelled (Fixture *f, gconstpointer data)
{
  Build build = { .fixture = f, .cancellable = g_cancellable_new () };
  g_autofree char *mark = g_build_filename (f->dir, "started", NULL);
  g_autofree char *word = g_strdup_printf ("86%u", (guint) getpid ());
  g_autofree char *script = g_strdup_printf ("mkdir \"$BELLJAR_ROOT/m\"\nmount -t tmpfs none \"$BELLJAR_ROOT/m\"\n"
                                             "setsid sleep %s &\necho going >'%s'\nsleep %s\n", word, mark, word);
  g_autofree char *started = NULL;
  g_autoptr(GError) busy = NULL;
  gint64 deadline;
  GThread *thread;

  if (needs_root ())
    return;
  put_recipe (f, "1", script);
  thread = g_thread_new ("build", build_thread, &build);
  started = wait_for_file (mark);
  deadline = g_get_monotonic_time () + 30 * G_USEC_PER_SEC;
  while (!process_with (word) && g_get_monotonic_time () < deadline)
    g_usleep (10000); /* the mark comes before it */
  g_assert_true (process_with (word));
  g_assert_null (bj_image_store_build (f->store, "tiny", NULL, 2, NULL, NULL, &busy));
  g_assert_error (busy, BJ_ERROR, BJ_ERROR_BUSY);
  g_cancellable_cancel (build.cancellable);
  g_thread_join (thread);
  g_assert_error (build.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  assert_nothing_left (f);
  deadline = g_get_monotonic_time () + 10 * G_USEC_PER_SEC;
  while (process_with (word))
    {
      g_assert_cmpint (g_get_monotonic_time (), <, deadline);
      g_usleep (10000);
    }
  g_clear_error (&build.error);
  g_object_unref (build.cancellable);
}

#define ADD(name, func, data) g_test_add ("/image-store/" name, Fixture, data, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("absent", test_absent, NULL);
  ADD ("freeze", test_freeze, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (harms); i++)
    {
      g_autofree char *name = g_strdup_printf ("/image-store/tampered/%u-%s", i, harms[i].file);

      g_test_add (name, Fixture, GUINT_TO_POINTER (i), set_up, test_tampered, tear_down);
    }
  ADD ("verify-finds-bytes", test_verify_finds_bytes, NULL);
  ADD ("api", test_api, NULL);
  ADD ("versions", test_versions, NULL);
  ADD ("delete", test_delete, NULL);
  ADD ("clean", test_clean, NULL);
  ADD ("build-fails", test_build_fails, NULL);
  ADD ("build-no-space", test_build_no_space, NULL);
  ADD ("build-bad-recipe", test_build_bad_recipe, NULL);
  ADD ("build-cancelled", test_build_cancelled, NULL);
  return g_test_run ();
}
