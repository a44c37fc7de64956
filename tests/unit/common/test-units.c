/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-units.h"

#include "bj-error.h"

#include <string.h>

static void
test_durations (void)
{
  static const struct
  {
    const char *text;
    guint seconds; /* 0: refused */
  } cases[] = {
    { "90", 90 },      { "90s", 90 },         { "20m", 1200 },        { "2h", 7200 },
    { "1d", 86400 },   { "0", 0 },            { "0m", 0 },            { "", 0 },
    { NULL, 0 },       { "m", 0 },            { "-1", 0 },            { "+1", 0 },
    { " 1", 0 },       { "1 m", 0 },          { "1mm", 0 },           { "1.5h", 0 },
    { "1w", 0 },       { "0x10", 0 },         { "20M", 0 },           { "4294967295", 4294967295u },
    { "4294967296", 0 }, { "49711d", 0 },     { "49710d", 4294944000u }, { "99999999999999999999999", 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;
      guint seconds = 0;
      gboolean good = bj_units_parse_duration (cases[i].text, 1, &seconds, &error);

      g_test_message ("%s", cases[i].text != NULL ? cases[i].text : "NULL");
      g_assert_cmpint (good, ==, cases[i].seconds != 0);
      g_assert_cmpuint (seconds, ==, cases[i].seconds);
      g_assert_true (good || g_error_matches (error, BJ_ERROR, BJ_ERROR_INVALID));
    }
}

static void
test_sizes (void)
{
  static const struct
  {
    const char *text;
    guint64 bytes; /* 0: refused */
  } cases[] = {
    { "4096", 4096 },
    { "64K", 65536 },
    { "64M", 67108864 },
    { "2G", G_GUINT64_CONSTANT (2147483648) },
    { "1T", G_GUINT64_CONSTANT (1099511627776) },
    { "2g", 0 },
    { "2GB", 0 },
    { "2GiB", 0 },
    { "", 0 },
    { NULL, 0 },
    { "G", 0 },
    { "-2G", 0 },
    { "9223372036854775807", G_MAXINT64 },
    { "9223372036854775808", 0 },
    { "8388608T", 0 },
    { "18446744073709551617", 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      guint64 bytes = 0;

      g_test_message ("%s", cases[i].text != NULL ? cases[i].text : "NULL");
      g_assert_cmpint (bj_units_parse_size (cases[i].text, 1, &bytes, NULL), ==, cases[i].bytes != 0);
      g_assert_cmpuint (bytes, ==, cases[i].bytes);
    }
}

/* Where a key allows it, 0 is a value too. */
static void
test_least (void)
{
  static const struct
  {
    const char *text;
    guint least;
    gboolean good;
  } cases[] = {
    { "0", 0, TRUE }, { "0", 1, FALSE }, { "59", 60, FALSE }, { "1m", 60, TRUE }, { "0d", 0, TRUE }, { "", 0, FALSE }, { "m", 0, FALSE },
  };
  guint64 bytes = 1;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      guint seconds = G_MAXUINT;

      g_test_message ("%s, %u", cases[i].text, cases[i].least);
      g_assert_cmpint (bj_units_parse_duration (cases[i].text, cases[i].least, &seconds, NULL), ==, cases[i].good);
      g_assert_cmpint (seconds != G_MAXUINT, ==, cases[i].good);
    }
  g_assert_true (bj_units_parse_size ("0", 0, &bytes, NULL));
  g_assert_cmpuint (bytes, ==, 0);
  g_assert_false (bj_units_parse_size ("1K", 1025, &bytes, NULL));
}

static void
test_memory (void)
{
  static const struct
  {
    const char *text;
    guint mib; /* 0: refused */
  } cases[] = {
    { "256", 256 }, { "2048", 2048 },  { "2G", 2048 },     { "512M", 512 }, { "262144K", 256 }, { "64G", 65536 }, { "65536", 65536 },
    { "255", 0 },   { "65537", 0 },    { "255M", 0 },      { "65G", 0 },    { "1T", 0 },        { "0", 0 },       { "-5", 0 },
    { "", 0 },      { NULL, 0 },       { "G", 0 },         { "lots", 0 },   { "1.5G", 0 },      { "2g", 0 },      { "9999999G", 0 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;
      guint mib = 0;
      gboolean good = bj_units_parse_memory (cases[i].text, &mib, &error);

      g_test_message ("%s", cases[i].text != NULL ? cases[i].text : "NULL");
      g_assert_cmpint (good, ==, cases[i].mib != 0);
      g_assert_cmpuint (mib, ==, cases[i].mib);
      g_assert_true (good || g_error_matches (error, BJ_ERROR, BJ_ERROR_INVALID));
      g_assert_true (good || strstr (error->message, "from 256 to 65536 MiB") != NULL);
    }
}

static void
test_duration_text (void)
{
  static const struct
  {
    guint64 seconds;
    const char *text;
  } cases[] = {
    { 0, "0 s" }, { 59, "59 s" }, { 60, "1 min 0 s" }, { 3599, "59 min 59 s" }, { 3600, "1 h 0 min" }, { 7500, "2 h 5 min" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *text = bj_units_format_duration (cases[i].seconds);

      g_assert_cmpstr (text, ==, cases[i].text);
    }
}

static void
test_ordinal (void)
{
  static const struct
  {
    guint number;
    const char *text;
  } cases[] = {
    { 1, "1st" },   { 2, "2nd" },   { 3, "3rd" },   { 4, "4th" },     { 10, "10th" },   { 11, "11th" },   { 12, "12th" },
    { 13, "13th" }, { 21, "21st" }, { 22, "22nd" }, { 100, "100th" }, { 101, "101st" }, { 111, "111th" }, { 123, "123rd" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *text = bj_units_format_ordinal (cases[i].number);

      g_assert_cmpstr (text, ==, cases[i].text);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/units/durations", test_durations);
  g_test_add_func ("/units/sizes", test_sizes);
  g_test_add_func ("/units/least", test_least);
  g_test_add_func ("/units/memory", test_memory);
  g_test_add_func ("/units/duration-text", test_duration_text);
  g_test_add_func ("/units/ordinal", test_ordinal);
  return g_test_run ();
}
