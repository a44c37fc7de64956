/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <gio/gio.h>
#include <string.h>

static GDBusNodeInfo *
load (const char *name)
{
  g_autofree char *file = g_strdup_printf (XML_DIR "/org.belljar1.%s.xml", name);
  g_autofree char *xml = NULL;
  GDBusNodeInfo *node;
  g_autoptr(GError) error = NULL;

  g_assert_true (g_file_get_contents (file, &xml, NULL, NULL));
  node = g_dbus_node_info_new_for_xml (xml, &error);
  g_assert_no_error (error);
  g_assert_nonnull (node->interfaces[0]);
  g_assert_null (node->interfaces[1]);
  return node;
}

static const char *const public_interfaces[] = { "Manager", "Image", "Project", "Session", "Job" };

/* The actions of the contract; the policy file is compared with them in the integration tests. */
static const char *const actions[] = {
  "open",
  "org.belljar1.view",
  "org.belljar1.session.start",
  "org.belljar1.session.control",
  "org.belljar1.session.control-other", /* also of what concerns everybody's sessions */
  "org.belljar1.image.build",
  "org.belljar1.image.unfreeze",
  "org.belljar1.image.rebuild",
  "org.belljar1.image.delete",
  "org.belljar1.project.create",
  "org.belljar1.project.quota",
  "org.belljar1.project.publish",
  "org.belljar1.project.delete",
  "org.belljar1.job.cancel",
  NULL,
};

static void
test_annotations (void)
{
  guint n = 0;

  for (guint i = 0; i < G_N_ELEMENTS (public_interfaces); i++)
    {
      g_autoptr(GDBusNodeInfo) node = load (public_interfaces[i]);
      const GDBusInterfaceInfo *info = node->interfaces[0];

      for (guint m = 0; info->methods[m] != NULL; m++, n++)
        {
          const char *action = g_dbus_annotation_info_lookup (info->methods[m]->annotations, "org.belljar1.Polkit");

          if (action == NULL || !g_strv_contains (actions, action))
            g_test_message ("%s.%s has the action “%s”", info->name, info->methods[m]->name, action);
          g_assert_nonnull (action);
          g_assert_true (g_strv_contains (actions, action));
        }
    }
  g_assert_cmpuint (n, >=, 20);
}

static void
test_properties_are_read_only (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (public_interfaces); i++)
    {
      g_autoptr(GDBusNodeInfo) node = load (public_interfaces[i]);
      const GDBusInterfaceInfo *info = node->interfaces[0];

      for (guint p = 0; info->properties != NULL && info->properties[p] != NULL; p++)
        g_assert_cmpint (info->properties[p]->flags, ==, G_DBUS_PROPERTY_INFO_FLAGS_READABLE);
    }
}

static int
compare (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

static void
test_agent_verbs (void)
{
  g_autoptr(GDBusNodeInfo) node = load ("Agent");
  const GDBusInterfaceInfo *info = node->interfaces[0];
  g_autoptr(GPtrArray) verbs = g_ptr_array_new_with_free_func (g_free);
  g_autoptr(GString) found = g_string_new (NULL);
  g_autofree char *expected = NULL;

  for (guint m = 0; info->methods[m] != NULL; m++)
    {
      g_autoptr(GString) verb = g_string_new (info->methods[m]->name);
      GDBusArgInfo **in = info->methods[m]->in_args;

      g_string_append (verb, in[0] != NULL ? " " : " -");
      for (guint a = 0; in[a] != NULL; a++)
        g_string_append (verb, in[a]->signature);
      g_ptr_array_add (verbs, g_strdup (verb->str));
    }
  g_ptr_array_sort (verbs, compare);
  for (guint i = 0; i < verbs->len; i++)
    g_string_append_printf (found, "%s\n", (char *) g_ptr_array_index (verbs, i));
  g_assert_true (g_file_get_contents (VERBS, &expected, NULL, NULL));
  g_assert_cmpstr (found->str, ==, strchr (expected, '\n') + 1);
  g_assert_true (info->properties == NULL || info->properties[0] == NULL);
  g_assert_true (info->signals == NULL || info->signals[0] == NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/contract/annotations", test_annotations);
  g_test_add_func ("/contract/properties-are-read-only", test_properties_are_read_only);
  g_test_add_func ("/contract/agent-verbs", test_agent_verbs);
  return g_test_run ();
}
