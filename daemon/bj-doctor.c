/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "belljar-doctor"

#include "bj-doctor.h"

#include "bj-pool.h"
#include "bj-state-dir.h"

#include <unistd.h>

#define FREE_WANTED_MIB 5120
#define ACTIONS "/usr/share/polkit-1/actions/org.belljar1.policy"

struct _BjDoctor
{
  BjContext *context;         /* (not owned): outlives workers, bj-daemon.c sees to it */
  BjSessionManager *sessions; /* (owned) */
  GVariantBuilder checks;
};

BjDoctor *
bj_doctor_new (BjContext *context, BjSessionManager *sessions)
{
  BjDoctor *self = g_new0 (BjDoctor, 1);

  self->context = context;
  self->sessions = g_object_ref (sessions);
  g_variant_builder_init (&self->checks, G_VARIANT_TYPE ("aa{sv}"));
  return self;
}

void
bj_doctor_free (BjDoctor *self)
{
  g_variant_builder_clear (&self->checks);
  g_object_unref (self->sessions);
  g_free (self);
}

static void
add (BjDoctor *self, const char *name, gboolean ok, const char *detail, const char *fix)
{
  g_autofree char *valid = g_utf8_make_valid (detail != NULL ? detail : "", -1);

  g_variant_builder_open (&self->checks, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&self->checks, "{sv}", "name", g_variant_new_string (name));
  g_variant_builder_add (&self->checks, "{sv}", "ok", g_variant_new_boolean (ok));
  g_variant_builder_add (&self->checks, "{sv}", "detail", g_variant_new_string (valid));
  g_variant_builder_add (&self->checks, "{sv}", "fix", g_variant_new_string (ok ? "" : fix));
  g_variant_builder_close (&self->checks);
}

static void
check_engine (BjDoctor *self)
{
  BjEngine *engine = self->context->engine;
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) machines = bj_engine_list_machines (engine, &error);
  g_autofree char *detail = NULL;

  detail = machines != NULL
               ? g_strdup_printf ("%s, %u machines", bj_engine_get_uri (engine), g_strv_length (machines))
               : g_strdup_printf ("%s: %s", bj_engine_get_uri (engine), error->message);
  add (self, "engine", machines != NULL, detail, "See that libvirt's QEMU driver is installed, then restart belljard");
}

/* TCG is right, only slow: a check that fails would say something is broken. */
static void
check_accelerator (BjDoctor *self)
{
  BjEngine *engine = self->context->engine;
  g_autofree char *detail = g_strdup_printf ("%s: %s", bj_accelerator_to_string (bj_engine_get_accelerator (engine)),
                                             bj_engine_get_accelerator_reason (engine));

  add (self, "accelerator", TRUE, detail, "");
}

static void
check_firewall (BjDoctor *self)
{
  gboolean active = FALSE, proven = FALSE;
  g_autofree char *reason = NULL;

  if (self->context->firewall == NULL)
    {
      add (self, "nftables", FALSE, "belljard does not run as root: sessions have no network",
           "Run belljard as root, as its systemd unit does");
      return;
    }
  bj_firewall_get_status (self->context->firewall, &active, &proven, &reason);
  add (self, "nftables", active && proven, reason, "Load the nf_tables kernel module (modprobe nf_tables), then restart belljard");
}

/* Who may ask the doctor need not know more than where the server is: a path can be a secret. */
static char *
dup_server (const char *url)
{
  g_autoptr(GUri) uri = g_uri_parse (url, G_URI_FLAGS_NONE, NULL);

  return uri != NULL ? g_uri_join (G_URI_FLAGS_NONE, g_uri_get_scheme (uri), NULL, g_uri_get_host (uri), g_uri_get_port (uri), "",
                                   NULL, NULL)
                     : g_strdup ("?");
}

static void
check_model (BjDoctor *self)
{
  const BjConfig *config = self->context->config;
  g_autoptr(GError) error = NULL;
  g_autoptr(GVariant) info = NULL;
  g_autofree char *detail = NULL;
  g_autofree char *fix = NULL;
  g_autofree char *server = dup_server (config->model_url);
  gboolean reachable = FALSE, found = FALSE;
  const char *why = "";

  if (*config->model_name == '\0')
    {
      add (self, "model", FALSE, "No model is configured", "Set url= and name= in [model] of belljar.conf");
      return;
    }
  info = bj_gateway_ask (bj_session_manager_get_gateway (self->sessions), config->model_name, &error);
  if (info == NULL)
    {
      add (self, "model", FALSE, error->message,
           "The gateway (belljar-gateway) does not answer belljard: restart belljard, and look into its log for the cause");
      return;
    }
  g_variant_lookup (info, "reachable", "b", &reachable);
  g_variant_lookup (info, "found", "b", &found);
  g_variant_lookup (info, "error", "&s", &why);
  detail = g_strdup_printf ("%s at %s%s%s", config->model_name, server, *why != '\0' ? ": " : "", why);
  if (reachable && *why != '\0' && !found)
    fix = g_strdup_printf ("Run “ollama pull %s” there, or set another name= in [model] of belljar.conf", config->model_name);
  else
    fix = g_strdup ("Start the model server, or set url= in [model] of belljar.conf");
  add (self, "model", reachable && found, detail, fix);
}

static void
check_image (BjDoctor *self)
{
  BjImageStore *images = self->context->images;
  g_autofree char *name = bj_image_store_get_default (images);
  g_autoptr(GError) error = NULL;
  g_autoptr(BjImage) image = name != NULL ? bj_image_store_lookup (images, name, &error) : NULL;
  g_autofree char *detail = NULL;
  gboolean ok = image != NULL && bj_image_store_check_start (images, image, &error);

  if (ok)
    detail = g_strdup_printf ("%s:%u (%s) is frozen", image->name, image->version, image->os);
  else
    detail = g_strdup (name == NULL ? "There is no default image" : error->message);
  add (self, "image", ok, detail, "belljar image build debian");
}

/* Machines that boot instead are slow, not wrong; that the last template failed is worth knowing. */
static void
check_templates (BjDoctor *self)
{
  const BjContext *context = self->context;
  g_autofree char *failure = bj_templates_dup_failure (context->templates);
  g_autofree char *detail = NULL;

  if (!context->config->templates)
    detail = g_strdup ("Machines boot: [pool] templates is false");
  else if (failure != NULL)
    detail = g_strdup_printf ("Machines boot, because no template could be made: %s", failure);
  else
    detail = g_strdup_printf ("Machines are clones of a template, %u of %u are in the pool",
                              context->pool != NULL ? bj_pool_get_count (context->pool) : 0, context->config->pool_size);
  add (self, "templates", failure == NULL, detail, "Mend what the message names; ten minutes later it is tried again");
}

static void
check_space (BjDoctor *self)
{
  guint64 free_mib = bj_state_dir_get_free (self->context->state_dir) >> 20;
  g_autofree char *detail = g_strdup_printf ("%" G_GUINT64_FORMAT " MiB are free in %s", free_mib, self->context->state_dir);
  add (self, "space", free_mib >= FREE_WANTED_MIB, detail,
       "Make room there, or use another --state-dir: machines and images want at least 5 GiB");
}

static void
check_program (BjDoctor *self, const char *name, const char *const *paths, const char *package)
{
  g_autofree char *found = g_find_program_in_path (paths[0]);
  g_autofree char *fix = g_strdup_printf ("Install it: apt install %s", package);

  for (guint i = 1; paths[i] != NULL && found == NULL; i++)
    if (access (paths[i], X_OK) == 0)
      found = g_strdup (paths[i]);
  add (self, name, found != NULL, found != NULL ? found : "is not installed", fix);
}

static void
check_programs (BjDoctor *self)
{
  check_program (self, "qemu-img", (const char *[]) { "qemu-img", NULL }, "qemu-utils");
  check_program (self, "virtiofsd",
                 (const char *[]) { "virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", NULL },
                 "qemu-system-common (virtiofsd from Debian 13 on)");
  check_program (self, "bubblewrap", (const char *[]) { "bwrap", NULL }, "bubblewrap");
  check_program (self, "mmdebstrap", (const char *[]) { "mmdebstrap", NULL }, "mmdebstrap");
  check_program (self, "setpriv", (const char *[]) { "setpriv", NULL }, "util-linux");
}

static void
check_own_programs (BjDoctor *self)
{
  static const char *const names[] = { "belljar-agent", "belljar-gateway", "belljar-tree" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = bj_context_dup_program (self->context, names[i]);

      add (self, names[i], access (path, X_OK) == 0, path, "Install Belljar again, or build it: ninja -C build");
    }
}

static void
check_auth (BjDoctor *self)
{
  if (self->context->auth == BJ_AUTH_OWNER)
    {
      add (self, "authorization", TRUE, "--auth=owner: only the daemon's own uid and root may call", "");
      return;
    }
  add (self, "authorization", access (ACTIONS, R_OK) == 0, "polkit, with the actions of " ACTIONS,
       "Install Belljar (meson install), or copy data/polkit/org.belljar1.policy there");
}

gboolean
bj_doctor_run (gpointer data, GVariant **reply, GError **error)
{
  BjDoctor *self = data;

  check_engine (self);
  check_accelerator (self);
  check_firewall (self);
  check_model (self);
  check_image (self);
  check_templates (self);
  check_space (self);
  check_programs (self);
  check_own_programs (self);
  check_auth (self);
  *reply = g_variant_new ("(aa{sv})", &self->checks);
  return TRUE;
}
