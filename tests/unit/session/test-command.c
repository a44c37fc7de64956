/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-session-command.h"

#include <string.h>

static const struct
{
  const char *argv[4];
  const char *line;
} joined[] = {
  { { NULL }, "" },
  { { "ls", NULL }, "ls" },
  { { "gcc", "-O2", "-DX=1", NULL }, "gcc -O2 -DX=1" },
  { { "/usr/bin/env", "a:b,c@d%e+f", NULL }, "/usr/bin/env a:b,c@d%e+f" },
  { { "echo", "two words", NULL }, "echo 'two words'" },
  { { "", "x", NULL }, "'' x" },
  { { "echo", "", NULL }, "echo ''" },
  { { "echo", "it's", NULL }, "echo 'it'\\''s'" },
  { { "sh", "-c", "a; b $HOME", NULL }, "sh -c 'a; b $HOME'" },
  { { "rm", "a\nb", NULL }, "rm 'a\nb'" },
  { { "cat", "\xff\xfe", NULL }, "cat '\xff\xfe'" },
  { { "echo", "gr\xc3\xbc\xc3\x9f", NULL }, "echo 'gr\xc3\xbc\xc3\x9f'" },
};

static void
test_join (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (joined); i++)
    {
      g_autofree char *line = bj_session_join_argv (joined[i].argv);

      g_assert_cmpstr (line, ==, joined[i].line);
    }
}

/* Whatever is in it: a shell would see the same words again. */
static void
test_join_round_trip (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (joined); i++)
    {
      g_autofree char *line = bj_session_join_argv (joined[i].argv);
      g_auto(GStrv) again = NULL;
      g_autoptr(GError) error = NULL;

      if (*line == '\0')
        continue;
      g_assert_true (g_shell_parse_argv (line, NULL, &again, &error));
      g_assert_no_error (error);
      g_assert_true (g_strv_equal ((const char *const *) again, joined[i].argv));
    }
}

typedef struct
{
  const char *bytes;
  gsize length;
} Item;

/* Returns: (transfer full): aay; a byte of the memory behind it is not to be read */
static GVariant *
make_argv (const Item *items, guint n)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_BYTESTRING_ARRAY);
  for (guint i = 0; i < n; i++)
    g_variant_builder_add_value (&builder,
                                 g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, items[i].bytes, items[i].length, 1));
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

#define ITEM(text) { (text), sizeof (text) - 1 }

static void
test_dup (void)
{
  /* With and without the NUL byte that busctl and GLib put at the end of a bytestring. */
  static const Item items[] = { ITEM ("/bin/echo\0"), ITEM ("plain"), ITEM ("\0"), ITEM (""), ITEM ("\xff\xfe\0"), ITEM ("a b") };
  static const char *const expected[] = { "/bin/echo", "plain", "", "", "\xff\xfe", "a b", NULL };
  g_autoptr(GVariant) bytes = make_argv (items, G_N_ELEMENTS (items));
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) argv = bj_session_dup_argv (bytes, &error);

  g_assert_no_error (error);
  g_assert_true (g_strv_equal ((const char *const *) argv, expected));
}

static void
assert_refused (GVariant *bytes, const char *word)
{
  g_autoptr(GVariant) owned = bytes;
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) argv = bj_session_dup_argv (owned, &error);

  g_assert_null (argv);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, word));
}

static void
test_dup_refuses (void)
{
  static const Item nul_inside[] = { ITEM ("echo"), ITEM ("a\0b") };
  static const Item two_nuls[] = { ITEM ("echo"), ITEM ("a\0\0") };
  static const Item only_nul[] = { ITEM ("\0"), ITEM ("x") };
  static const Item nothing[] = { ITEM ("") };

  assert_refused (make_argv (NULL, 0), "1 to 1024 arguments");
  assert_refused (make_argv (nul_inside, 2), "Argument 1 ");
  assert_refused (make_argv (two_nuls, 2), "Argument 1 ");
  assert_refused (make_argv (only_nul, 2), "The command is empty");
  assert_refused (make_argv (nothing, 1), "The command is empty");
}

static void
test_dup_limits (void)
{
  g_autofree Item *many = g_new0 (Item, 1025);
  g_autofree char *big = g_strnfill (256 * 1024, 'x');
  const Item one[] = { { big, 256 * 1024 } };
  const Item less[] = { { big, 255 * 1024 } };
  g_autoptr(GVariant) most = NULL;
  g_autoptr(GVariant) large = make_argv (less, 1);
  g_auto(GStrv) most_argv = NULL;
  g_auto(GStrv) large_argv = NULL;

  for (guint i = 0; i < 1025; i++)
    many[i] = (Item) ITEM ("x");
  assert_refused (make_argv (many, 1025), "1 to 1024 arguments");
  assert_refused (make_argv (one, 1), "262144 bytes");
  most = make_argv (many, 1024);
  most_argv = bj_session_dup_argv (most, NULL);
  g_assert_cmpuint (g_strv_length (most_argv), ==, 1024);
  large_argv = bj_session_dup_argv (large, NULL);
  g_assert_cmpuint (strlen (large_argv[0]), ==, 255 * 1024);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/command/join", test_join);
  g_test_add_func ("/session/command/join-round-trip", test_join_round_trip);
  g_test_add_func ("/session/command/dup", test_dup);
  g_test_add_func ("/session/command/dup-refuses", test_dup_refuses);
  g_test_add_func ("/session/command/dup-limits", test_dup_limits);
  return g_test_run ();
}
