/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-agent"

/* What the agent may know of the project's history. The daemon keeps it; a repository that a guest makes is only data. */

#include "bj-agent-verbs.h"

#include "bj-error.h"
#include "bj-record.h"
#include "bj-untrusted.h"

#include <string.h>

#define CHANGES_MAX 200
#define WARNINGS_MAX 20
#define PATCH_MAX (256 * 1024)
#define COMMITS_MAX 100
#define SUBJECT_MAX 500

static const char *
get_project (BjAgentPeer *peer, GError **error)
{
  const char *project = bj_session_get_plan (bj_agent_peer_get_session (peer))->project;

  if (project == NULL)
    bj_error_set (error, BJ_ERROR_NOT_FOUND, "This session has no project");
  return project;
}

static BjProjectStore *
get_store (BjAgentPeer *peer)
{
  return bj_session_get_context (bj_agent_peer_get_session (peer))->projects;
}

static void
record_read (BjAgentPeer *peer, const char *tool, const char *path, guint64 bytes)
{
  bj_session_record (bj_agent_peer_get_session (peer), TRUE, "file", bj_record_file ("read", tool, path, bytes));
}

static void
add_change (GVariantBuilder *changes, JsonObject *entry)
{
  g_variant_builder_open (changes, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (changes, "{sv}", "path", g_variant_new_string (json_object_get_string_member (entry, "path")));
  g_variant_builder_add (changes, "{sv}", "encoded",
                         g_variant_new_boolean (json_object_get_boolean_member (entry, "path_encoded")));
  g_variant_builder_add (changes, "{sv}", "status", g_variant_new_string (json_object_get_string_member (entry, "status")));
  g_variant_builder_add (changes, "{sv}", "added",
                         g_variant_new_int32 ((gint32) json_object_get_int_member (entry, "added")));
  g_variant_builder_add (changes, "{sv}", "removed",
                         g_variant_new_int32 ((gint32) json_object_get_int_member (entry, "removed")));
  g_variant_builder_close (changes);
}

GVariant *
bj_agent_verb_git_status (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *project = get_project (peer, error);
  g_auto(GVariantBuilder) changes = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));
  g_autoptr(JsonArray) entries = NULL;
  g_auto(GStrv) warnings = NULL;
  guint64 total = 0;

  if (project == NULL)
    return NULL;
  entries = bj_project_store_status (get_store (peer), project, &total, &warnings, bj_agent_peer_get_cancellable (peer), error);
  if (entries == NULL)
    return NULL;
  for (guint i = 0; i < json_array_get_length (entries) && i < CHANGES_MAX; i++)
    add_change (&changes, json_array_get_object_element (entries, i));
  for (guint i = 0; warnings[i] != NULL; i++)
    if (i >= WARNINGS_MAX)
      g_clear_pointer (&warnings[i], g_free);
  record_read (peer, "git_status", ".", total);
  return g_variant_new ("(@aa{sv}t^as)", g_variant_builder_end (&changes), total, warnings);
}

static gboolean
is_empty (GVariant *bytes)
{
  gsize length;
  const char *data = g_variant_get_fixed_array (bytes, &length, 1);

  return length == 0 || (length == 1 && *data == '\0');
}

/* Beneath the project's folder, whatever it says: the helper compares it with names in trees and opens nothing by it. */
static gboolean
check_beneath (const char *path, GError **error)
{
  g_auto(GStrv) parts = g_strsplit (path, "/", -1);

  for (guint i = 0; parts[i] != NULL; i++)
    if (g_str_equal (parts[i], "") || g_str_equal (parts[i], ".") || g_str_equal (parts[i], ".."))
      return bj_error_set (error, BJ_ERROR_INVALID, "The path must be one below the project's folder, without \".\" and \"..\"");
  return TRUE;
}

GVariant *
bj_agent_verb_git_diff (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *project = get_project (peer, error);
  g_autoptr(GVariant) bytes = NULL;
  g_autofree char *path = NULL;
  g_autoptr(GBytes) patch = NULL;
  gboolean cut = FALSE;

  g_variant_get (arguments, "(@ay)", &bytes);
  if (project == NULL)
    return NULL;
  if (!is_empty (bytes)
      && ((path = bj_agent_verb_dup_path (bytes, error)) == NULL || !check_beneath (path, error)))
    return NULL;
  patch = bj_project_store_patch (get_store (peer), project, path, PATCH_MAX, &cut, bj_agent_peer_get_cancellable (peer), error);
  if (patch == NULL)
    return NULL;
  record_read (peer, "git_diff", path != NULL ? path : ".", g_bytes_get_size (patch));
  return g_variant_new ("(@ayb)", g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, patch, TRUE), cut);
}

static void
add_commit (GVariantBuilder *commits, JsonObject *entry)
{
  static const char *const texts[] = { "commit", "subject", "verdict", "session" };

  g_variant_builder_open (commits, G_VARIANT_TYPE_VARDICT);
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      const char *text = json_object_get_string_member (entry, texts[i]);

      g_variant_builder_add (commits, "{sv}", texts[i],
                             g_variant_new_take_string (bj_untrusted_escape (text, -1, SUBJECT_MAX)));
    }
  g_variant_builder_add (commits, "{sv}", "time", g_variant_new_uint64 ((guint64) json_object_get_int_member (entry, "time")));
  g_variant_builder_close (commits);
}

GVariant *
bj_agent_verb_git_log (BjAgentPeer *peer, GVariant *arguments, GError **error)
{
  const char *project = get_project (peer, error);
  g_auto(GVariantBuilder) commits = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("aa{sv}"));
  g_autoptr(JsonArray) log = NULL;
  guint count;

  g_variant_get (arguments, "(u)", &count);
  if (project == NULL)
    return NULL;
  log = bj_project_store_log (get_store (peer), project, MIN (count, COMMITS_MAX), error);
  if (log == NULL)
    return NULL;
  for (guint i = 0; i < json_array_get_length (log); i++)
    add_commit (&commits, json_array_get_object_element (log, i));
  record_read (peer, "git_log", ".", json_array_get_length (log));
  return g_variant_new ("(@aa{sv})", g_variant_builder_end (&commits));
}
