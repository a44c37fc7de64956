/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-monitor.h"

#include "bj-qmp.h"

#include <libvirt/libvirt-qemu.h>
#include <string.h>

#define MAX_REPLY (1u << 20)
#define STATE_SECONDS 60
#define MEMORY_SECONDS 600
#define STATE_PAUSE_US 2000
#define STATE_PAUSE_MAX_US 100000
#define MEMORY_BYTES_PER_SECOND (4ll << 30) /* QEMU would spare a network with an eighth of that */
#define STATE_FD "belljar-state"

static JsonNode *
take_answer (const char *command, const char *reply, GError **error)
{
  g_autoptr(JsonNode) root = bj_qmp_parse (reply, MAX_REPLY);
  JsonObject *object = root != NULL && JSON_NODE_HOLDS_OBJECT (root) ? json_node_get_object (root) : NULL;
  JsonNode *result = object != NULL ? json_object_get_member (object, "return") : NULL;
  JsonNode *failure = object != NULL ? json_object_get_member (object, "error") : NULL;
  g_autofree char *text = NULL;

  if (result != NULL)
    return json_node_ref (result);
  if (failure != NULL && JSON_NODE_HOLDS_OBJECT (failure))
    text = bj_libvirt_clean_text (json_object_get_string_member_with_default (json_node_get_object (failure), "desc", ""));
  bj_error_set (error, BJ_ERROR_FAILED, "QEMU refused %s: %s", command, text != NULL ? text : "its answer is malformed");
  return NULL;
}

JsonNode *
bj_monitor_call (virDomainPtr domain, const char *command, JsonObject *arguments, int fd, GError **error)
{
  g_autofree char *json = bj_qmp_build_command (command, arguments);
  char *reply = NULL;
  JsonNode *result;

  virResetLastError ();
  if (virDomainQemuMonitorCommandWithFiles (domain, json, fd >= 0, fd >= 0 ? &fd : NULL, NULL, NULL, &reply, 0) < 0)
    {
      bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Asking QEMU for %s", command);
      return NULL;
    }
  result = take_answer (command, reply, error);
  free (reply);
  return result;
}

gboolean
bj_monitor_do (virDomainPtr domain, const char *command, JsonObject *arguments, GError **error)
{
  g_autoptr(JsonNode) result = bj_monitor_call (domain, command, arguments, -1, error);

  return result != NULL;
}

/* Memory that is a shared file is not part of the stream, unless it is asked for. */
static gboolean
choose_memory (virDomainPtr domain, gboolean with_memory, GError **error)
{
  JsonObject *capability = json_object_new ();
  JsonObject *arguments = json_object_new ();
  JsonArray *capabilities = json_array_new ();

  json_object_set_string_member (capability, "capability", "x-ignore-shared");
  json_object_set_boolean_member (capability, "state", !with_memory);
  json_array_add_object_element (capabilities, capability);
  json_object_set_array_member (arguments, "capabilities", capabilities);
  return bj_monitor_do (domain, "migrate-set-capabilities", arguments, error);
}

static gboolean
hand_over (virDomainPtr domain, int fd, GError **error)
{
  JsonObject *arguments = json_object_new ();
  g_autoptr(JsonNode) result = NULL;

  json_object_set_string_member (arguments, "fdname", STATE_FD);
  result = bj_monitor_call (domain, "getfd", arguments, fd, error);
  return result != NULL;
}

static gboolean
wait_for_stream (virDomainPtr domain, guint seconds, GCancellable *cancellable, GError **error)
{
  gint64 deadline = g_get_monotonic_time () + (gint64) seconds * G_USEC_PER_SEC;
  gulong pause_us = STATE_PAUSE_US;

  while (g_get_monotonic_time () < deadline)
    {
      g_autoptr(JsonNode) result = bj_monitor_call (domain, "query-migrate", NULL, -1, error);
      const char *status;

      if (result == NULL || g_cancellable_set_error_if_cancelled (cancellable, error))
        return FALSE;
      status = JSON_NODE_HOLDS_OBJECT (result)
                   ? json_object_get_string_member_with_default (json_node_get_object (result), "status", "")
                   : "";
      if (g_str_equal (status, "completed"))
        return TRUE;
      if (g_str_equal (status, "failed") || g_str_equal (status, "cancelled"))
        return bj_error_set (error, BJ_ERROR_FAILED, "QEMU could not save or load the machine's state");
      g_usleep (pause_us);
      pause_us = MIN (pause_us * 2, STATE_PAUSE_MAX_US);
    }
  return bj_error_set (error, BJ_ERROR_FAILED, "QEMU did not save or load the machine's state in time");
}

static gboolean
allow_speed (virDomainPtr domain, GError **error)
{
  JsonObject *arguments = json_object_new ();

  json_object_set_int_member (arguments, "max-bandwidth", MEMORY_BYTES_PER_SECOND);
  return bj_monitor_do (domain, "migrate-set-parameters", arguments, error);
}

static gboolean
move (virDomainPtr domain, const char *command, int fd, gboolean with_memory, GCancellable *cancellable, GError **error)
{
  JsonObject *arguments;

  if (!choose_memory (domain, with_memory, error) || (with_memory && !allow_speed (domain, error))
      || !hand_over (domain, fd, error))
    return FALSE;
  arguments = json_object_new ();
  json_object_set_string_member (arguments, "uri", "fd:" STATE_FD);
  return bj_monitor_do (domain, command, arguments, error)
         && wait_for_stream (domain, with_memory ? MEMORY_SECONDS : STATE_SECONDS, cancellable, error);
}

gboolean
bj_monitor_save_state (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error)
{
  return move (domain, "migrate", fd, FALSE, cancellable, error);
}

gboolean
bj_monitor_load_state (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error)
{
  return move (domain, "migrate-incoming", fd, FALSE, cancellable, error);
}

gboolean
bj_monitor_save_machine (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error)
{
  return move (domain, "migrate", fd, TRUE, cancellable, error);
}

gboolean
bj_monitor_load_machine (virDomainPtr domain, int fd, GCancellable *cancellable, GError **error)
{
  return move (domain, "migrate-incoming", fd, TRUE, cancellable, error);
}
