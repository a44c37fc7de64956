/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tool-call.h"

#include "bj-error.h"
#include "bj-json.h"

#include <string.h>

#define MAX_TEXTUAL 64
#define MAX_TRIES 256

static const char *const name_keys[] = { "name", "tool", "tool_name", "function", NULL };
static const char *const argument_keys[] = { "arguments", "parameters", "args", "input", NULL };
static const char *const tags[] = { "tool_call", "function_call", "tool", NULL };

void
bj_tool_call_free (BjToolCall *call)
{
  g_free (call->name);
  g_clear_pointer (&call->arguments, json_object_unref);
  g_free (call->problem);
  g_free (call);
}

static const char *
first_string (JsonObject *object, const char *const *keys)
{
  const char *found = NULL;

  for (guint i = 0; found == NULL && keys[i] != NULL; i++)
    found = bj_json_get_string (object, keys[i]);
  return found;
}

static JsonNode *
first_member (JsonObject *object, const char *const *keys)
{
  JsonNode *found = NULL;

  for (guint i = 0; found == NULL && keys[i] != NULL; i++)
    found = json_object_get_member (object, keys[i]);
  return found;
}

/* Arguments as an object, or as an object written into a string; absent ones are none. */
static void
take_arguments (BjToolCall *call, JsonNode *node)
{
  g_autoptr(GError) error = NULL;

  if (node == NULL || JSON_NODE_HOLDS_NULL (node))
    call->arguments = json_object_new ();
  else if (JSON_NODE_HOLDS_OBJECT (node))
    call->arguments = json_object_ref (json_node_get_object (node));
  else if (json_node_get_value_type (node) != G_TYPE_STRING)
    call->problem = g_strdup ("The arguments must be a JSON object");
  else if (*json_node_get_string (node) == '\0')
    call->arguments = json_object_new ();
  else
    {
      call->arguments = bj_json_parse_object (json_node_get_string (node), -1, &error);
      if (call->arguments == NULL)
        call->problem = g_strdup_printf ("The arguments must be a JSON object, not a string (%s)", error->message);
    }
}

/* {"name", "arguments"}, with other usual words for them, perhaps inside {"function": {…}}. */
static BjToolCall *
call_from_object (JsonObject *object)
{
  JsonObject *function = bj_json_get_object (object, "function");
  JsonObject *source = function ? function : object;
  const char *name = first_string (source, name_keys);
  BjToolCall *call = g_new0 (BjToolCall, 1);

  call->name = g_strdup (name ? name : "");
  if (name == NULL || *name == '\0')
    call->problem = g_strdup ("The call has no tool's name");
  else
    take_arguments (call, first_member (source, argument_keys));
  return call;
}

GPtrArray *
bj_tool_calls_from_array (JsonArray *array)
{
  GPtrArray *calls = g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tool_call_free);

  for (guint i = 0; i < json_array_get_length (array); i++)
    {
      JsonObject *object = bj_json_array_get_object (array, i);
      BjToolCall *call;

      if (object != NULL)
        {
          g_ptr_array_add (calls, call_from_object (object));
          continue;
        }
      call = g_new0 (BjToolCall, 1);
      call->name = g_strdup ("");
      call->problem = g_strdup ("A tool call must be a JSON object");
      g_ptr_array_add (calls, call);
    }
  return calls;
}

/* Textual calls */

/* Where one text is searched. */
typedef struct
{
  GPtrArray *calls;
  const char *const *known;
  guint tries;
} BjSearch;

static gboolean
search_over (const BjSearch *search)
{
  return search->calls->len >= MAX_TEXTUAL || search->tries >= MAX_TRIES;
}

/* Length of the object that begins at @text (a brace), or 0 if it does not end. */
static gsize
object_length (const char *text, gsize length)
{
  guint depth = 0;
  gboolean quoted = FALSE;

  for (gsize i = 0; i < length; i++)
    {
      if (quoted && text[i] == '\\')
        i++;
      else if (text[i] == '"')
        quoted = !quoted;
      else if (!quoted && text[i] == '{')
        depth++;
      else if (!quoted && text[i] == '}' && --depth == 0)
        return i + 1;
    }
  return 0;
}

static gboolean
looks_like_call (JsonObject *object, const char *const *known)
{
  JsonObject *function = bj_json_get_object (object, "function");
  JsonObject *source = function ? function : object;
  const char *name = first_string (source, name_keys);

  return name != NULL && g_strv_contains (known, name) && first_member (source, argument_keys) != NULL;
}

/* Takes the objects of [@text, @text + @length); @tagged: it is a call for certain. Returns: how far it got */
static gsize
take_objects (BjSearch *search, const char *text, gsize length, gboolean tagged)
{
  gsize at = 0;
  gsize taken = 0;

  while (at < length && !search_over (search))
    {
      const char *brace = memchr (text + at, '{', length - at);
      gsize size = brace ? object_length (brace, length - (gsize) (brace - text)) : 0;
      g_autoptr(JsonObject) object = NULL;

      search->tries++;
      if (size == 0)
        break;
      at = (gsize) (brace - text) + size;
      object = bj_json_parse_object (brace, (gssize) size, NULL);
      if (object == NULL || (!tagged && !looks_like_call (object, search->known)))
        continue;
      g_ptr_array_add (search->calls, call_from_object (object));
      taken = at;
    }
  return taken;
}

static void
take_broken (BjSearch *search)
{
  BjToolCall *call = g_new0 (BjToolCall, 1);

  call->name = g_strdup ("");
  call->problem = g_strdup ("The tool call is not a JSON object with “name” and “arguments”");
  g_ptr_array_add (search->calls, call);
}

/* The end of what stands in a tag; a closing tag inside the first object's strings is not it. */
static const char *
find_close (const char *body, const char *close)
{
  const char *brace = strchr (body, '{');
  const char *end = strstr (body, close);

  if (brace != NULL && end != NULL && brace < end)
    end = strstr (brace + object_length (brace, strlen (brace)), close);
  return end;
}

static void
search_tag (BjSearch *search, const char *text, const char *tag)
{
  g_autofree char *open = g_strdup_printf ("<%s>", tag);
  g_autofree char *close = g_strdup_printf ("</%s>", tag);
  const char *start = strstr (text, open);

  while (start != NULL && !search_over (search))
    {
      const char *body = start + strlen (open);
      const char *end = find_close (body, close);
      gsize length = end ? (gsize) (end - body) : strlen (body);
      guint before = search->calls->len;

      take_objects (search, body, length, TRUE);
      if (search->calls->len == before && end != NULL)
        take_broken (search);
      start = end ? strstr (end, open) : NULL;
    }
}

static void
search_fences (BjSearch *search, const char *text)
{
  const char *start = strstr (text, "```");

  while (start != NULL && !search_over (search))
    {
      const char *body = strchr (start, '\n');
      const char *end = body ? strstr (body, "```") : NULL;
      gsize length = end ? (gsize) (end - body) : body ? strlen (body) : 0;

      if (body != NULL)
        take_objects (search, body, length, FALSE);
      start = end ? strstr (end + 3, "```") : NULL;
    }
}

static void
search_lines (BjSearch *search, const char *text)
{
  const char *line = text;

  while (line != NULL && !search_over (search))
    {
      const char *newline;
      gsize taken = 0;

      line += strspn (line, " \t\r\n[,");
      if (*line == '{')
        {
          gsize size = object_length (line, strlen (line));

          taken = size > 0 ? take_objects (search, line, size, FALSE) : 0;
          search->tries++;
        }
      newline = strchr (line + taken, '\n');
      line = newline ? newline + 1 : NULL;
    }
}

GPtrArray *
bj_tool_calls_from_text (const char *text, const char *const *known)
{
  BjSearch search = { g_ptr_array_new_with_free_func ((GDestroyNotify) bj_tool_call_free), known, 0 };

  for (guint i = 0; search.calls->len == 0 && tags[i] != NULL; i++)
    search_tag (&search, text, tags[i]);
  if (search.calls->len == 0)
    search_fences (&search, text);
  if (search.calls->len == 0)
    search_lines (&search, text);
  return search.calls;
}
