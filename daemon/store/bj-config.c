/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-config.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-name.h"
#include "bj-units.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX (1024 * 1024)
#define DAY_S (24 * 60 * 60)

typedef struct _BjKey BjKey;
/* Parses @value into @field; the error says only what is wrong with the value. */
typedef gboolean (*BjKeyParse) (const BjKey *key, const char *value, gpointer field, GError **error);

struct _BjKey
{
  const char *group;
  const char *name;
  BjKeyParse parse;
  gsize offset;
  guint64 least; /* numbers, durations and sizes */
  guint64 most;
};

static gboolean
check_range (const BjKey *key, guint64 number, GError **error)
{
  return (number >= key->least && number <= key->most)
         || bj_error_set (error, BJ_ERROR_INVALID,
                          "must be between %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT ", not %" G_GUINT64_FORMAT,
                          key->least, key->most, number);
}

static gboolean
parse_number (const BjKey *key, const char *value, gpointer field, GError **error)
{
  guint64 number = 0;

  if (!g_ascii_string_to_unsigned (value, 10, 0, G_MAXUINT32, &number, NULL))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no number", value);
  *(guint *) field = (guint) number;
  return check_range (key, number, error);
}

static gboolean
parse_duration (const BjKey *key, const char *value, gpointer field, GError **error)
{
  return bj_units_parse_duration (value, 0, field, error) && check_range (key, *(guint *) field, error);
}

static gboolean
parse_size (const BjKey *key, const char *value, gpointer field, GError **error)
{
  return bj_units_parse_size (value, 0, field, error) && check_range (key, *(guint64 *) field, error);
}

static gboolean
take_text (char **field, const char *value)
{
  g_free (*field);
  *field = g_strdup (value);
  return TRUE;
}

static gboolean
parse_text (const BjKey *key, const char *value, gpointer field, GError **error)
{
  if (*value == '\0')
    return bj_error_set (error, BJ_ERROR_INVALID, "is empty: give a value or leave the key out");
  for (const char *c = value; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c))
      return bj_error_set (error, BJ_ERROR_INVALID, "holds a control character");
  return take_text (field, value);
}

static gboolean
parse_url (const BjKey *key, const char *value, gpointer field, GError **error)
{
  g_autoptr(GUri) uri = g_uri_parse (value, G_URI_FLAGS_NONE, NULL);
  const char *scheme = uri != NULL ? g_uri_get_scheme (uri) : "";

  /* What is refused for what may be a secret is not repeated. */
  if (strpbrk (value, "@?#") != NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "must not hold a user name, a password, a query (“?…”) or a fragment (“#…”)");
  if (uri == NULL || (!g_str_equal (scheme, "http") && !g_str_equal (scheme, "https")) || g_uri_get_host (uri) == NULL
      || *g_uri_get_host (uri) == '\0')
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no address: write for example http://127.0.0.1:11434", value);
  return take_text (field, value);
}

static gboolean
parse_engine_uri (const BjKey *key, const char *value, gpointer field, GError **error)
{
  g_autofree char *scheme = g_uri_parse_scheme (value);

  if (scheme == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no libvirt URI: write for example qemu:///system", value);
  return take_text (field, value);
}

static gboolean
parse_name (const BjKey *key, const char *value, gpointer field, GError **error)
{
  if (!bj_name_is_valid (value))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no name: lower-case letters, digits, “.”, “_” and “-”", value);
  return take_text (field, value);
}

static gboolean
parse_absolute (const BjKey *key, const char *value, gpointer field, GError **error)
{
  if (!g_path_is_absolute (value))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is not an absolute path", value);
  return parse_text (key, value, field, error);
}

/* A secret's file: nobody else may read it, nor put another one in its place. */
static gboolean
parse_secret_file (const BjKey *key, const char *value, gpointer field, GError **error)
{
  g_auto(BjFd) fd = -1;
  struct stat info;

  if (!parse_absolute (key, value, field, error))
    return FALSE;
  fd = open (value, O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 || fstat (fd, &info) < 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” cannot be opened: %s", value, g_strerror (errno));
  if (!S_ISREG (info.st_mode))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is not a regular file", value);
  if (info.st_uid != geteuid () || (info.st_mode & 077) != 0)
    return bj_error_set (error, BJ_ERROR_INVALID,
                         "“%s” must be readable by the user of belljard alone, but it belongs to uid %u and has mode %04o: chown it to "
                         "uid %u and chmod it to 0600", value, (guint) info.st_uid, (guint) info.st_mode & 07777,
                         (guint) geteuid ());
  return TRUE;
}

static gboolean
parse_boolean (const char *value, gboolean *answer)
{
  *answer = g_str_equal (value, "true");
  return *answer || g_str_equal (value, "false");
}

static gboolean
parse_switch (const BjKey *key, const char *value, gpointer field, GError **error)
{
  return parse_boolean (value, field) || bj_error_set (error, BJ_ERROR_INVALID, "“%s” is neither true nor false", value);
}

static gboolean
parse_vision (const BjKey *key, const char *value, gpointer field, GError **error)
{
  gboolean answer;

  if (g_str_equal (value, "auto"))
    *(int *) field = -1;
  else if (parse_boolean (value, &answer))
    *(int *) field = answer;
  else
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is none of true, false and auto", value);
  return TRUE;
}

static gboolean
parse_accelerator (const BjKey *key, const char *value, gpointer field, GError **error)
{
  static const BjAccelerator all[] = { BJ_ACCELERATOR_AUTO, BJ_ACCELERATOR_KVM, BJ_ACCELERATOR_TCG };
  static const char *const names[] = { "auto", "kvm", "tcg" };

  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    if (g_str_equal (value, names[i]))
      {
        *(BjAccelerator *) field = all[i];
        return TRUE;
      }
  return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is none of auto, kvm and tcg", value);
}

static gboolean
parse_backend (const BjKey *key, const char *value, gpointer field, GError **error)
{
  if (!g_str_equal (value, "none"))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is not known: this version has only “none”", value);
  return take_text (field, value);
}

static gboolean
parse_on_stop (const BjKey *key, const char *value, gpointer field, GError **error)
{
  if (!g_str_equal (value, "keep") && !g_str_equal (value, "end"))
    return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is neither end nor keep", value);
  *(gboolean *) field = g_str_equal (value, "keep");
  return TRUE;
}

/* Values of a list are separated by ";" as in any keyfile. */
static GStrv
split_list (const char *value)
{
  g_auto(GStrv) parts = g_strsplit (value, ";", -1);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();

  for (guint i = 0; parts[i] != NULL; i++)
    if (*g_strstrip (parts[i]) != '\0')
      g_strv_builder_add (builder, parts[i]);
  return g_strv_builder_end (builder);
}

static gboolean
parse_list (const BjKey *key, const char *value, gpointer field, GError **error)
{
  g_auto(GStrv) parts = split_list (value);

  if (parts[0] == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "is empty: give values separated by “;” or leave the key out");
  g_strfreev (*(GStrv *) field);
  *(GStrv *) field = g_steal_pointer (&parts);
  return TRUE;
}

static gboolean
parse_resolvers (const BjKey *key, const char *value, gpointer field, GError **error)
{
  g_auto(GStrv) parts = split_list (value);

  for (guint i = 0; parts[i] != NULL; i++)
    if (!g_hostname_is_ip_address (parts[i]))
      return bj_error_set (error, BJ_ERROR_INVALID, "“%s” is no IP address", parts[i]);
  return parse_list (key, value, field, error);
}

#define KEY(group, name, parse, field, least, most) { group, name, parse, G_STRUCT_OFFSET (BjConfig, field), least, most }
static const BjKey keys[] = {
  KEY ("model", "url", parse_url, model_url, 0, 0),
  KEY ("model", "name", parse_text, model_name, 0, 0),
  KEY ("model", "allow", parse_list, model_allow, 0, 0),
  KEY ("model", "vision", parse_vision, model_vision, 0, 0),
  KEY ("engine", "uri", parse_engine_uri, engine_uri, 0, 0),
  KEY ("engine", "accelerator", parse_accelerator, accelerator, 0, 0),
  KEY ("limits", "sessions", parse_number, sessions, 1, 256),
  KEY ("limits", "sessions-per-user", parse_number, sessions_per_user, 1, 256),
  KEY ("limits", "memory-mib", parse_number, memory_mib, BJ_MEMORY_MIN_MIB, BJ_MEMORY_MAX_MIB),
  KEY ("limits", "memory-total-mib", parse_number, memory_total_mib, 0, 64 * 1024 * 1024),
  KEY ("limits", "cpus", parse_number, cpus, 1, 256),
  KEY ("limits", "steps", parse_number, steps, 1, 100000),
  KEY ("limits", "wall-clock", parse_duration, wall_clock_s, 10, 7 * DAY_S),
  KEY ("limits", "output-bytes", parse_size, output_bytes, 1024, 1024 * 1024),
  KEY ("limits", "screenshots", parse_number, screenshots, 1, 100000),
  KEY ("limits", "screenshot-bytes", parse_size, screenshot_bytes, 1024, 1024ull * 1024 * 1024 * 1024),
  KEY ("limits", "idle", parse_duration, idle_s, 1, 7 * DAY_S),
  KEY ("limits", "park-after", parse_duration, park_after_s, 1, 365 * DAY_S),
  KEY ("pool", "templates", parse_switch, templates, 0, 0),
  KEY ("pool", "size", parse_number, pool_size, 0, 64),
  KEY ("network", "resolvers", parse_resolvers, resolvers, 0, 0),
  KEY ("images", "default", parse_name, image_default, 0, 0),
  KEY ("images", "mirror", parse_url, mirror, 0, 0),
  KEY ("projects", "backend", parse_backend, project_backend, 0, 0),
  KEY ("projects", "quota", parse_size, project_quota, 0, G_MAXINT64),
  KEY ("projects", "evidence", parse_size, evidence_bytes, 0, G_MAXINT64),
  KEY ("projects", "evidence-keep", parse_duration, evidence_keep_s, 0, 3650 * DAY_S),
  KEY ("publish", "remote", parse_text, publish_remote, 0, 0),
  KEY ("publish", "token-file", parse_secret_file, publish_token_file, 0, 0),
  KEY ("sessions", "on-stop", parse_on_stop, keep_sessions, 0, 0),
};

static BjConfig *
new_with_defaults (void)
{
  BjConfig *config = g_new0 (BjConfig, 1);

  config->model_url = g_strdup ("http://127.0.0.1:11434");
  config->model_name = g_strdup ("");
  config->model_vision = -1;
  config->accelerator = BJ_ACCELERATOR_AUTO;
  config->sessions = 4;
  config->memory_mib = 1024;
  config->cpus = 2;
  config->steps = 200;
  config->wall_clock_s = 20 * 60;
  config->output_bytes = 64 * 1024;
  config->screenshots = 500;
  config->screenshot_bytes = 256 * 1024 * 1024;
  config->templates = TRUE;
  config->idle_s = 10 * 60;
  config->park_after_s = 15 * 60;
  config->evidence_keep_s = 7 * DAY_S;
  config->resolvers = g_strdupv ((char *[]) { "9.9.9.9", "149.112.112.112", NULL });
  config->project_backend = g_strdup ("none");
  return config;
}

void
bj_config_free (BjConfig *config)
{
  if (config == NULL)
    return;
  g_free (config->model_url);
  g_free (config->model_name);
  g_strfreev (config->model_allow);
  g_free (config->engine_uri);
  g_strfreev (config->resolvers);
  g_free (config->image_default);
  g_free (config->mirror);
  g_free (config->project_backend);
  g_free (config->publish_remote);
  g_free (config->publish_token_file);
  g_free (config);
}

/* GKeyFile tells no line numbers and takes the last of two equal keys, hence a reader of our own. */
typedef struct
{
  const char *path;
  BjConfig *config;
  guint line;
  char *group;      /* (owned) (nullable) */
  GHashTable *seen; /* (owned): "group/key" of what was set */
} BjReader;

static gboolean G_GNUC_PRINTF (3, 4)
complain (BjReader *reader, GError **error, const char *format, ...)
{
  va_list args;
  g_autofree char *what = NULL;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  return bj_error_set (error, BJ_ERROR_INVALID, "%s:%u: %s", reader->path, reader->line, what);
}

static gboolean
read_group (BjReader *reader, char *text, GError **error)
{
  gsize length = strlen (text);

  if (text[length - 1] != ']')
    return complain (reader, error, "“%s” opens a group but has no “]” at its end", text);
  text[length - 1] = '\0';
  g_free (reader->group);
  reader->group = g_strdup (text + 1);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_str_equal (keys[i].group, reader->group))
      return TRUE;
  return complain (reader, error, "[%s]: there is no such group", reader->group);
}

static const BjKey *
find_key (const char *group, const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (g_str_equal (keys[i].group, group) && g_str_equal (keys[i].name, name))
      return &keys[i];
  return NULL;
}

static gboolean
read_pair (BjReader *reader, char *text, GError **error)
{
  g_autoptr(GError) wrong = NULL;
  char *equals = strchr (text, '=');
  const BjKey *key;

  if (equals == NULL)
    return complain (reader, error, "“%s” is neither a group, a comment nor key=value", text);
  *equals = '\0';
  g_strchomp (text);
  if (reader->group == NULL)
    return complain (reader, error, "%s: stands before the first [group]", text);
  key = find_key (reader->group, text);
  if (key == NULL)
    return complain (reader, error, "[%s] %s: there is no such key", reader->group, text);
  if (!g_hash_table_add (reader->seen, g_strdup_printf ("%s/%s", reader->group, text)))
    return complain (reader, error, "[%s] %s: is given twice", reader->group, text);
  if (!key->parse (key, g_strstrip (equals + 1), G_STRUCT_MEMBER_P (reader->config, key->offset), &wrong))
    return complain (reader, error, "[%s] %s: %s", reader->group, text, wrong->message);
  return TRUE;
}

static gboolean
read_line (BjReader *reader, char *line, GError **error)
{
  char *text = g_strstrip (line);

  if (!g_utf8_validate (text, -1, NULL))
    return complain (reader, error, "is not UTF-8");
  if (*text == '\0' || *text == '#')
    return TRUE;
  return *text == '[' ? read_group (reader, text, error) : read_pair (reader, text, error);
}

static gboolean
read_lines (BjConfig *config, const char *path, GBytes *bytes, GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (bytes, &size);
  g_autofree char *copy = size > 0 ? g_strndup (data, size) : g_strdup ("");
  g_auto(GStrv) lines = g_strsplit (copy, "\n", -1);
  g_autoptr(GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  BjReader reader = { path, config, 0, NULL, seen };
  gboolean fine = TRUE;

  if (size > 0 && memchr (data, '\0', size) != NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s is no text file: it holds a NUL byte", path);
  for (guint i = 0; lines[i] != NULL && fine; i++)
    {
      reader.line = i + 1;
      fine = read_line (&reader, lines[i], error);
    }
  g_free (reader.group);
  return fine;
}

BjConfig *
bj_config_load (const char *path, gboolean must_exist, GError **error)
{
  g_autoptr(BjConfig) config = new_with_defaults ();
  g_autoptr(GBytes) bytes = NULL;
  g_auto(BjFd) fd = path != NULL ? open (path, O_RDONLY | O_CLOEXEC) : -1;

  if (fd < 0 && path != NULL && (must_exist || errno != ENOENT))
    {
      bj_fd_set_io_error (error, errno, "Opening the configuration %s", path);
      return NULL;
    }
  if (fd >= 0)
    {
      bytes = bj_fd_read_to_end (fd, CONFIG_MAX, error);
      if (bytes == NULL)
        {
          g_prefix_error (error, "Reading the configuration %s: ", path);
          return NULL;
        }
      if (!read_lines (config, path, bytes, error))
        return NULL;
    }
  if (config->sessions_per_user == 0)
    config->sessions_per_user = config->sessions;
  if (config->model_allow == NULL && *config->model_name != '\0')
    config->model_allow = g_strdupv ((char *[]) { config->model_name, NULL });
  if (config->model_allow == NULL)
    config->model_allow = g_new0 (char *, 1);
  return g_steal_pointer (&config);
}
