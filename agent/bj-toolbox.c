/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-toolbox.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

struct _BjToolbox
{
  JsonObject *root;
  JsonArray *tools;
  GPtrArray *names; /* (element-type utf8): NULL-terminated, borrowed from @root */
};

static const char *const types[] = { "string", "integer", "number", "boolean", "array", NULL };

void
bj_toolbox_free (BjToolbox *self)
{
  g_clear_pointer (&self->root, json_object_unref);
  g_clear_pointer (&self->names, g_ptr_array_unref);
  g_free (self);
}

const char *const *
bj_toolbox_get_names (BjToolbox *self)
{
  return (const char *const *) self->names->pdata;
}

JsonArray *
bj_toolbox_get_json (BjToolbox *self)
{
  return self->tools;
}

static JsonObject *
get_function (BjToolbox *self, guint i)
{
  JsonObject *tool = bj_json_array_get_object (self->tools, i);

  return tool ? bj_json_get_object (tool, "function") : NULL;
}

static JsonObject *
find_function (BjToolbox *self, const char *name)
{
  for (guint i = 0; i < json_array_get_length (self->tools); i++)
    if (g_strcmp0 (bj_json_get_string (get_function (self, i), "name"), name) == 0)
      return get_function (self, i);
  return NULL;
}

static JsonObject *
get_properties (JsonObject *function)
{
  return bj_json_get_object (bj_json_get_object (function, "parameters"), "properties");
}

static gboolean
is_required (JsonObject *function, const char *argument)
{
  JsonArray *required = bj_json_get_array (bj_json_get_object (function, "parameters"), "required");

  for (guint i = 0; required != NULL && i < json_array_get_length (required); i++)
    if (g_strcmp0 (json_array_get_string_element (required, i), argument) == 0)
      return TRUE;
  return FALSE;
}

/* Loading */

static gboolean
validate_property (JsonObject *properties, const char *tool, const char *name, GError **error)
{
  JsonObject *property = bj_json_get_object (properties, name);
  const char *type = property ? bj_json_get_string (property, "type") : NULL;

  if (type == NULL || !g_strv_contains (types, type))
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: argument %s has no type, or one that is not known", tool, name);
  if (bj_json_get_string (property, "description") == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: argument %s has no description", tool, name);
  return TRUE;
}

static gboolean
validate_required (JsonObject *parameters, const char *tool, GError **error)
{
  JsonArray *required = bj_json_get_array (parameters, "required");
  JsonObject *properties = bj_json_get_object (parameters, "properties");

  if (required == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: “required” is missing", tool);
  for (guint i = 0; i < json_array_get_length (required); i++)
    {
      JsonNode *node = json_array_get_element (required, i);

      if (json_node_get_value_type (node) != G_TYPE_STRING
          || !json_object_has_member (properties, json_node_get_string (node)))
        return bj_error_set (error, BJ_ERROR_INVALID, "%s: “required” names something that is no argument", tool);
    }
  return TRUE;
}

static gboolean
validate_function (JsonObject *function, GError **error)
{
  const char *name = function ? bj_json_get_string (function, "name") : NULL;
  JsonObject *parameters = function ? bj_json_get_object (function, "parameters") : NULL;
  JsonObject *properties = parameters ? bj_json_get_object (parameters, "properties") : NULL;
  g_autoptr(GList) members = NULL;

  if (name == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "A tool has no function with a name");
  if (bj_json_get_string (function, "description") == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: the description is missing", name);
  if (properties == NULL || g_strcmp0 (bj_json_get_string (parameters, "type"), "object") != 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "%s: the parameters must be an object with properties", name);
  members = json_object_get_members (properties);
  for (GList *l = members; l != NULL; l = l->next)
    if (!validate_property (properties, name, l->data, error))
      return FALSE;
  return validate_required (parameters, name, error);
}

static gboolean
validate (BjToolbox *self, const char *const *implemented, GError **error)
{
  for (guint i = 0; i < json_array_get_length (self->tools); i++)
    {
      JsonObject *function = get_function (self, i);
      const char *name;

      if (!validate_function (function, error))
        return FALSE;
      name = bj_json_get_string (function, "name");
      if (!g_strv_contains (implemented, name))
        return bj_error_set (error, BJ_ERROR_INVALID, "There is no code for the tool “%s”", name);
      if (find_function (self, name) != function)
        return bj_error_set (error, BJ_ERROR_INVALID, "The tool “%s” is defined twice", name);
      g_ptr_array_add (self->names, (gpointer) name);
    }
  for (guint i = 0; implemented[i] != NULL; i++)
    if (find_function (self, implemented[i]) == NULL)
      return bj_error_set (error, BJ_ERROR_INVALID, "The tool “%s” is not defined", implemented[i]);
  g_ptr_array_add (self->names, NULL);
  return TRUE;
}

BjToolbox *
bj_toolbox_load (const char *path, const char *const *implemented, GError **error)
{
  g_autoptr(BjToolbox) self = g_new0 (BjToolbox, 1);
  g_autofree char *text = NULL;
  gsize length;

  self->names = g_ptr_array_new ();
  if (!g_file_get_contents (path, &text, &length, error))
    return NULL;
  self->root = bj_json_parse_object (text, (gssize) length, error);
  self->tools = self->root ? bj_json_get_array (self->root, "tools") : NULL;
  if (self->root != NULL && self->tools == NULL)
    bj_error_set (error, BJ_ERROR_INVALID, "“tools” is missing");
  if (self->tools == NULL || !validate (self, implemented, error))
    {
      g_prefix_error (error, "%s: ", path);
      return NULL;
    }
  return g_steal_pointer (&self);
}

/* Describing */

static void
describe_function (GString *text, JsonObject *function)
{
  JsonObject *properties = get_properties (function);
  g_autoptr(GList) members = json_object_get_members (properties);

  g_string_append_printf (text, "- %s: %s\n", bj_json_get_string (function, "name"),
                          bj_json_get_string (function, "description"));
  for (GList *l = members; l != NULL; l = l->next)
    {
      JsonObject *property = bj_json_get_object (properties, l->data);

      g_string_append_printf (text, "    %s (%s%s): %s\n", (const char *) l->data, bj_json_get_string (property, "type"),
                              is_required (function, l->data) ? "" : ", optional",
                              bj_json_get_string (property, "description"));
    }
}

char *
bj_toolbox_describe (BjToolbox *self)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < json_array_get_length (self->tools); i++)
    describe_function (text, get_function (self, i));
  return g_string_free (text, FALSE);
}

/* Checking arguments */

static JsonNode *
to_string_node (JsonNode *node)
{
  g_autofree char *text = NULL;
  GType type = json_node_get_value_type (node);

  if (type == G_TYPE_STRING)
    return json_node_copy (node);
  if (type != G_TYPE_INT64 && type != G_TYPE_DOUBLE)
    return NULL;
  text = bj_json_node_to_string (node);
  return json_node_init_string (json_node_alloc (), text);
}

static JsonNode *
to_integer_node (JsonObject *arguments, const char *name, JsonNode *node)
{
  gint64 value;
  char *end = NULL;

  if (bj_json_get_int (arguments, name, &value))
    return json_node_init_int (json_node_alloc (), value);
  if (json_node_get_value_type (node) != G_TYPE_STRING || *json_node_get_string (node) == '\0')
    return NULL;
  value = g_ascii_strtoll (json_node_get_string (node), &end, 10);
  return *end == '\0' ? json_node_init_int (json_node_alloc (), value) : NULL;
}

static JsonNode *
to_number_node (JsonNode *node)
{
  GType type = json_node_get_value_type (node);
  char *end = NULL;
  double value;

  if (type == G_TYPE_INT64 || type == G_TYPE_DOUBLE)
    return json_node_init_double (json_node_alloc (), json_node_get_double (node));
  if (type != G_TYPE_STRING || *json_node_get_string (node) == '\0')
    return NULL;
  value = g_ascii_strtod (json_node_get_string (node), &end);
  return *end == '\0' ? json_node_init_double (json_node_alloc (), value) : NULL;
}

static JsonNode *
to_boolean_node (JsonNode *node)
{
  GType type = json_node_get_value_type (node);

  if (type == G_TYPE_BOOLEAN)
    return json_node_copy (node);
  if (type == G_TYPE_INT64)
    return json_node_init_boolean (json_node_alloc (), json_node_get_int (node) != 0);
  if (type != G_TYPE_STRING)
    return NULL;
  if (g_ascii_strcasecmp (json_node_get_string (node), "true") == 0)
    return json_node_init_boolean (json_node_alloc (), TRUE);
  if (g_ascii_strcasecmp (json_node_get_string (node), "false") == 0)
    return json_node_init_boolean (json_node_alloc (), FALSE);
  return NULL;
}

/* An array is one of texts; a single text is taken for an array of it. */
static JsonNode *
to_array_node (JsonNode *node)
{
  g_autoptr(JsonArray) array = json_array_new ();
  guint n = JSON_NODE_HOLDS_ARRAY (node) ? json_array_get_length (json_node_get_array (node)) : 1;

  for (guint i = 0; i < n; i++)
    {
      JsonNode *item = JSON_NODE_HOLDS_ARRAY (node) ? json_array_get_element (json_node_get_array (node), i) : node;

      if (json_node_get_value_type (item) != G_TYPE_STRING)
        return NULL;
      json_array_add_string_element (array, json_node_get_string (item));
    }
  return json_node_init_array (json_node_alloc (), array);
}

static JsonNode *
convert (JsonObject *arguments, const char *name, const char *type)
{
  JsonNode *node = json_object_get_member (arguments, name);

  if (g_str_equal (type, "string"))
    return to_string_node (node);
  if (g_str_equal (type, "integer"))
    return to_integer_node (arguments, name, node);
  if (g_str_equal (type, "number"))
    return to_number_node (node);
  if (g_str_equal (type, "boolean"))
    return to_boolean_node (node);
  return to_array_node (node);
}

static gboolean
check_enum (JsonObject *property, JsonNode *value)
{
  JsonArray *allowed = bj_json_get_array (property, "enum");

  for (guint i = 0; allowed != NULL && i < json_array_get_length (allowed); i++)
    if (g_strcmp0 (json_array_get_string_element (allowed, i), json_node_get_string (value)) == 0)
      return TRUE;
  return allowed == NULL;
}

static gboolean
check_range (JsonObject *property, JsonNode *value)
{
  gint64 limit;

  if (json_node_get_value_type (value) != G_TYPE_INT64)
    return TRUE;
  if (bj_json_get_int (property, "minimum", &limit) && json_node_get_int (value) < limit)
    return FALSE;
  return !bj_json_get_int (property, "maximum", &limit) || json_node_get_int (value) <= limit;
}

static gboolean
check_argument (JsonObject *function, JsonObject *arguments, const char *name, JsonObject *checked, GError **error)
{
  JsonObject *property = bj_json_get_object (get_properties (function), name);
  const char *type = bj_json_get_string (property, "type");
  JsonNode *given = json_object_get_member (arguments, name);
  g_autoptr(JsonNode) value = NULL;

  if (given == NULL || JSON_NODE_HOLDS_NULL (given))
    {
      if (is_required (function, name))
        return bj_error_set (error, BJ_ERROR_INVALID, "The argument “%s” (%s) is missing: %s", name, type,
                             bj_json_get_string (property, "description"));
      return TRUE;
    }
  value = convert (arguments, name, type);
  if (value == NULL || !check_enum (property, value) || !check_range (property, value))
    return bj_error_set (error, BJ_ERROR_INVALID, "The argument “%s” is not right, it must be of type %s: %s", name,
                         type, bj_json_get_string (property, "description"));
  json_object_set_member (checked, name, g_steal_pointer (&value));
  return TRUE;
}

static char **
list_ignored (JsonObject *properties, JsonObject *arguments)
{
  g_autoptr(GList) given = json_object_get_members (arguments);
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new ();

  for (GList *l = given; l != NULL; l = l->next)
    if (!json_object_has_member (properties, l->data))
      g_strv_builder_add (builder, l->data);
  return g_strv_builder_end (builder);
}

static gboolean
unknown_tool (BjToolbox *self, const char *name, GError **error)
{
  g_autofree char *all = g_strjoinv (", ", (char **) self->names->pdata);

  return bj_error_set (error, BJ_ERROR_NOT_FOUND, "There is no tool “%.100s”. The tools are: %s", name, all);
}

JsonObject *
bj_toolbox_check (BjToolbox *self, const char *name, JsonObject *arguments, char ***ignored, GError **error)
{
  JsonObject *function = find_function (self, name);
  g_autoptr(JsonObject) checked = json_object_new ();
  g_autoptr(GList) members = NULL;

  *ignored = NULL;
  if (function == NULL)
    {
      unknown_tool (self, name, error);
      return NULL;
    }
  members = json_object_get_members (get_properties (function));
  for (GList *l = members; l != NULL; l = l->next)
    if (!check_argument (function, arguments, l->data, checked, error))
      return NULL;
  *ignored = list_ignored (get_properties (function), arguments);
  return g_steal_pointer (&checked);
}
