/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-template-key.h"

#include "bj-domain-xml.h"
#include "bj-engine-private.h"
#include "bj-libvirt.h"

#include <glib/gstdio.h>
#include <string.h>

#define KEY_LENGTH 32
/* Changes when a template is warmed or stored in another way. */
#define FORMAT "2"

static void
feed (GChecksum *checksum, const char *text)
{
  g_checksum_update (checksum, (const guchar *) (text != NULL ? text : ""), -1);
  g_checksum_update (checksum, (const guchar *) "", 1);
}

/* The version alone does not tell Debian's builds of it apart. */
static void
feed_emulator (GChecksum *checksum)
{
  g_autofree char *facts = NULL;
  GStatBuf info = { 0 };

  if (g_stat (BJ_DOMAIN_EMULATOR, &info) == 0)
    facts = g_strdup_printf ("%" G_GINT64_FORMAT " %" G_GINT64_FORMAT, (gint64) info.st_size, (gint64) info.st_mtime);
  feed (checksum, facts);
}

static void
feed_processor (GChecksum *checksum)
{
  g_autofree char *text = NULL;
  const char *model;

  if (!g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL) || (model = strstr (text, "model name")) == NULL)
    return;
  g_checksum_update (checksum, (const guchar *) model, (gssize) strcspn (model, "\n"));
}

/* Kernel and initrd go into it by the image's digest; where they lie does not matter. */
static char *
describe_machine (BjEngine *engine, const BjMachineSpec *spec)
{
  BjMachineSpec plain = { .id = (char *) "template", .run_dir = (char *) "/", .cmdline = spec->cmdline,
                          .memory_mib = spec->memory_mib, .cpus = spec->cpus, .tablet = spec->tablet };
  const BjDomainFiles files = { .disk = "/", .ram = "/" };

  return bj_domain_xml_build (&plain, &files, bj_engine_get_accelerator (engine));
}

char *
bj_template_key_compute (BjEngine *engine, const char *image_digest, const BjMachineSpec *spec, GError **error)
{
  virConnectPtr connection = bj_engine_get_connection (engine, error);
  g_autoptr(GChecksum) checksum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree char *machine = describe_machine (engine, spec);
  g_autofree char *versions = NULL;
  unsigned long hypervisor = 0;
  unsigned long library = 0;

  if (connection == NULL)
    return NULL;
  if (virConnectGetVersion (connection, &hypervisor) < 0 || virConnectGetLibVersion (connection, &library) < 0)
    {
      bj_libvirt_set_error (error, BJ_ERROR_FAILED, "Asking for QEMU's version");
      return NULL;
    }
  versions = g_strdup_printf ("%lu %lu", hypervisor, library);
  feed (checksum, FORMAT);
  feed (checksum, image_digest);
  feed (checksum, versions);
  feed (checksum, machine);
  feed_emulator (checksum);
  feed_processor (checksum);
  return g_strndup (g_checksum_get_string (checksum), KEY_LENGTH);
}
