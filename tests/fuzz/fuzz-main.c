/* SPDX-License-Identifier: GPL-3.0-or-later */

/*
 * Gives every file of a folder to a fuzz target, so that what a fuzzer once found is tried in each run of the suite; then, for as many
 * seconds as BELLJAR_FUZZ_SECONDS says, changed copies of them. That is no libFuzzer (-Dfuzz=true), but it needs no other compiler and
 * goes with sanitizers. What made it crash is left as fuzz-crash-NAME in the folder for temporary files.
 */

#include "fuzz.h"

#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX 65536u

static GByteArray *input; /* what is being tried */
static int crash = -1;    /* where it goes when that crashes */

static void
on_crash (int number)
{
  signal (number, SIG_DFL);
  if (input != NULL && write (crash, input->data, input->len) >= 0)
    fsync (crash);
  raise (number);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const char *const *) a, *(const char *const *) b);
}

static GBytes *
load (const char *path)
{
  g_autoptr(GError) error = NULL;
  char *data;
  gsize size;

  g_file_get_contents (path, &data, &size, &error);
  g_assert_no_error (error);
  return g_bytes_new_take (data, size);
}

/* Returns: (transfer full) (element-type GBytes) */
static GPtrArray *
load_corpus (const char *path)
{
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr(GError) error = NULL;
  g_autoptr(GDir) folder = g_dir_open (path, 0, &error);
  GPtrArray *corpus = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  const char *name;

  g_assert_no_error (error);
  while ((name = g_dir_read_name (folder)) != NULL)
    g_ptr_array_add (names, g_build_filename (path, name, NULL));
  g_ptr_array_sort (names, compare_names);
  for (guint i = 0; i < names->len; i++)
    g_ptr_array_add (corpus, load (names->pdata[i]));
  g_assert_cmpuint (corpus->len, >, 0);
  return corpus;
}

static guint
pick (GRand *rand, guint end)
{
  return end > 0 ? (guint) g_rand_int_range (rand, 0, (gint32) end) : 0;
}

static void
set_byte (GRand *rand, GByteArray *bytes)
{
  static const guint8 odd[] = { 0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '[', '}', ']', ':', ',', '\n', '=', '-', '0', '9', ' ', ';' };

  if (bytes->len > 0)
    bytes->data[pick (rand, bytes->len)] = odd[pick (rand, G_N_ELEMENTS (odd))];
}

static void
flip_bit (GRand *rand, GByteArray *bytes)
{
  if (bytes->len > 0)
    bytes->data[pick (rand, bytes->len)] ^= (guint8) (1u << pick (rand, 8));
}

static void
take_out (GRand *rand, GByteArray *bytes)
{
  guint at = pick (rand, bytes->len);

  if (bytes->len > 0)
    g_byte_array_remove_range (bytes, at, 1 + pick (rand, MIN (bytes->len - at, 32)));
}

static void
put_in (GByteArray *bytes, guint at, const guint8 *data, guint length)
{
  guint rest = bytes->len - at;
  g_autofree guint8 *copy = g_memdup2 (data, length);

  if (length == 0 || bytes->len + length > INPUT_MAX)
    return;
  g_byte_array_set_size (bytes, bytes->len + length);
  memmove (bytes->data + at + length, bytes->data + at, rest);
  memcpy (bytes->data + at, copy, length);
}

/* A piece of another input, or of the same one. */
static void
mix (GRand *rand, GByteArray *bytes, GPtrArray *corpus)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (corpus->pdata[pick (rand, corpus->len)], &size);
  guint from = pick (rand, (guint) size);

  if (size > 0)
    put_in (bytes, pick (rand, bytes->len + 1), data + from, 1 + pick (rand, MIN ((guint) size - from, 256)));
}

static void
repeat (GRand *rand, GByteArray *bytes)
{
  guint from = pick (rand, bytes->len);
  guint length = bytes->len > 0 ? 1 + pick (rand, MIN (bytes->len - from, 16)) : 0;

  for (guint times = pick (rand, 64); times > 0 && length > 0; times--)
    put_in (bytes, from, bytes->data + from, length);
}

static void
change (GRand *rand, GByteArray *bytes, GPtrArray *corpus)
{
  switch (pick (rand, 6))
    {
    case 0:
      flip_bit (rand, bytes);
      break;
    case 1:
      take_out (rand, bytes);
      break;
    case 2:
      repeat (rand, bytes);
      break;
    case 3:
      set_byte (rand, bytes);
      break;
    default:
      mix (rand, bytes, corpus);
      break;
    }
}

static void
try (GBytes *bytes)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);

  g_byte_array_set_size (input, 0);
  g_byte_array_append (input, data, (guint) size);
  LLVMFuzzerTestOneInput (input->data, input->len);
}

static guint64
try_changed (GPtrArray *corpus, guint64 seconds)
{
  guint32 seed = (guint32) g_get_real_time ();
  g_autoptr(GRand) rand = g_rand_new_with_seed (seed);
  gint64 until = g_get_monotonic_time () + (gint64) seconds * G_USEC_PER_SEC;
  guint64 tried = 0;

  for (; g_get_monotonic_time () < until; tried++)
    {
      gsize size;
      gconstpointer data = g_bytes_get_data (corpus->pdata[pick (rand, corpus->len)], &size);

      g_byte_array_set_size (input, 0);
      g_byte_array_append (input, data, (guint) MIN (size, INPUT_MAX));
      for (guint changes = 1 + pick (rand, 8); changes > 0; changes--)
        change (rand, input, corpus);
      LLVMFuzzerTestOneInput (input->data, input->len);
    }
  return tried;
}

int
main (int argc, char **argv)
{
  g_autoptr(GPtrArray) corpus = NULL;
  const char *said = g_getenv ("BELLJAR_FUZZ_SECONDS");
  g_autofree char *name = argc > 0 ? g_path_get_basename (argv[0]) : NULL;
  g_autofree char *path = g_strdup_printf ("%s/fuzz-crash-%s", g_get_tmp_dir (), name);
  guint64 seconds = 0;
  guint64 tried = 0;

  g_assert_cmpint (argc, ==, 2);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* GLib itself warns about some key files */
  if (said != NULL && *said != '\0')
    g_assert_true (g_ascii_string_to_unsigned (said, 10, 0, 7 * 24 * 3600, &seconds, NULL));
  corpus = load_corpus (argv[1]);
  input = g_byte_array_sized_new (INPUT_MAX);
  crash = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  g_assert_cmpint (crash, >=, 0);
  signal (SIGABRT, on_crash);
  signal (SIGSEGV, on_crash);
  for (guint i = 0; i < corpus->len; i++)
    try (corpus->pdata[i]);
  if (seconds > 0)
    tried = try_changed (corpus, seconds);
  unlink (path);
  g_print ("%u inputs, %" G_GUINT64_FORMAT " changed ones\n", corpus->len, tried);
  return 0;
}
