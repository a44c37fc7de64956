/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-session"

/* A session's agent process: what it is told. */

#include "bj-work.h"

gboolean
bj_work_probe_model (BjWork *work, GError **error)
{
  g_clear_pointer (&work->model, g_variant_unref);
  if (work->plan->task == NULL)
    return TRUE;
  bj_session_set_activity (work->session, "asking the model server");
  work->model = bj_gateway_probe (work->gateway, work->plan->model, error);
  return work->model != NULL;
}

/* One that goes on after a question gets what the one that asked left, and the answer. */
static void
add_answer (BjWork *work, GVariantDict *task)
{
  g_autoptr(GBytes) memory = NULL;
  g_autofree char *answer = bj_session_dup_answer (work->session, &memory);

  if (answer == NULL || memory == NULL)
    return;
  g_variant_dict_insert (task, "answer", "s", answer);
  g_variant_dict_insert_value (task, "memory", g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, memory, FALSE));
}

static GVariant *
describe_task (BjWork *work)
{
  const BjSessionPlan *plan = work->plan;
  g_auto(GVariantDict) task = G_VARIANT_DICT_INIT (NULL);
  g_autofree char *folder = g_strconcat ("/work/", plan->project, NULL);
  gboolean tools = TRUE;
  gboolean vision = FALSE;
  gboolean thinking = FALSE;
  guint32 context = 0;
  int wanted_vision = work->context->config->model_vision;

  g_variant_lookup (work->model, "tools", "b", &tools);
  g_variant_lookup (work->model, "vision", "b", &vision);
  g_variant_lookup (work->model, "thinking", "b", &thinking);
  g_variant_lookup (work->model, "context", "u", &context);
  g_variant_dict_insert (&task, "task", "s", plan->task);
  g_variant_dict_insert (&task, "project", "s", plan->project);
  g_variant_dict_insert_value (&task, "folder", g_variant_new_bytestring (folder));
  g_variant_dict_insert (&task, "os", "s", plan->image->os);
  g_variant_dict_insert (&task, "model", "s", plan->model);
  g_variant_dict_insert (&task, "check", "s", work->check != NULL ? work->check : "");
  g_variant_dict_insert (&task, "output-bytes", "u", (guint32) work->context->config->output_bytes);
  g_variant_dict_insert (&task, "context", "u", context);
  g_variant_dict_insert (&task, "vision", "b", wanted_vision >= 0 ? wanted_vision == 1 : vision);
  g_variant_dict_insert (&task, "think", "b", thinking);
  g_variant_dict_insert (&task, "textual-tools", "b", !tools);
  g_variant_dict_insert (&task, "network", "s", work->network ? "internet" : "none");
  add_answer (work, &task);
  return g_variant_dict_end (&task);
}

gboolean
bj_work_start_agent (BjWork *work, GError **error)
{
  GVariant *task = describe_task (work);

  bj_session_end_wait (work->session); /* its verbs are refused until then */
  bj_session_set_activity (work->session, "thinking");
  work->agent = bj_agent_peer_start (work->session, work->gateway, task, error);
  return work->agent != NULL;
}
