/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-private.h"

#include "bj-domain-xml.h"
#include "bj-libvirt.h"
#include "bj-qmp.h"

#include <libvirt/libvirt-qemu.h>
#include <string.h>

#define CALL_SECONDS 10
#define MAX_REPLY (5u << 20) /* characters of one JSON answer */
#define AWAY_LIMIT (10 * G_USEC_PER_SEC)
#define AWAY_PAUSE_US 20000
#define REVIVE_INTERVAL (30 * G_USEC_PER_SEC)

static virDomainPtr
ref_domain (BjGuest *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  if (self->domain != NULL)
    virDomainRef (self->domain);
  return self->domain;
}

static gboolean
set_state_error (int state, int reason, const char *text, GError **error)
{
  if (state == VIR_DOMAIN_NOSTATE || state == VIR_DOMAIN_SHUTOFF || state == VIR_DOMAIN_SHUTDOWN
      || state == VIR_DOMAIN_CRASHED)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine is gone: it was switched off or crashed");
  if (state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_IOERROR)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE,
                         "The machine is stopped because the host's disk is full: make room and resume it");
  if (state == VIR_DOMAIN_PAUSED)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine is paused: resume it first");
  return text == NULL
         || bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE,
                          "The machine runs, but the agent in the guest does not answer: %s", text);
}

/* Call it right after libvirt failed: it uses this thread's last error. */
static gboolean
set_unreachable (virDomainPtr domain, GError **error)
{
  const virError *last = virGetLastError ();
  g_autofree char *text = bj_libvirt_clean_text (last ? last->message : NULL);
  int state = VIR_DOMAIN_NOSTATE;
  int reason = 0;

  if (virDomainGetState (domain, &state, &reason, 0) < 0)
    state = VIR_DOMAIN_NOSTATE;
  return set_state_error (state, reason, text, error);
}

gboolean
bj_guest_set_unreachable (BjGuest *self, const char *text, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self);
  int state = VIR_DOMAIN_NOSTATE;
  int reason = 0;

  if (domain == NULL)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine is gone: it is not started");
  if (virDomainGetState (domain, &state, &reason, 0) < 0)
    state = VIR_DOMAIN_NOSTATE;
  return set_state_error (state, reason, text, error);
}

gboolean
bj_guest_check_running (BjGuest *self, GError **error)
{
  return bj_guest_set_unreachable (self, NULL, error);
}

/* The agent is well and refuses: its text is the guest's. */
static gboolean
is_refusal (const virError *last)
{
  return last != NULL && last->message != NULL && strstr (last->message, "unable to execute QEMU agent command") != NULL;
}

static gboolean
set_call_error (virDomainPtr domain, const char *command, GError **error)
{
  const virError *last = virGetLastError ();

  if (!is_refusal (last))
    return set_unreachable (domain, error);
  if (strstr (last->message, "No such file or directory") != NULL)
    return bj_libvirt_set_error (error, BJ_ERROR_NOT_FOUND, "The guest's agent refused %s", command);
  return bj_libvirt_set_error (error, BJ_ERROR_FAILED, "The guest's agent refused %s", command);
}

static JsonNode *
parse_reply (const char *reply, GError **error)
{
  g_autoptr(JsonNode) root = bj_qmp_parse (reply, MAX_REPLY);
  JsonNode *result = NULL;

  if (root != NULL && JSON_NODE_HOLDS_OBJECT (root))
    result = json_object_get_member (json_node_get_object (root), "return");
  if (result == NULL)
    {
      bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest agent's answer is malformed");
      return NULL;
    }
  return json_node_ref (result);
}

static void
note_answer (BjGuest *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);

  self->answered = TRUE;
}

static JsonNode *
call_once (BjGuest *self, const char *command, const char *json, GError **error)
{
  g_autoptr(virDomain) domain = ref_domain (self);
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = NULL;
  char *reply;
  JsonNode *result;

  if (domain == NULL)
    {
      bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The machine is gone: it is not started");
      return NULL;
    }
  locker = g_mutex_locker_new (&self->calls);
  virResetLastError ();
  reply = virDomainQemuAgentCommand (domain, json, CALL_SECONDS, 0);
  g_clear_pointer (&locker, g_mutex_locker_free);
  if (reply == NULL)
    {
      set_call_error (domain, command, error);
      return NULL;
    }
  note_answer (self);
  result = parse_reply (reply, error);
  free (reply);
  return result;
}

static JsonNode *
call (BjGuest *self, const char *command, JsonObject *arguments, GError **error)
{
  g_autofree char *json = bj_qmp_build_command (command, arguments);

  return call_once (self, command, json, error);
}

/* For what starts something: an agent that restarts, or that libvirt meets again after our restart, is away a moment. */
static JsonNode *
call_patiently (BjGuest *self, const char *command, JsonObject *arguments, GError **error)
{
  g_autofree char *json = bj_qmp_build_command (command, arguments);
  gint64 start = g_get_monotonic_time ();

  for (;;)
    {
      g_autoptr(GError) local = NULL;
      JsonNode *result = call_once (self, command, json, &local);
      gint64 away = g_get_monotonic_time () - start;

      if (result != NULL)
        return result;
      if (!g_error_matches (local, BJ_ERROR, BJ_ERROR_GUEST_UNREACHABLE) || away > AWAY_LIMIT
          || bj_lane_is_open (self->lanes[BJ_GUEST_CONTROL]) || !bj_guest_is_running (self))
        {
          g_propagate_error (error, g_steal_pointer (&local));
          return NULL;
        }
      if (away > AWAY_LIMIT / 4)
        bj_guest_revive (self);
      g_usleep (AWAY_PAUSE_US);
    }
}

static JsonNode *
get_value (JsonNode *node, const char *name, GType type)
{
  JsonNode *member = JSON_NODE_HOLDS_OBJECT (node) ? json_object_get_member (json_node_get_object (node), name) : NULL;

  return member != NULL && JSON_NODE_HOLDS_VALUE (member) && json_node_get_value_type (member) == type ? member : NULL;
}

static gboolean
take_int (JsonNode *node, gint64 *number, GError **error)
{
  if (node == NULL || json_node_get_value_type (node) != G_TYPE_INT64)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest agent's answer is malformed");
  *number = json_node_get_int (node);
  return TRUE;
}

static GBytes *
take_base64 (JsonNode *node, const char *name)
{
  JsonNode *member = get_value (node, name, G_TYPE_STRING);
  gsize size = 0;
  guchar *data;

  if (member == NULL)
    return g_bytes_new (NULL, 0);
  data = g_base64_decode (json_node_get_string (member), &size);
  return g_bytes_new_take (data, size);
}

static void
set_base64 (JsonObject *object, const char *name, gconstpointer data, gsize size)
{
  g_autofree char *text = g_base64_encode (data, size);

  json_object_set_string_member (object, name, text);
}

gboolean
bj_guest_agent_exec (BjGuest *self, const char *const *argv, GBytes *input, gint64 *pid, GError **error)
{
  JsonObject *arguments = json_object_new ();
  JsonArray *rest = json_array_new ();
  g_autoptr(JsonNode) result = NULL;

  json_object_set_string_member (arguments, "path", argv[0]);
  for (guint i = 1; argv[i] != NULL; i++)
    json_array_add_string_element (rest, argv[i]);
  json_object_set_array_member (arguments, "arg", rest);
  json_object_set_boolean_member (arguments, "capture-output", TRUE);
  if (input != NULL)
    set_base64 (arguments, "input-data", g_bytes_get_data (input, NULL), g_bytes_get_size (input));
  result = call_patiently (self, "guest-exec", arguments, error);
  return result != NULL && take_int (get_value (result, "pid", G_TYPE_INT64), pid, error);
}

static gboolean
judge_end (JsonNode *status, GError **error)
{
  JsonNode *code = get_value (status, "exitcode", G_TYPE_INT64);
  g_autoptr(GBytes) err = NULL;
  g_autofree char *raw = NULL;
  g_autofree char *text = NULL;

  if (code != NULL && json_node_get_int (code) == 0)
    return TRUE;
  if (code == NULL)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "Something in the guest killed %s", BJ_RUN_PROGRAM);
  err = take_base64 (status, "err-data");
  raw = g_strndup (g_bytes_get_data (err, NULL), g_bytes_get_size (err));
  text = bj_libvirt_clean_text (raw);
  return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "%s in the guest failed with exit code %" G_GINT64_FORMAT ": %s",
                       BJ_RUN_PROGRAM, json_node_get_int (code), text);
}

gboolean
bj_guest_agent_exec_status (BjGuest *self, gint64 pid, gboolean *exited, GBytes **output, GError **error)
{
  JsonObject *arguments = json_object_new ();
  g_autoptr(JsonNode) result = NULL;
  JsonNode *member;

  json_object_set_int_member (arguments, "pid", pid);
  result = call (self, "guest-exec-status", arguments, error);
  if (result == NULL)
    return FALSE;
  member = get_value (result, "exited", G_TYPE_BOOLEAN);
  if (member == NULL)
    return bj_error_set (error, BJ_ERROR_GUEST_UNREACHABLE, "The guest agent's answer is malformed");
  *exited = json_node_get_boolean (member);
  if (!*exited)
    return TRUE;
  if (!judge_end (result, error))
    return FALSE;
  *output = take_base64 (result, "out-data");
  if (*output == NULL)
    *output = g_bytes_new_static ("", 0); /* nothing, or nothing that could be read: no answer of run's either way */
  return TRUE;
}

gboolean
bj_guest_agent_open (BjGuest *self, const char *path, const char *mode, gint64 *handle, GError **error)
{
  JsonObject *arguments = json_object_new ();
  g_autoptr(JsonNode) result = NULL;

  json_object_set_string_member (arguments, "path", path);
  json_object_set_string_member (arguments, "mode", mode);
  result = call_patiently (self, "guest-file-open", arguments, error);
  return result != NULL && take_int (JSON_NODE_HOLDS_VALUE (result) ? result : NULL, handle, error);
}

gboolean
bj_guest_agent_write (BjGuest *self, gint64 handle, gconstpointer data, gsize size, GError **error)
{
  JsonObject *arguments = json_object_new ();
  JsonObject *flush = json_object_new ();
  g_autoptr(JsonNode) result = NULL;
  g_autoptr(JsonNode) flushed = NULL;
  gint64 count = 0;

  json_object_set_int_member (arguments, "handle", handle);
  set_base64 (arguments, "buf-b64", data, size);
  json_object_set_int_member (flush, "handle", handle);
  result = call (self, "guest-file-write", arguments, error);
  if (result == NULL || !take_int (get_value (result, "count", G_TYPE_INT64), &count, error))
    {
      json_object_unref (flush);
      return FALSE;
    }
  flushed = call (self, "guest-file-flush", flush, error);
  if (flushed == NULL)
    return FALSE;
  if (count != (gint64) size)
    return bj_error_set (error, BJ_ERROR_NO_SPACE, "The guest's /run is full");
  return TRUE;
}

void
bj_guest_agent_close (BjGuest *self, gint64 handle)
{
  JsonObject *arguments = json_object_new ();
  g_autoptr(JsonNode) result = NULL;
  g_autoptr(GError) error = NULL;

  json_object_set_int_member (arguments, "handle", handle);
  result = call (self, "guest-file-close", arguments, &error);
  if (result == NULL)
    g_debug ("Closing a file in the guest: %s", error->message);
}

gboolean
bj_guest_is_paused (BjGuest *self)
{
  g_autoptr(virDomain) domain = ref_domain (self);
  int state = VIR_DOMAIN_NOSTATE;
  int reason = 0;

  return domain != NULL && virDomainGetState (domain, &state, &reason, 0) == 0 && state == VIR_DOMAIN_PAUSED
         && reason != VIR_DOMAIN_PAUSED_IOERROR;
}

gboolean
bj_guest_is_running (BjGuest *self)
{
  g_autoptr(virDomain) domain = ref_domain (self);
  int state = VIR_DOMAIN_NOSTATE;

  return domain != NULL && virDomainGetState (domain, &state, NULL, 0) == 0
         && (state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED);
}

static gboolean
may_revive (BjGuest *self, gboolean known, gint64 *revived)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->lock);
  gint64 now = g_get_monotonic_time ();

  if (!known || (*revived != 0 && now - *revived < REVIVE_INTERVAL))
    return FALSE;
  *revived = now;
  return TRUE;
}

static gboolean
plug_anew (BjGuest *self, virDomainPtr domain, BjDomainChannel channel)
{
  g_autofree char *xml = bj_domain_xml_build_channel (self->run_dir, channel);

  if (virDomainDetachDeviceFlags (domain, xml, VIR_DOMAIN_AFFECT_LIVE) < 0)
    return FALSE;
  /* The guest confirms the unplugging; libvirt then knows the channel no more and takes a new one. */
  for (int i = 0; i < 50; i++)
    {
      g_usleep (100000);
      if (virDomainAttachDeviceFlags (domain, xml, VIR_DOMAIN_AFFECT_LIVE) == 0)
        return TRUE;
    }
  return FALSE;
}

gboolean
bj_guest_revive (BjGuest *self)
{
  g_autoptr(virDomain) domain = ref_domain (self);

  if (domain == NULL || virDomainIsActive (domain) != 1 || !may_revive (self, self->answered, &self->revived))
    return FALSE;
  g_message ("The guest agent of %s does not answer: plugging its channel anew", virDomainGetName (domain));
  return plug_anew (self, domain, BJ_DOMAIN_CHANNEL_AGENT);
}

/* A server that was stopped does not notice that its port goes; but the agent can have it started anew. */
gboolean
bj_guest_revive_lanes (BjGuest *self)
{
  const char *argv[] = { "/usr/bin/systemctl", "--no-block", "restart", "belljar-lane@control.service",
                         "belljar-lane@bulk.service", NULL };
  g_autoptr(virDomain) domain = ref_domain (self);
  g_autoptr(GError) error = NULL;
  gint64 pid;

  if (domain == NULL || virDomainIsActive (domain) != 1
      || !may_revive (self, self->lanes_known, &self->lanes_revived))
    return FALSE;
  g_message ("The server in the guest %s does not answer: plugging its channels anew", virDomainGetName (domain));
  plug_anew (self, domain, BJ_DOMAIN_CHANNEL_CONTROL);
  plug_anew (self, domain, BJ_DOMAIN_CHANNEL_BULK);
  if (!bj_guest_agent_exec (self, argv, NULL, &pid, &error))
    g_message ("Nor does the agent: %s", error->message);
  return TRUE;
}
