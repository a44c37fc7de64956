/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-task.h"

#include "bj-error.h"

static const struct
{
  BjTaskWords words;
  const char *options; /* NULL: a usage error */
} task_cases[] = {
  { { 0 }, "@a{sv} {}" },
  { { .project = "demo" }, "{'project': <'demo'>}" },
  { { .image = "debian", .network = "none" }, "{'image': <'debian'>, 'network': <'none'>}" },
  { { .check = "make -C \"ä\" test" }, "{'check': <'make -C \"ä\" test'>}" },
  { { .time = "20m" }, "{'wall-clock': <uint32 1200>}" },
  { { .memory = "2048" }, "{'memory-mib': <uint32 2048>}" },
  { { .memory = "2G" }, "{'memory-mib': <uint32 2048>}" },
  { { .model = "qwen3:8b", .cpus = "2" }, "{'cpus': <uint32 2>, 'model': <'qwen3:8b'>}" },
  { { .project = "../etc" }, NULL },
  { { .project = "" }, NULL },
  { { .image = "A" }, NULL },
  { { .check = "" }, NULL },
  { { .check = "\xff" }, NULL },
  { { .model = "\xc3" }, NULL },
  { { .time = "soon" }, NULL },
  { { .time = "0" }, NULL },
  { { .network = "lan" }, NULL },
  { { .network = "" }, NULL },
  { { .memory = "0" }, NULL },
  { { .memory = "1K" }, NULL },
  { { .memory = "much" }, NULL },
  { { .memory = "8388607T" }, NULL },
  { { .cpus = "0" }, NULL },
  { { .cpus = "-1" }, NULL },
  { { .cpus = "1025" }, NULL },
};

static void
test_task_words (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (task_cases); i++)
    {
      g_autoptr(GError) error = NULL;
      GVariant *options = bj_task_words_to_options (&task_cases[i].words, &error);
      g_autoptr(GVariant) got = options != NULL ? g_variant_ref_sink (options) : NULL;
      g_autoptr(GVariant) wanted = NULL;

      g_test_message ("case %u", i);
      if (task_cases[i].options == NULL)
        {
          g_assert_null (got);
          g_assert_error (error, BJ_USAGE_ERROR, 0);
          continue;
        }
      g_assert_no_error (error);
      wanted = g_variant_parse (G_VARIANT_TYPE_VARDICT, task_cases[i].options, NULL, NULL, &error);
      g_assert_no_error (error);
      got = g_variant_ref_sink (g_variant_get_normal_form (g_steal_pointer (&got)));
      for (gsize j = 0; j < g_variant_n_children (wanted); j++)
        {
          g_autoptr(GVariant) entry = g_variant_get_child_value (wanted, j);
          g_autoptr(GVariant) value = NULL;
          g_autoptr(GVariant) other = NULL;
          const char *key = NULL;

          g_variant_get (entry, "{&sv}", &key, &value);
          other = g_variant_lookup_value (got, key, NULL);
          g_assert_nonnull (other);
          g_assert_true (g_variant_equal (value, other));
        }
      g_assert_cmpuint (g_variant_n_children (got), ==, g_variant_n_children (wanted));
    }
}

static void
test_report_exits (void)
{
  static const struct
  {
    const char *json;
    BjExit code;
  } cases[] = {
    { "{\"outcome\":\"DONE\",\"check\":{\"verdict\":\"proved\"}}", BJ_EXIT_OK },
    { "{\"outcome\":\"DONE\",\"check\":{\"verdict\":\"passes\"}}", BJ_EXIT_OK },
    { "{\"outcome\":\"DONE\",\"check\":{\"verdict\":\"passes-here\"}}", BJ_EXIT_UNPROVED },
    { "{\"outcome\":\"DONE\",\"check\":{\"verdict\":\"none\"}}", BJ_EXIT_UNPROVED },
    { "{\"outcome\":\"DONE\"}", BJ_EXIT_UNPROVED },
    { "{\"outcome\":\"DONE\",\"check\":null}", BJ_EXIT_UNPROVED },
    { "{\"outcome\":\"DONE\",\"check\":{\"verdict\":\"failed\"}}", BJ_EXIT_REFUTED },
    { "{\"outcome\":\"NEEDS INPUT\"}", BJ_EXIT_NEEDS_INPUT },
    { "{\"outcome\":\"IN PROGRESS\",\"check\":{\"verdict\":\"proved\"}}", BJ_EXIT_IN_PROGRESS },
    { "{\"outcome\":\"FAILED\",\"check\":{\"verdict\":\"proved\"}}", BJ_EXIT_ERROR },
    { "{\"outcome\":\"CANCELLED\"}", BJ_EXIT_ERROR },
    { "{\"outcome\":\"done\"}", BJ_EXIT_ERROR },
    { "{\"outcome\":7}", BJ_EXIT_ERROR },
    { "{}", BJ_EXIT_ERROR },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(JsonObject) report = bj_report_parse (cases[i].json, NULL);

      g_test_message ("%s", cases[i].json);
      g_assert_nonnull (report);
      g_assert_cmpint (bj_report_to_exit (report), ==, cases[i].code);
    }
}

static void
test_bad_reports (void)
{
  static const char *const cases[] = { "", "[]", "7", "null", "{", "{\"outcome\":" };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;

      g_test_message ("%s", cases[i]);
      g_assert_null (bj_report_parse (cases[i], &error));
      g_assert_nonnull (error);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/task-words", test_task_words);
  g_test_add_func ("/cli/report-exits", test_report_exits);
  g_test_add_func ("/cli/bad-reports", test_bad_reports);
  return g_test_run ();
}
