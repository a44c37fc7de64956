/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-project-git.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-project-answer.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <git2/sys/commit.h>
#include <git2/sys/repository.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAIN "refs/heads/main"
#define REF_MAX 4096
#define PACKED_REFS_MAX (1024 * 1024)
#define TRAILER_PREFIX "Belljar-"

G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_repository, git_repository_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_odb, git_odb_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_commit, git_commit_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (git_signature, git_signature_free)

static gboolean
git_failed (GError **error, const char *what)
{
  const git_error *last = git_error_last ();

  return bj_error_set (error, BJ_ERROR_FAILED, "%s: %s", what, last != NULL ? last->message : "unknown failure of libgit2");
}

/* Nobody's configuration counts: neither the machine's nor the one of the account that runs the daemon. */
static gboolean
start_git (GError **error)
{
  static gsize started;

  if (g_once_init_enter (&started))
    {
      int result = git_libgit2_init ();

      for (int level = GIT_CONFIG_LEVEL_PROGRAMDATA; level <= GIT_CONFIG_LEVEL_GLOBAL; level++)
        git_libgit2_opts (GIT_OPT_SET_SEARCH_PATH, level, "");
      git_libgit2_opts (GIT_OPT_SET_TEMPLATE_PATH, "");
      g_once_init_leave (&started, result < 0 ? 1 : 2);
    }
  return started == 2 || git_failed (error, "Starting libgit2");
}

gboolean
bj_project_git_init (const char *path, GError **error)
{
  g_autoptr(git_repository) repository = NULL;
  git_repository_init_options options;

  if (!start_git (error))
    return FALSE;
  git_repository_init_options_init (&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION);
  options.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR | GIT_REPOSITORY_INIT_NO_REINIT;
  options.initial_head = "main";
  return git_repository_init_ext (&repository, path, &options) >= 0 || git_failed (error, "Making the repository");
}

/* The objects, without the repository around them: through the fd, so that nobody can put another folder in its place. */
static git_repository *
open_objects (int repo, GError **error)
{
  g_autofree char *path = g_strdup_printf ("/proc/self/fd/%d/objects", repo);
  g_autoptr(git_odb) odb = NULL;
  g_autoptr(git_repository) repository = NULL;

  if (!start_git (error))
    return NULL;
  if (git_odb_open (&odb, path) < 0 || git_repository_new (&repository) < 0 || git_repository_set_odb (repository, odb) < 0)
    {
      git_failed (error, "Opening the repository");
      return NULL;
    }
  return g_steal_pointer (&repository);
}

static char *
read_small (int repo, const char *path, gsize max, GError **error)
{
  g_auto(BjFd) fd = openat (repo, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  g_autoptr(GBytes) bytes = NULL;

  if (fd < 0 && errno == ENOENT)
    return g_strdup ("");
  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Reading %s of the project's repository", path);
      return NULL;
    }
  bytes = bj_fd_read_to_end (fd, max, error);
  if (bytes == NULL)
    return NULL;
  return g_bytes_get_size (bytes) > 0 ? g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes)) : g_strdup ("");
}

/* An administrator's "git gc" moves branches into one file. */
static char *
find_packed (int repo, GError **error)
{
  g_autofree char *text = read_small (repo, "packed-refs", PACKED_REFS_MAX, error);
  g_auto(GStrv) lines = text != NULL ? g_strsplit (text, "\n", -1) : NULL;

  for (guint i = 0; lines != NULL && lines[i] != NULL; i++)
    if (strlen (lines[i]) > 41 && strcmp (lines[i] + 40, " " MAIN) == 0)
      return g_strndup (lines[i], 40);
  return text != NULL ? g_strdup ("") : NULL;
}

/* Returns: (transfer full): the id, "" when there is no commit yet, %NULL on failure */
static char *
read_main (int repo, GError **error)
{
  g_autofree char *text = read_small (repo, MAIN, REF_MAX, error);

  if (text != NULL && *text == '\0')
    {
      g_free (text);
      text = find_packed (repo, error);
    }
  if (text == NULL)
    return NULL;
  g_strchomp (text);
  if (*text != '\0' && !bj_project_id_is_valid (text))
    {
      bj_error_set (error, BJ_ERROR_FAILED, "The branch main of the project's repository is damaged: it holds no commit's id");
      return NULL;
    }
  return g_steal_pointer (&text);
}

static gboolean
write_main (int repo, const char *id, GError **error)
{
  g_autofree char *line = g_strdup_printf ("%s\n", id);
  g_auto(BjFd) fd = openat (repo, MAIN ".lock", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

  if (fd < 0)
    return bj_fd_set_io_error (error, errno, "Writing the branch main");
  if (!bj_fd_write_all (fd, line, strlen (line), error))
    return FALSE;
  /* Objects first, then the name that leads to them. */
  if (syncfs (repo) < 0 || renameat (repo, MAIN ".lock", repo, MAIN) < 0)
    return bj_fd_set_io_error (error, errno, "Writing the branch main");
  return TRUE;
}

static git_commit *
lookup_commit (git_repository *repository, const char *id, GError **error)
{
  git_commit *commit = NULL;
  git_oid oid;

  if (git_oid_fromstr (&oid, id) < 0 || git_commit_lookup (&commit, repository, &oid) < 0)
    git_failed (error, "Reading a commit");
  return commit;
}

char *
bj_project_git_head (int repo, char **tree, GError **error)
{
  g_autofree char *id = read_main (repo, error);
  g_autoptr(git_repository) repository = NULL;
  g_autoptr(git_commit) commit = NULL;

  if (tree != NULL)
    *tree = NULL;
  if (id == NULL || *id == '\0')
    return NULL;
  if (tree == NULL)
    return g_steal_pointer (&id);
  repository = open_objects (repo, error);
  commit = repository != NULL ? lookup_commit (repository, id, error) : NULL;
  if (commit == NULL)
    return NULL;
  *tree = g_strdup (git_oid_tostr_s (git_commit_tree_id (commit)));
  return g_steal_pointer (&id);
}

/* Returns: (transfer full): valid text in one line */
static char *
one_line (const char *text)
{
  char *line = g_utf8_make_valid (text, -1);

  for (char *p = line; *p != '\0'; p++)
    if (g_ascii_iscntrl (*p))
      *p = ' ';
  return line;
}

char *
bj_project_git_compose (const char *message, const char *const *trailers)
{
  g_autofree char *valid = g_utf8_make_valid (message, -1);
  g_auto(GStrv) lines = g_strsplit (g_strchomp (valid), "\n", -1);
  g_autoptr(GString) text = g_string_new (NULL);

  for (guint i = 0; lines[i] != NULL; i++)
    {
      g_autofree char *line = one_line (g_strchomp (lines[i]));

      if (g_ascii_strncasecmp (line, TRAILER_PREFIX, strlen (TRAILER_PREFIX)) == 0)
        g_string_append (text, "> ");
      g_string_append_printf (text, "%s\n", line);
    }
  if (trailers == NULL || trailers[0] == NULL)
    return g_string_free (g_steal_pointer (&text), FALSE);
  g_string_append_c (text, '\n');
  for (guint i = 0; trailers[i] != NULL; i++)
    {
      g_autofree char *line = one_line (trailers[i]);

      g_string_append_printf (text, "%s\n", line);
    }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

char *
bj_project_git_find_trailer (const char *message, const char *key)
{
  g_autofree char *text = g_strchomp (g_strdup (message));
  g_autofree char *start = g_strconcat (key, ": ", NULL);
  char *last = g_strrstr (text, "\n\n");
  g_auto(GStrv) lines = NULL;

  if (last == NULL)
    return g_strdup ("");
  lines = g_strsplit (last + 2, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    if (g_str_has_prefix (lines[i], start))
      return g_utf8_make_valid (lines[i] + strlen (start), -1);
  return g_strdup ("");
}

char *
bj_project_git_commit (int repo, const char *tree, const char *name, const char *message, const char *const *trailers,
                       GError **error)
{
  g_autoptr(git_repository) repository = open_objects (repo, error);
  g_autofree char *head = repository != NULL ? read_main (repo, error) : NULL;
  g_autofree char *email = g_strdup_printf ("%s@belljar.invalid", name);
  g_autofree char *text = bj_project_git_compose (message, trailers);
  g_autoptr(git_signature) who = NULL;
  git_oid id, tree_id, parent_id;
  const git_oid *parents[] = { &parent_id };
  gsize n_parents;

  if (head == NULL)
    return NULL;
  n_parents = *head != '\0' ? 1 : 0;
  if (!bj_project_id_is_valid (tree))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "\"%s\" is not the id of a tree", tree != NULL ? tree : "");
      return NULL;
    }
  if (git_oid_fromstr (&tree_id, tree) < 0 || (n_parents > 0 && git_oid_fromstr (&parent_id, head) < 0)
      || git_signature_now (&who, name, email) < 0
      || git_commit_create_from_ids (&id, repository, NULL, who, who, NULL, text, &tree_id, n_parents, parents) < 0)
    {
      git_failed (error, "Writing a commit");
      return NULL;
    }
  return write_main (repo, git_oid_tostr_s (&id), error) ? g_strdup (git_oid_tostr_s (&id)) : NULL;
}

static JsonObject *
describe (git_commit *commit)
{
  JsonObject *entry = json_object_new ();
  const char *message = git_commit_message_raw (commit);
  g_autofree char *subject = g_strndup (message, strcspn (message, "\n"));
  g_autofree char *valid = one_line (subject);
  g_autofree char *verdict = bj_project_git_find_trailer (message, "Belljar-Verdict");
  g_autofree char *session = bj_project_git_find_trailer (message, "Belljar-Session");

  json_object_set_string_member (entry, "commit", git_oid_tostr_s (git_commit_id (commit)));
  json_object_set_int_member (entry, "time", git_commit_time (commit));
  json_object_set_string_member (entry, "subject", valid);
  json_object_set_string_member (entry, "verdict", verdict);
  json_object_set_string_member (entry, "session", session);
  return entry;
}

JsonArray *
bj_project_git_log (int repo, guint count, GError **error)
{
  g_autoptr(JsonArray) log = json_array_new ();
  g_autofree char *id = read_main (repo, error);
  g_autoptr(git_repository) repository = id != NULL ? open_objects (repo, error) : NULL;

  if (repository == NULL)
    return NULL;
  while (*id != '\0' && json_array_get_length (log) < count)
    {
      g_autoptr(git_commit) commit = lookup_commit (repository, id, error);

      if (commit == NULL)
        return NULL;
      json_array_add_object_element (log, describe (commit));
      g_free (id);
      id = g_strdup (git_commit_parentcount (commit) > 0 ? git_oid_tostr_s (git_commit_parent_id (commit, 0)) : "");
    }
  return g_steal_pointer (&log);
}
