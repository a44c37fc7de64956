/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a session may be asked to be: the real stores of images and projects, no engine. */
#include "bj-error.h"
#include "bj-image-info.h"
#include "bj-name.h"
#include "bj-remove.h"
#include "bj-session-plan.h"

#include <string.h>
#include <sys/stat.h>

#define OWNER 1000u
#define OTHER 1001u

typedef struct
{
  char *dir;
  BjContext context;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  static const BjProjectRow project = { .name = (char *) "demo", .owner_uid = OWNER, .owner_gid = 100,
                                        .backend = (char *) "none", .head = (char *) "" };
  g_autoptr(GError) error = NULL;
  g_autofree char *images = NULL;
  g_autofree char *projects = NULL;
  g_autofree char *config = NULL;

  f->dir = g_dir_make_tmp ("bj-plan-XXXXXX", &error);
  g_assert_no_error (error);
  images = g_build_filename (f->dir, "images", NULL);
  projects = g_build_filename (f->dir, "projects", NULL);
  config = g_build_filename (f->dir, "belljar.conf", NULL);
  g_assert_true (g_file_set_contents (config, "[model]\nname=small\nallow=large;larger\n", -1, NULL));
  f->context.state_dir = f->dir;
  f->context.config = bj_config_load (config, TRUE, &error);
  g_assert_no_error (error);
  f->context.store = bj_store_open (":memory:", &error);
  g_assert_no_error (error);
  g_assert_true (bj_store_put_project (f->context.store, &project, NULL));
  f->context.images = bj_image_store_new (f->context.store, NULL, images, (const char *[]) { f->dir, NULL }, f->dir);
  f->context.projects = bj_project_store_new (f->context.store, projects, "/nonexistent/belljar-tree");
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->context.images);
  g_object_unref (f->context.projects);
  g_object_unref (f->context.store);
  bj_config_free (f->context.config);
  g_assert_true (bj_remove_tree (f->dir, NULL));
  g_free (f->dir);
}

/* An image as a build leaves it; its disk is tiny. */
static void
add_image (Fixture *f, gboolean freeze)
{
  const BjImageInfo info = { .name = "tiny", .version = 1, .os = "Tiny 1", .recipe = "tiny", .api = BJ_IMAGE_API,
                             .cmdline = "quiet", .built_at = 1000 };
  static const char *const files[] = { "disk.qcow2", "vmlinuz", "initrd" };
  g_autofree char *dir = g_build_filename (f->dir, "images", "tiny", "1", NULL);
  g_auto(GStrv) removed = NULL;
  g_autoptr(GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (dir, 0755), ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (dir, files[i], NULL);

      g_assert_true (g_file_set_contents (path, "x", -1, NULL));
    }
  g_assert_true (bj_image_info_write (dir, &info, NULL));
  removed = bj_image_store_clean (f->context.images);
  g_assert_cmpuint (g_strv_length (removed), ==, 0);
  if (!freeze)
    return;
  bj_image_store_freeze (f->context.images, "tiny", NULL, NULL, &error);
  g_assert_no_error (error);
}

/* @options: as text, for example "{'cpus': <uint32 2>}" */
static BjSessionPlan *
make (Fixture *f, uid_t uid, const char *task, const char *options, GError **error)
{
  g_autofree char *text = g_strconcat ("@a{sv} ", options, NULL);
  g_autoptr(GVariant) dict = g_variant_parse (G_VARIANT_TYPE_VARDICT, text, NULL, NULL, NULL);
  const BjCaller caller = { .sender = (char *) ":1.1", .uid = uid, .gid = uid };

  g_assert_nonnull (dict);
  return bj_session_plan_new (&f->context, &caller, task, dict, error);
}

static void
assert_refused (Fixture *f, uid_t uid, const char *task, const char *options, BjError code, const char *word)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjSessionPlan) plan = make (f, uid, task, options, &error);

  g_test_message ("%.60s %s: %s", task != NULL ? task : "(open)", options, error != NULL ? error->message : "taken");
  g_assert_null (plan);
  g_assert_error (error, BJ_ERROR, (int) code);
  g_assert_nonnull (strstr (error->message, word));
}

static void
test_options (Fixture *f, gconstpointer data)
{
  static const struct
  {
    const char *options;
    const char *word;
  } bad[] = {
    { "{'colour': <'red'>}", "“colour”" },
    { "{'Project': <'demo'>}", "“Project”" },
    { "{'steps': <uint32 1>}", "“steps”" },
    { "{'project': <uint32 1>}", "“project” must be of type s, not u" },
    { "{'project': <''>}", "“project”" },
    { "{'project': <'../demo'>}", "“project”" },
    { "{'project': <'Demo'>}", "“project”" },
    { "{'image': <'a/b'>}", "“image”" },
    { "{'image': <@as ['tiny']>}", "“image” must be of type s, not as" },
    { "{'check': <''>}", "“check”" },
    { "{'check': <' \\t\\n'>}", "“check”" },
    { "{'check': <true>}", "“check” must be of type s, not b" },
    { "{'wall-clock': <uint32 0>}", "must be 1 to 86400 seconds" },
    { "{'wall-clock': <uint32 86401>}", "must be 1 to 86400 seconds" },
    { "{'wall-clock': <int32 60>}", "“wall-clock” must be of type u, not i" },
    { "{'wall-clock': <'20m'>}", "“wall-clock” must be of type u, not s" },
    { "{'memory-mib': <uint32 0>}", "must be 256 to 65536 MiB" },
    { "{'memory-mib': <uint32 255>}", "must be 256 to 65536 MiB" },
    { "{'memory-mib': <uint32 65537>}", "must be 256 to 65536 MiB" },
    { "{'memory-mib': <uint64 1024>}", "“memory-mib” must be of type u, not t" },
    { "{'cpus': <uint32 0>}", "must be 1 to 16" },
    { "{'cpus': <uint32 17>}", "must be 1 to 16" },
    { "{'network': <'lan'>}", "must be internet or none" },
    { "{'network': <false>}", "“network” must be of type s, not b" },
    { "{'model': <''>}", "“model”" },
    { "{'model': <'a b'>}", "“model”" },
    { "{'model': <'a\"b'>}", "“model”" },
    { "{'cpus': <uint32 1>, 'cpus': <uint32 2>}", "“cpus” is given twice" },
  };

  add_image (f, TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    assert_refused (f, OWNER, "do it", bad[i].options, BJ_ERROR_INVALID, bad[i].word);
  assert_refused (f, OWNER, NULL, "{'check': <'true'>}", BJ_ERROR_INVALID, "“check”");
  assert_refused (f, OWNER, NULL, "{'model': <'small'>}", BJ_ERROR_INVALID, "“model”");
  assert_refused (f, OWNER, NULL, "{'wall-clock': <uint32 0>}", BJ_ERROR_INVALID, "“wall-clock”");
}

static void
test_long_check (Fixture *f, gconstpointer data)
{
  g_autofree char *most = g_strnfill (16 * 1024, 'x');
  g_autofree char *fits = g_strdup_printf ("{'check': <'%s'>}", most);
  g_autofree char *more = g_strdup_printf ("{'check': <'%sx'>}", most);
  g_autoptr(GError) error = NULL;
  g_autoptr(BjSessionPlan) plan = NULL;

  add_image (f, TRUE);
  assert_refused (f, OWNER, "do it", more, BJ_ERROR_INVALID, "16384 bytes");
  plan = make (f, OWNER, "do it", fits, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (plan->check, ==, most);
}

static void
test_task (Fixture *f, gconstpointer data)
{
  g_autofree char *most = g_strnfill (64 * 1024, 'x');
  g_autofree char *more = g_strconcat (most, "x", NULL);
  g_autoptr(GError) error = NULL;
  g_autoptr(BjSessionPlan) plan = NULL;

  add_image (f, TRUE);
  assert_refused (f, OWNER, "", "{}", BJ_ERROR_INVALID, "The task is empty");
  assert_refused (f, OWNER, " \t\r\n", "{}", BJ_ERROR_INVALID, "The task is empty");
  assert_refused (f, OWNER, more, "{}", BJ_ERROR_INVALID, "65536 bytes");
  plan = make (f, OWNER, most, "{}", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (plan->task, ==, most);
}

static void
test_model (Fixture *f, gconstpointer data)
{
  static const char *const allowed[] = { "small", "large", "larger" };

  add_image (f, TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (allowed); i++)
    {
      g_autofree char *options = g_strdup_printf ("{'model': <'%s'>}", allowed[i]);
      g_autoptr(GError) error = NULL;
      g_autoptr(BjSessionPlan) plan = make (f, OWNER, "do it", options, &error);

      g_assert_no_error (error);
      g_assert_cmpstr (plan->model, ==, allowed[i]);
    }
  assert_refused (f, OWNER, "do it", "{'model': <'largest'>}", BJ_ERROR_DENIED, "[model] allow");
  g_clear_pointer (&f->context.config, bj_config_free);
  f->context.config = bj_config_load (NULL, FALSE, NULL);
  assert_refused (f, OWNER, "do it", "{}", BJ_ERROR_INVALID, "[model] name");
  assert_refused (f, OWNER, "do it", "{'model': <'small'>}", BJ_ERROR_DENIED, "[model] allow");
}

static void
test_image (Fixture *f, gconstpointer data)
{
  assert_refused (f, OWNER, "do it", "{}", BJ_ERROR_NOT_FOUND, "belljar image build debian");
  assert_refused (f, OWNER, NULL, "{}", BJ_ERROR_NOT_FOUND, "belljar image build debian");
  assert_refused (f, OWNER, "do it", "{'image': <'tiny'>}", BJ_ERROR_NOT_FOUND, "tiny");
  add_image (f, FALSE);
  assert_refused (f, OWNER, "do it", "{'image': <'tiny'>}", BJ_ERROR_NOT_FROZEN, "belljar image freeze tiny");
  assert_refused (f, OWNER, "do it", "{'image': <'other'>}", BJ_ERROR_NOT_FOUND, "other");
}

static void
test_changed_image (Fixture *f, gconstpointer data)
{
  g_autofree char *disk = g_build_filename (f->dir, "images", "tiny", "1", "disk.qcow2", NULL);

  add_image (f, TRUE);
  g_assert_true (g_file_set_contents (disk, "other bytes", -1, NULL));
  assert_refused (f, OWNER, "do it", "{}", BJ_ERROR_FAILED, "is broken");
}

static void
test_project (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjSessionPlan) owners = NULL;
  g_autoptr(BjSessionPlan) roots = NULL;

  add_image (f, TRUE);
  assert_refused (f, OWNER, "do it", "{'project': <'none'>}", BJ_ERROR_NOT_FOUND, "belljar project create");
  assert_refused (f, OTHER, "do it", "{'project': <'demo'>}", BJ_ERROR_DENIED, "uid 1000");
  assert_refused (f, OTHER, NULL, "{'project': <'demo'>}", BJ_ERROR_DENIED, "uid 1000");
  owners = make (f, OWNER, NULL, "{'project': <'demo'>}", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (owners->project, ==, "demo");
  g_assert_cmpuint (owners->owner_gid, ==, 100);
  g_assert_false (owners->own_project);
  roots = make (f, 0, "do it", "{'project': <'demo'>}", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (roots->project, ==, "demo");
}

static void
test_defaults (Fixture *f, gconstpointer data)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjSessionPlan) task = NULL;
  g_autoptr(BjSessionPlan) open = NULL;
  g_autofree char *project = NULL;

  add_image (f, TRUE);
  task = make (f, OWNER, "do it", "{}", &error);
  g_assert_no_error (error);
  project = g_strconcat ("task-", task->id, NULL);
  g_assert_true (bj_id_is_valid (task->id));
  g_assert_cmpstr (task->kind, ==, "task");
  g_assert_cmpstr (task->task, ==, "do it");
  g_assert_cmpstr (task->project, ==, project);
  g_assert_true (task->own_project);
  g_assert_cmpstr (task->image->name, ==, "tiny");
  g_assert_null (task->check);
  g_assert_cmpstr (task->model, ==, "small");
  g_assert_cmpuint (task->wall_clock_s, ==, 1200);
  g_assert_cmpuint (task->memory_mib, ==, 0);
  g_assert_cmpuint (task->cpus, ==, 2);
  g_assert_cmpuint (task->steps, ==, 200);
  g_assert_true (task->wants_network);
  g_assert_cmpuint (task->owner_uid, ==, OWNER);

  open = make (f, OWNER, NULL, "{}", &error);
  g_assert_no_error (error);
  g_assert_cmpstr (open->kind, ==, "open");
  g_assert_null (open->task);
  g_assert_null (open->project);
  g_assert_cmpstr (open->model, ==, "");
  g_assert_cmpstr (open->id, !=, task->id);
}

/* What was asked for survives the store: a daemon that starts again knows the same plan. */
static void
test_row (Fixture *f, gconstpointer data)
{
  const char *options = "{'project': <'demo'>, 'image': <'tiny'>, 'check': <'make check'>, 'wall-clock': <uint32 1>, "
                        "'memory-mib': <uint32 256>, 'cpus': <uint32 16>, 'network': <'none'>, 'model': <'large'>}";
  g_autoptr(GError) error = NULL;
  g_autoptr(BjSessionPlan) plan = NULL;
  g_autoptr(BjSessionPlan) again = NULL;
  g_autoptr(BjSessionRow) row = g_new0 (BjSessionRow, 1);

  add_image (f, TRUE);
  plan = make (f, OWNER, "say “hello”\n", options, &error);
  g_assert_no_error (error);
  plan->slot = 7;
  bj_session_plan_fill_row (plan, row);
  again = bj_session_plan_from_row (&f->context, row);
  g_assert_cmpstr (again->id, ==, plan->id);
  g_assert_cmpstr (again->kind, ==, "task");
  g_assert_cmpstr (again->task, ==, "say “hello”\n");
  g_assert_cmpstr (again->project, ==, "demo");
  g_assert_false (again->own_project);
  g_assert_cmpstr (again->image->name, ==, "tiny");
  g_assert_cmpstr (again->check, ==, "make check");
  g_assert_cmpstr (again->model, ==, "large");
  g_assert_cmpuint (again->wall_clock_s, ==, 1);
  g_assert_cmpuint (again->memory_mib, ==, 256);
  g_assert_cmpuint (again->cpus, ==, 16);
  g_assert_cmpuint (again->steps, ==, 200);
  g_assert_false (again->wants_network);
  g_assert_cmpuint (again->owner_uid, ==, OWNER);
  g_assert_cmpuint (again->owner_gid, ==, 100);
  g_assert_cmpuint (again->slot, ==, 7);
}

/* A row with options that are no JSON, of an image that is gone: a plan all the same. */
static void
test_bad_row (Fixture *f, gconstpointer data)
{
  static const char *const options[] = { "", "{", "[]", "null", "\"text\"" };

  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    {
      const BjSessionRow row = { .id = (char *) "abcdefgh", .kind = (char *) "open", .project = (char *) "",
                                 .image = (char *) "gone", .task = (char *) "", .options = (char *) options[i] };
      g_autoptr(BjSessionPlan) plan = bj_session_plan_from_row (&f->context, &row);

      g_assert_cmpstr (plan->id, ==, "abcdefgh");
      g_assert_null (plan->task);
      g_assert_null (plan->project);
      g_assert_null (plan->image);
      g_assert_cmpstr (plan->model, ==, "");
      g_assert_false (plan->wants_network);
    }
}

#define ADD(name, func) g_test_add ("/session/plan/" name, Fixture, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("options", test_options);
  ADD ("long-check", test_long_check);
  ADD ("task", test_task);
  ADD ("model", test_model);
  ADD ("image", test_image);
  ADD ("changed-image", test_changed_image);
  ADD ("project", test_project);
  ADD ("defaults", test_defaults);
  ADD ("row", test_row);
  ADD ("bad-row", test_bad_row);
  return g_test_run ();
}
