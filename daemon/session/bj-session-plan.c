/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-session-plan.h"

#include "bj-error.h"
#include "bj-name.h"
#include "bj-options.h"
#include "bj-units.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define TASK_MAX (64 * 1024)
#define CHECK_MAX (16 * 1024)
#define WALL_CLOCK_MAX (24 * 60 * 60)
#define CPUS_MAX 16

static gboolean
check_name (GVariant *value, GError **error)
{
  const char *name = g_variant_get_string (value, NULL);

  if (bj_name_is_valid (name))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "“%.64s” is no valid name: use [a-z0-9][a-z0-9._-]{0,62}", name);
}

static gboolean
check_wall_clock (GVariant *value, GError **error)
{
  guint32 seconds = g_variant_get_uint32 (value);

  if (seconds >= 1 && seconds <= WALL_CLOCK_MAX)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "must be 1 to %d seconds", WALL_CLOCK_MAX);
}

static gboolean
check_memory (GVariant *value, GError **error)
{
  guint32 mib = g_variant_get_uint32 (value);

  if (mib >= BJ_MEMORY_MIN_MIB && mib <= BJ_MEMORY_MAX_MIB)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "must be %d to %d MiB", BJ_MEMORY_MIN_MIB, BJ_MEMORY_MAX_MIB);
}

static gboolean
check_cpus (GVariant *value, GError **error)
{
  guint32 cpus = g_variant_get_uint32 (value);

  if (cpus >= 1 && cpus <= CPUS_MAX)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "must be 1 to %d", CPUS_MAX);
}

static gboolean
check_network (GVariant *value, GError **error)
{
  const char *network = g_variant_get_string (value, NULL);

  if (g_str_equal (network, "internet") || g_str_equal (network, "none"))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "must be internet or none");
}

static gboolean
check_command (GVariant *value, GError **error)
{
  gsize length;
  const char *command = g_variant_get_string (value, &length);

  if (length > CHECK_MAX)
    return bj_error_set (error, BJ_ERROR_INVALID, "may have at most %d bytes", CHECK_MAX);
  if (strspn (command, " \t\n") == length)
    return bj_error_set (error, BJ_ERROR_INVALID, "is empty; leave it out for no check");
  return TRUE;
}

static gboolean
check_model (GVariant *value, GError **error)
{
  gsize length;
  const char *model = g_variant_get_string (value, &length);

  if (length >= 1 && length <= 256 && strcspn (model, "\"\\\n\r\t ") == length)
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "is no model name");
}

static gboolean
check_item (GVariant *value, GError **error)
{
  return g_variant_get_uint32 (value) > 0 || bj_error_set (error, BJ_ERROR_INVALID, "must be an item's number, from 1");
}

static const BjOption task_options[] = {
  { "project", "s", check_name },   { "image", "s", check_name },     { "check", "s", check_command },
  { "wall-clock", "u", check_wall_clock }, { "memory-mib", "u", check_memory }, { "cpus", "u", check_cpus },
  { "network", "s", check_network }, { "model", "s", check_model },   { "item", "u", check_item },
  { "keep-failed", "b", NULL },
};

static const BjOption open_options[] = {
  { "project", "s", check_name },          { "image", "s", check_name },   { "wall-clock", "u", check_wall_clock },
  { "memory-mib", "u", check_memory },     { "cpus", "u", check_cpus },    { "network", "s", check_network },
};

static gboolean
is_blank (const char *text)
{
  return strspn (text, " \t\r\n") == strlen (text);
}

/* An item of the task list says what is to be done, too. */
static gboolean
check_all (const char *task, GVariant *options, GError **error)
{
  g_autoptr(GVariant) item = g_variant_lookup_value (options, "item", G_VARIANT_TYPE_UINT32);

  if (task == NULL)
    return bj_options_check (options, open_options, G_N_ELEMENTS (open_options), error);
  if (strlen (task) > TASK_MAX)
    return bj_error_set (error, BJ_ERROR_INVALID, "The task may have at most %d bytes", TASK_MAX);
  if (item == NULL && is_blank (task))
    return bj_error_set (error, BJ_ERROR_INVALID, "The task is empty: say what shall be done");
  return bj_options_check (options, task_options, G_N_ELEMENTS (task_options), error);
}

static char *
dup_option (GVariant *options, const char *key)
{
  char *value = NULL;

  g_variant_lookup (options, key, "s", &value);
  return value;
}

static gboolean
resolve_image (BjSessionPlan *plan, BjContext *context, GVariant *options, GError **error)
{
  g_autofree char *name = dup_option (options, "image");

  if (name == NULL)
    name = g_strdup (context->config->image_default);
  if (name == NULL)
    name = bj_image_store_get_default (context->images);
  if (name == NULL)
    return bj_error_set (error, BJ_ERROR_NOT_FOUND,
                         "There is no base image yet: build one with “belljar image build debian”");
  plan->image = bj_image_store_lookup (context->images, name, error);
  return plan->image != NULL && bj_image_store_check_start (context->images, plan->image, error);
}

static gboolean
resolve_project (BjSessionPlan *plan, BjContext *context, GVariant *options, GError **error)
{
  g_autoptr(BjProjectRow) row = NULL;

  plan->project = dup_option (options, "project");
  if (plan->project == NULL)
    {
      plan->own_project = plan->task != NULL;
      if (plan->own_project)
        plan->project = g_strdup_printf ("task-%s", plan->id);
      return TRUE;
    }
  row = bj_project_store_lookup (context->projects, plan->project, error);
  if (row == NULL)
    return FALSE;
  if (row->owner_uid != plan->owner_uid && plan->owner_uid != 0)
    return bj_error_set (error, BJ_ERROR_DENIED, "The project “%s” belongs to uid %u", plan->project, row->owner_uid);
  plan->owner_gid = row->owner_gid;
  return TRUE;
}

static gboolean
resolve_item (BjSessionPlan *plan, BjContext *context, GVariant *options, GError **error)
{
  g_autoptr(BjTaskRow) row = NULL;

  if (!g_variant_lookup (options, "item", "u", &plan->item))
    return TRUE;
  if (plan->own_project)
    return bj_error_set (error, BJ_ERROR_INVALID, "Option “item”: needs the option “project”, whose task list it is in");
  row = bj_store_dup_task (context->store, plan->project, plan->item, error);
  if (row == NULL)
    return FALSE;
  if (g_str_equal (row->status, "done") || g_str_equal (row->status, "dropped"))
    return bj_error_set (error, BJ_ERROR_INVALID, "Item %u of the project “%s” is %s: set it to todo first", plan->item,
                         plan->project, row->status);
  if (!is_blank (plan->task))
    return TRUE;
  g_free (plan->task);
  plan->task = g_steal_pointer (&row->text);
  return TRUE;
}

static gboolean
resolve_model (BjSessionPlan *plan, BjContext *context, GVariant *options, GError **error)
{
  const BjConfig *config = context->config;

  plan->model = plan->task != NULL ? dup_option (options, "model") : g_strdup ("");
  if (plan->model == NULL)
    plan->model = g_strdup (config->model_name);
  if (plan->task == NULL)
    return TRUE;
  if (plan->model == NULL || *plan->model == '\0')
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "No model is set: give one with --model, or set [model] name in belljar.conf");
  if (g_strcmp0 (plan->model, config->model_name) == 0)
    return TRUE;
  if (config->model_allow != NULL && g_strv_contains ((const char *const *) config->model_allow, plan->model))
    return TRUE;
  return bj_error_set (error, BJ_ERROR_DENIED, "The model “%s” is not among [model] allow in belljar.conf", plan->model);
}

BjSessionPlan *
bj_session_plan_new (BjContext *context, const BjCaller *caller, const char *task, GVariant *options, GError **error)
{
  const BjConfig *config = context->config;
  g_autoptr(BjSessionPlan) plan = g_new0 (BjSessionPlan, 1);
  g_autofree char *network = NULL;

  if (!check_all (task, options, error))
    return NULL;
  plan->id = bj_name_new_id ();
  plan->kind = g_strdup (task != NULL ? "task" : "open");
  plan->task = g_strdup (task);
  plan->owner_uid = caller->uid;
  plan->owner_gid = caller->gid;
  plan->check = dup_option (options, "check");
  plan->wall_clock_s = config->wall_clock_s;
  plan->cpus = config->cpus;
  plan->steps = config->steps;
  g_variant_lookup (options, "wall-clock", "u", &plan->wall_clock_s);
  g_variant_lookup (options, "memory-mib", "u", &plan->memory_mib);
  g_variant_lookup (options, "cpus", "u", &plan->cpus);
  g_variant_lookup (options, "keep-failed", "b", &plan->keep_failed);
  network = dup_option (options, "network");
  plan->wants_network = g_strcmp0 (network, "none") != 0;
  if (!resolve_model (plan, context, options, error) || !resolve_image (plan, context, options, error)
      || !resolve_project (plan, context, options, error) || !resolve_item (plan, context, options, error))
    return NULL;
  return g_steal_pointer (&plan);
}

static char *
options_to_json (const BjSessionPlan *plan)
{
  g_autoptr(JsonBuilder) builder = json_builder_new ();
  g_autoptr(JsonNode) root = NULL;

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "own-project");
  json_builder_add_boolean_value (builder, plan->own_project);
  json_builder_set_member_name (builder, "check");
  if (plan->check != NULL)
    json_builder_add_string_value (builder, plan->check);
  else
    json_builder_add_null_value (builder);
  json_builder_set_member_name (builder, "model");
  json_builder_add_string_value (builder, plan->model);
  json_builder_set_member_name (builder, "wall-clock");
  json_builder_add_int_value (builder, plan->wall_clock_s);
  json_builder_set_member_name (builder, "memory-mib");
  json_builder_add_int_value (builder, plan->memory_mib);
  json_builder_set_member_name (builder, "cpus");
  json_builder_add_int_value (builder, plan->cpus);
  json_builder_set_member_name (builder, "steps");
  json_builder_add_int_value (builder, plan->steps);
  json_builder_set_member_name (builder, "network");
  json_builder_add_boolean_value (builder, plan->wants_network);
  json_builder_set_member_name (builder, "keep-failed");
  json_builder_add_boolean_value (builder, plan->keep_failed);
  json_builder_set_member_name (builder, "gid");
  json_builder_add_int_value (builder, plan->owner_gid);
  json_builder_end_object (builder);
  root = json_builder_get_root (builder);
  return json_to_string (root, FALSE);
}

void
bj_session_plan_fill_row (const BjSessionPlan *plan, BjSessionRow *row)
{
  row->id = g_strdup (plan->id);
  row->kind = g_strdup (plan->kind);
  row->project = g_strdup (plan->project != NULL ? plan->project : "");
  row->image = g_strdup (plan->image != NULL ? plan->image->name : "");
  row->image_version = plan->image != NULL ? plan->image->version : 0;
  row->owner_uid = plan->owner_uid;
  row->slot = plan->slot;
  row->task = g_strdup (plan->task != NULL ? plan->task : "");
  row->options = options_to_json (plan);
}

BjSessionPlan *
bj_session_plan_from_row (BjContext *context, const BjSessionRow *row)
{
  BjSessionPlan *plan = g_new0 (BjSessionPlan, 1);
  g_autoptr(JsonNode) root = json_from_string (row->options, NULL);
  g_autoptr(JsonObject) empty = json_object_new ();
  JsonObject *options = root != NULL && JSON_NODE_HOLDS_OBJECT (root) ? json_node_get_object (root) : empty;

  plan->id = g_strdup (row->id);
  plan->kind = g_strdup (row->kind);
  plan->task = g_str_equal (row->kind, "task") ? g_strdup (row->task) : NULL;
  plan->project = *row->project != '\0' ? g_strdup (row->project) : NULL;
  plan->own_project = json_object_get_boolean_member_with_default (options, "own-project", FALSE);
  plan->image = bj_image_store_lookup (context->images, row->image, NULL);
  plan->check = g_strdup (json_object_get_string_member_with_default (options, "check", NULL));
  plan->model = g_strdup (json_object_get_string_member_with_default (options, "model", ""));
  plan->wall_clock_s = (guint) json_object_get_int_member_with_default (options, "wall-clock", 0);
  plan->memory_mib = (guint) json_object_get_int_member_with_default (options, "memory-mib", 0);
  plan->cpus = (guint) json_object_get_int_member_with_default (options, "cpus", 1);
  plan->steps = (guint) json_object_get_int_member_with_default (options, "steps", 0);
  plan->wants_network = json_object_get_boolean_member_with_default (options, "network", FALSE);
  plan->keep_failed = json_object_get_boolean_member_with_default (options, "keep-failed", FALSE);
  plan->owner_uid = row->owner_uid;
  plan->owner_gid = (gid_t) json_object_get_int_member_with_default (options, "gid", 0);
  plan->slot = row->slot;
  return plan;
}

void
bj_session_plan_free (BjSessionPlan *plan)
{
  g_free (plan->id);
  g_free (plan->kind);
  g_free (plan->task);
  g_free (plan->project);
  g_clear_pointer (&plan->image, bj_image_free);
  g_free (plan->check);
  g_free (plan->model);
  g_free (plan);
}
