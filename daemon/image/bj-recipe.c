/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-recipe.h"

#include "bj-error.h"
#include "bj-name.h"

#include <string.h>

typedef enum
{
  KIND_TEXT,
  KIND_LIST,
  KIND_NUMBER,
  KIND_FLAG, /* true or false */
  KIND_FILE, /* a name within the recipe's folder */
} BjKind;

/* When a key must be there. */
typedef enum
{
  NEED_NEVER,
  NEED_ALWAYS,
  NEED_BOOTSTRAP, /* unless the recipe makes its tree by a script */
} BjNeed;

typedef struct
{
  const char *group, *key;
  BjKind kind;
  BjNeed need;
  gsize offset;
  const char *characters; /* (nullable): the only ones each value may have */
  guint min, max;         /* of a number */
} BjField;

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define AT(member) G_STRUCT_OFFSET (BjRecipe, member)

static const BjField fields[] = {
  { "recipe", "name", KIND_TEXT, NEED_ALWAYS, AT (name), NULL, 0, 0 },
  { "recipe", "os", KIND_TEXT, NEED_ALWAYS, AT (os), LETTERS " .()-", 0, 0 },
  { "recipe", "api", KIND_NUMBER, NEED_ALWAYS, AT (api), NULL, 1, 1000 },
  { "recipe", "base", KIND_TEXT, NEED_NEVER, AT (base), NULL, 0, 0 },
  { "recipe", "desktop", KIND_FLAG, NEED_NEVER, AT (desktop), NULL, 0, 0 },
  { "bootstrap", "script", KIND_FILE, NEED_NEVER, AT (script), NULL, 0, 0 },
  { "bootstrap", "suite", KIND_TEXT, NEED_BOOTSTRAP, AT (suite), LETTERS "-", 0, 0 },
  { "bootstrap", "components", KIND_TEXT, NEED_BOOTSTRAP, AT (components), LETTERS "- ", 0, 0 },
  { "bootstrap", "variant", KIND_TEXT, NEED_BOOTSTRAP, AT (variant), LETTERS "-", 0, 0 },
  { "bootstrap", "sources", KIND_LIST, NEED_BOOTSTRAP, AT (sources), LETTERS "-+.:/_ ", 0, 0 },
  { "bootstrap", "packages", KIND_LIST, NEED_BOOTSTRAP, AT (packages), LETTERS "-+.:", 0, 0 },
  { "bootstrap", "exclude", KIND_LIST, NEED_NEVER, AT (exclude), LETTERS "-+._/*", 0, 0 },
  { "bootstrap", "include", KIND_LIST, NEED_NEVER, AT (include), LETTERS "-+._/*", 0, 0 },
  { "kernel", "package", KIND_TEXT, NEED_BOOTSTRAP, AT (kernel_package), LETTERS "-+.", 0, 0 },
  { "kernel", "modules", KIND_LIST, NEED_ALWAYS, AT (modules), LETTERS "-_", 0, 0 },
  { "kernel", "cmdline", KIND_TEXT, NEED_ALWAYS, AT (cmdline), LETTERS "-_=.,:/ ", 0, 0 },
  { "disk", "size-mib", KIND_NUMBER, NEED_ALWAYS, AT (disk_mib), NULL, 64, 1024 * 1024 },
  { "disk", "build-space-mib", KIND_NUMBER, NEED_ALWAYS, AT (space_mib), NULL, 1, 1024 * 1024 },
  { "customize", "script", KIND_FILE, NEED_ALWAYS, AT (customize), NULL, 0, 0 },
  { "customize", "mask", KIND_LIST, NEED_NEVER, AT (mask), LETTERS "-_.@:\\", 0, 0 },
  { "customize", "idle", KIND_LIST, NEED_NEVER, AT (idle), LETTERS "-_.@:\\/", 0, 0 },
  { "smoke", "script", KIND_FILE, NEED_ALWAYS, AT (smoke), NULL, 0, 0 },
  { "smoke", "boot-timeout", KIND_NUMBER, NEED_ALWAYS, AT (boot_timeout_s), NULL, 1, 3600 },
  { "smoke", "timeout", KIND_NUMBER, NEED_ALWAYS, AT (smoke_timeout_s), NULL, 1, 3600 },
};

void
bj_recipe_free (BjRecipe *recipe)
{
  if (recipe == NULL)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    if (fields[i].kind == KIND_LIST)
      g_strfreev (G_STRUCT_MEMBER (GStrv, recipe, fields[i].offset));
    else if (fields[i].kind != KIND_NUMBER && fields[i].kind != KIND_FLAG)
      g_free (G_STRUCT_MEMBER (char *, recipe, fields[i].offset));
  g_free (recipe->dir);
  g_free (recipe->base_dir);
  g_free (recipe->base_customize);
  g_free (recipe->base_smoke);
  g_free (recipe);
}

static const BjField *
find_field (const char *group, const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    if (g_str_equal (fields[i].group, group) && (key == NULL || g_str_equal (fields[i].key, key)))
      return &fields[i];
  return NULL;
}

static gboolean
check_keys_known (GKeyFile *file, const char *path, GError **error)
{
  g_auto(GStrv) groups = g_key_file_get_groups (file, NULL);

  for (guint i = 0; groups[i] != NULL; i++)
    {
      g_auto(GStrv) keys = g_key_file_get_keys (file, groups[i], NULL, NULL);

      if (find_field (groups[i], NULL) == NULL)
        return bj_error_set (error, BJ_ERROR_INVALID, "%s: there is no group [%s] in a recipe", path, groups[i]);
      for (guint j = 0; keys != NULL && keys[j] != NULL; j++)
        if (find_field (groups[i], keys[j]) == NULL)
          return bj_error_set (error, BJ_ERROR_INVALID, "%s: there is no key \"%s\" in group [%s] of a recipe", path,
                               keys[j], groups[i]);
    }
  return TRUE;
}

static gboolean
check_text (const BjField *field, const char *path, const char *text, GError **error)
{
  const char *wrong = NULL;

  if (*text == '\0')
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s has an empty value", path, field->group, field->key);
  if (field->kind == KIND_FILE && (strchr (text, '/') != NULL || *text == '.' || *text == '-'))
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s must be the name of a file in the recipe's folder", path,
                         field->group, field->key);
  if (field->characters == NULL)
    return TRUE;
  wrong = text + strspn (text, field->characters);
  if (*wrong == '\0' && *text != '-')
    return TRUE;
  return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s: \"%s\" has a character that is not allowed there", path,
                       field->group, field->key, text);
}

static gboolean
read_number (GKeyFile *file, const BjField *field, const char *path, guint *value, GError **error)
{
  g_autofree char *text = g_key_file_get_string (file, field->group, field->key, NULL);
  guint64 number = 0;

  if (text == NULL || !g_ascii_string_to_unsigned (text, 10, field->min, field->max, &number, NULL))
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s must be a number from %u to %u", path, field->group,
                         field->key, field->min, field->max);
  *value = (guint) number;
  return TRUE;
}

static gboolean
read_flag (GKeyFile *file, const BjField *field, const char *path, gboolean *value, GError **error)
{
  g_autoptr(GError) local = NULL;

  *value = g_key_file_get_boolean (file, field->group, field->key, &local);
  return local == NULL
         || bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s must be true or false", path, field->group, field->key);
}

static gboolean
read_list (GKeyFile *file, const BjField *field, const char *path, GStrv *value, GError **error)
{
  g_autoptr(GError) wrong = NULL;
  g_auto(GStrv) list = g_key_file_get_string_list (file, field->group, field->key, NULL, &wrong);

  if (wrong != NULL) /* with some there is a list nevertheless */
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s: %s", path, field->group, field->key, wrong->message);
  if (list[0] == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s has an empty value", path, field->group, field->key);
  for (guint i = 0; list[i] != NULL; i++)
    if (!check_text (field, path, list[i], error))
      return FALSE;
  g_strfreev (*value);
  *value = g_steal_pointer (&list);
  return TRUE;
}

static gboolean
read_text (GKeyFile *file, const BjField *field, const char *path, char **value, GError **error)
{
  g_autoptr(GError) wrong = NULL;
  g_autofree char *text = g_key_file_get_string (file, field->group, field->key, &wrong);

  if (wrong != NULL) /* with some there is a text nevertheless */
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] %s: %s", path, field->group, field->key, wrong->message);
  if (!check_text (field, path, text, error))
    return FALSE;
  *value = g_steal_pointer (&text);
  return TRUE;
}

static gboolean
read_field (GKeyFile *file, const BjField *field, const char *path, BjRecipe *recipe, GError **error)
{
  gboolean needed = field->need == NEED_ALWAYS || (field->need == NEED_BOOTSTRAP && recipe->script == NULL);

  if (field->kind == KIND_LIST)
    G_STRUCT_MEMBER (GStrv, recipe, field->offset) = g_new0 (char *, 1);
  if (!g_key_file_has_key (file, field->group, field->key, NULL))
    return !needed || bj_error_set (error, BJ_ERROR_INVALID, "%s: [%s] needs the key \"%s\"", path, field->group,
                                    field->key);
  if (field->kind == KIND_NUMBER)
    return read_number (file, field, path, G_STRUCT_MEMBER_P (recipe, field->offset), error);
  if (field->kind == KIND_FLAG)
    return read_flag (file, field, path, G_STRUCT_MEMBER_P (recipe, field->offset), error);
  if (field->kind == KIND_LIST)
    return read_list (file, field, path, G_STRUCT_MEMBER_P (recipe, field->offset), error);
  return read_text (file, field, path, G_STRUCT_MEMBER_P (recipe, field->offset), error);
}

static BjRecipe *
read_recipe (GKeyFile *file, const char *path, GError **error)
{
  g_autoptr(BjRecipe) recipe = g_new0 (BjRecipe, 1);

  if (!check_keys_known (file, path, error))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    if (!read_field (file, &fields[i], path, recipe, error))
      return NULL;
  if (!bj_name_is_valid (recipe->name))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s: [recipe] name must match [a-z0-9][a-z0-9._-]{0,62}", path);
      return NULL;
    }
  recipe->dir = g_path_get_dirname (path);
  return g_steal_pointer (&recipe);
}

static GKeyFile *
parse_file (const char *path, const char *data, gsize length, GError **error)
{
  g_autoptr(GKeyFile) file = g_key_file_new ();
  g_autoptr(GError) local = NULL;

  /* What it says stands in messages, and those go over the bus. */
  if (!g_utf8_validate_len (data, length, NULL))
    {
      bj_error_set (error, BJ_ERROR_INVALID, "%s: is not UTF-8 text", path);
      return NULL;
    }
  if (g_key_file_load_from_data (file, data, length, G_KEY_FILE_NONE, &local))
    return g_steal_pointer (&file);
  bj_error_set (error, BJ_ERROR_INVALID, "%s: %s", path, local->message);
  return NULL;
}

/* What @file does not say is as in @base, lists are added to those of @base. Scripts are each folder's own. */
static void
merge (GKeyFile *file, GKeyFile *base)
{
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    {
      const BjField *field = &fields[i];
      g_autofree char *theirs = g_key_file_get_value (base, field->group, field->key, NULL);
      g_autofree char *ours = g_key_file_get_value (file, field->group, field->key, NULL);
      g_autofree char *both = NULL;

      if (theirs == NULL || field->kind == KIND_FILE || (ours != NULL && field->kind != KIND_LIST))
        continue;
      both = ours != NULL ? g_strconcat (theirs, ";", ours, NULL) : NULL;
      g_key_file_set_value (file, field->group, field->key, both != NULL ? both : theirs);
    }
}

BjRecipe *
bj_recipe_parse (const char *path, const char *data, gsize length, GError **error)
{
  g_autoptr(GKeyFile) file = parse_file (path, data, length, error);

  if (file == NULL)
    return NULL;
  if (!g_key_file_has_key (file, "recipe", "base", NULL))
    return read_recipe (file, path, error);
  bj_error_set (error, BJ_ERROR_INVALID, "%s: a recipe with [recipe] base is no base for another one", path);
  return NULL;
}

BjRecipe *
bj_recipe_parse_onto (const char *path, const char *data, gsize length, const char *base_path, const char *base_data,
                      gsize base_length, GError **error)
{
  g_autoptr(BjRecipe) base = bj_recipe_parse (base_path, base_data, base_length, error);
  g_autoptr(GKeyFile) base_file = base != NULL ? parse_file (base_path, base_data, base_length, error) : NULL;
  g_autoptr(GKeyFile) file = base_file != NULL ? parse_file (path, data, length, error) : NULL;
  BjRecipe *recipe;

  if (file == NULL)
    return NULL;
  merge (file, base_file);
  recipe = read_recipe (file, path, error);
  if (recipe == NULL)
    return NULL;
  recipe->base_dir = g_steal_pointer (&base->dir);
  recipe->base_customize = g_steal_pointer (&base->customize);
  recipe->base_smoke = g_steal_pointer (&base->smoke);
  return recipe;
}

static char *
list_recipes (const char *const *dirs)
{
  GString *names = g_string_new (NULL);

  for (guint i = 0; dirs[i] != NULL; i++)
    {
      g_autoptr(GDir) dir = g_dir_open (dirs[i], 0, NULL);
      const char *name;

      while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
        {
          g_autofree char *path = g_build_filename (dirs[i], name, "recipe.ini", NULL);

          if (bj_name_is_valid (name) && g_file_test (path, G_FILE_TEST_IS_REGULAR))
            g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", name);
        }
    }
  return g_string_free (names, FALSE);
}

/* Returns: whether there is one, with its text */
static gboolean
find_recipe (const char *const *dirs, const char *name, char **path, char **data, gsize *length, GError **error)
{
  g_autofree char *known = NULL;

  for (guint i = 0; bj_name_is_valid (name) && dirs[i] != NULL; i++)
    {
      g_autofree char *at = g_build_filename (dirs[i], name, "recipe.ini", NULL);

      if (!g_file_test (at, G_FILE_TEST_EXISTS))
        continue;
      if (!g_file_get_contents (at, data, length, error))
        return FALSE;
      *path = g_steal_pointer (&at);
      return TRUE;
    }
  known = list_recipes (dirs);
  return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no image recipe \"%s\"; there is: %s", name,
                       *known != '\0' ? known : "none, so Belljar is not fully installed");
}

/* Returns: (transfer full): the name of what the recipe builds on, "" for none, or %NULL */
static char *
find_base (const char *path, const char *data, gsize length, GError **error)
{
  g_autoptr(GKeyFile) file = parse_file (path, data, length, error);
  g_autofree char *base = file != NULL ? g_key_file_get_string (file, "recipe", "base", NULL) : NULL;

  if (file == NULL)
    return NULL;
  return base != NULL ? g_steal_pointer (&base) : g_strdup ("");
}

static BjRecipe *
load_onto (const char *const *dirs, const char *base, const char *path, const char *data, gsize length, GError **error)
{
  g_autofree char *base_path = NULL;
  g_autofree char *base_data = NULL;
  gsize base_length;

  if (find_recipe (dirs, base, &base_path, &base_data, &base_length, error))
    return bj_recipe_parse_onto (path, data, length, base_path, base_data, base_length, error);
  g_prefix_error (error, "%s: [recipe] base: ", path);
  return NULL;
}

BjRecipe *
bj_recipe_load (const char *const *dirs, const char *name, GError **error)
{
  g_autofree char *path = NULL;
  g_autofree char *data = NULL;
  g_autofree char *base = NULL;
  g_autoptr(BjRecipe) recipe = NULL;
  gsize length;

  if (!find_recipe (dirs, name, &path, &data, &length, error) || (base = find_base (path, data, length, error)) == NULL)
    return NULL;
  recipe = *base != '\0' ? load_onto (dirs, base, path, data, length, error) : bj_recipe_parse (path, data, length, error);
  if (recipe == NULL || g_str_equal (recipe->name, name))
    return g_steal_pointer (&recipe);
  bj_error_set (error, BJ_ERROR_INVALID, "%s: [recipe] name is \"%s\", but its folder is called \"%s\"", path, recipe->name, name);
  return NULL;
}
