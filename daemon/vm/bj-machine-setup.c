/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-machine-private.h"

/* The one call that makes a machine its own, and the proof that it is. */

#include "bj-domain-xml.h"
#include "bj-error.h"
#include "bj-guest-private.h"
#include "bj-machine-park.h"

#include <string.h>
#include <sys/random.h>

#define SETUP_SECONDS 60
#define CLOCK_GOOD_US 500000
#define CLOCK_BAD_US 10000000 /* nothing but a busy host explains less: a call that takes so long proves no more */
#define CLOCK_TRIES 3
#define ENTROPY 32
#define RANDOM_LENGTH 64 /* of 32 bytes in hexadecimal */
#define UUID_LENGTH 36
#define FACT_MAX 256
/* How many samples of random pools are remembered: the next clone of the same template must not show one of them. */
#define SAMPLES 4096

static GMutex samples_lock;
static GHashTable *samples; /* (element-type utf8), guarded by samples_lock */

void
bj_machine_facts_clear (BjMachineFacts *facts)
{
  g_clear_pointer (&facts->hostname, g_free);
  g_clear_pointer (&facts->machine_id, g_free);
  g_clear_pointer (&facts->mac, g_free);
  g_clear_pointer (&facts->random, g_free);
  g_clear_pointer (&facts->uuid, g_free);
}

static char *
build_resolv_conf (GStrv resolvers)
{
  g_autoptr(GString) text = g_string_new (NULL);

  for (guint i = 0; resolvers != NULL && resolvers[i] != NULL; i++)
    g_string_append_printf (text, "%snameserver %s", i > 0 ? "\n" : "", resolvers[i]);
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static char *
make_machine_id (void)
{
  g_autofree char *uuid = g_uuid_string_random ();
  g_auto(GStrv) parts = g_strsplit (uuid, "-", -1);

  return g_strjoinv (NULL, parts);
}

static char *
make_entropy (void)
{
  guint8 bytes[ENTROPY];
  GString *hex = g_string_new (NULL);

  if (getrandom (bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
    g_warning ("The host has no random numbers for a machine");
  for (guint i = 0; i < sizeof bytes; i++)
    g_string_append_printf (hex, "%02x", bytes[i]);
  explicit_bzero (bytes, sizeof bytes);
  return g_string_free (hex, FALSE);
}

static gboolean
ask (BjMachine *self, BjGuestRequest *request, char **text, GCancellable *cancellable, GError **error)
{
  g_autoptr(GBytes) output = NULL;
  g_autofree char *raw = NULL;
  g_autofree char *failure = NULL;
  BjGuestAnswer answer;

  if (!bj_guest_ask (self->guest, "setup", request, NULL, SETUP_SECONDS, &answer, &output, cancellable, error))
    {
      g_prefix_error (error, "Setting up the machine: ");
      return FALSE;
    }
  if (answer.exit == 0)
    {
      *text = g_strndup ((const char *) answer.pieces[0], answer.lengths[0]);
      return TRUE;
    }
  raw = g_strndup ((const char *) answer.pieces[2], answer.lengths[2]);
  failure = bj_libvirt_clean_text (raw);
  return bj_error_set (error, BJ_ERROR_FAILED, "Setting up the machine failed in the guest: %s", failure);
}

static void
add_mount (BjGuestRequest *request, const char *mount_point)
{
  bj_guest_request_add (request, "mount", mount_point);
  bj_guest_request_add (request, "tag", BJ_DOMAIN_SHARE_TAG);
}

/* A value the guest chose: printable ASCII, or replaced. */
static char *
take_fact (const char *text, const char *name)
{
  g_auto(GStrv) lines = g_strsplit (text, "\n", -1);
  gsize length = strlen (name);

  for (char **line = lines; *line != NULL; line++)
    if (strncmp (*line, name, length) == 0 && (*line)[length] == '=' && strlen (*line) < FACT_MAX)
      return bj_libvirt_clean_text (*line + length + 1);
  return g_strdup ("");
}

/* The guest looked at its clock at some moment between two of ours: how far off it may be, at most. */
static gint64
bound_offset (gint64 value, gint64 before, gint64 after)
{
  return MAX (ABS (value - before), ABS (after - value));
}

static void
parse_facts (const char *text, gint64 before, gint64 after, BjMachineFacts *facts)
{
  g_autofree char *clock = take_fact (text, "clock");
  g_autofree char *keys = take_fact (text, "old-host-keys");
  g_autofree char *reseeded = take_fact (text, "reseeded");

  facts->clock_us = bound_offset (g_ascii_strtoll (clock, NULL, 10), before, after);
  facts->old_host_keys = (guint) g_ascii_strtoull (keys, NULL, 10);
  facts->hostname = take_fact (text, "hostname");
  facts->machine_id = take_fact (text, "machine-id");
  facts->mac = take_fact (text, "mac");
  facts->random = take_fact (text, "random");
  facts->uuid = take_fact (text, "uuid");
  facts->reseeded = g_str_equal (reseeded, "1");
}

/* Returns whether no machine showed the same before. */
static gboolean
remember_sample (const char *sample, gsize length)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&samples_lock);

  if (samples == NULL || g_hash_table_size (samples) > SAMPLES)
    {
      g_clear_pointer (&samples, g_hash_table_unref);
      samples = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    }
  return strlen (sample) == length && g_hash_table_add (samples, g_strdup (sample));
}

/* A long setup says little about the clock: it is set again by a call that does nothing else. */
static gboolean
settle_clock (BjMachine *self, BjMachineFacts *facts, GCancellable *cancellable, GError **error)
{
  for (guint i = 0; i < CLOCK_TRIES && facts->clock_us > CLOCK_GOOD_US; i++)
    {
      gint64 before = g_get_monotonic_time ();

      if (!bj_guest_hello (self->guest, cancellable, error))
        return FALSE;
      facts->clock_us = MIN (facts->clock_us, g_get_monotonic_time () - before);
    }
  return TRUE;
}

static gboolean
are_own_numbers (const BjMachineFacts *facts)
{
  return remember_sample (facts->random, RANDOM_LENGTH) && remember_sample (facts->uuid, UUID_LENGTH);
}

static gboolean
prove_fresh (BjMachine *self, const BjMachineFacts *facts, const char *machine_id, GError **error)
{
  g_autofree char *mac = self->spec->network ? bj_machine_dup_mac (self) : g_strdup ("");
  const char *wrong = NULL;

  if (facts->clock_us > CLOCK_BAD_US)
    wrong = "its clock is not ours";
  else if (!g_str_equal (facts->machine_id, machine_id))
    wrong = "its machine-id is not its own";
  else if (!g_str_equal (facts->hostname, self->spec->hostname))
    wrong = "its host name is not its own";
  else if (!g_str_equal (facts->mac, mac))
    wrong = "its network card is not its own";
  else if (facts->old_host_keys > 0)
    wrong = "it has SSH host keys of another machine";
  else if (!are_own_numbers (facts))
    wrong = "its random numbers are those of another machine";
  return wrong == NULL
         || bj_error_set (error, BJ_ERROR_FAILED, "The machine %s is not fresh: %s", self->spec->id, wrong);
}

static void
steal_facts (BjMachineFacts *to, BjMachineFacts *from)
{
  *to = *from;
  *from = (BjMachineFacts) { 0 };
}

gboolean
bj_machine_setup (BjMachine *self, const char *mount_point, BjMachineFacts *facts, GCancellable *cancellable,
                  GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autofree char *resolv = build_resolv_conf (self->spec->resolvers);
  g_autofree char *machine_id = make_machine_id ();
  g_autofree char *entropy = make_entropy ();
  g_autofree char *text = NULL;
  g_auto(BjMachineFacts) own = { 0 };
  gint64 before = g_get_real_time ();

  bj_guest_request_add_number (request, "clock", (guint64) before);
  bj_guest_request_add (request, "hostname", self->spec->hostname);
  bj_guest_request_add (request, "machine-id", machine_id);
  bj_guest_request_add (request, "entropy", entropy);
  if (*resolv != '\0')
    bj_guest_request_add (request, "resolv", resolv);
  if (self->spec->network)
    bj_guest_request_add_number (request, "nic", 1);
  if (self->spec->data_disk != NULL)
    bj_guest_request_add (request, "device", "/dev/vdb");
  if (mount_point != NULL)
    add_mount (request, mount_point);
  if (!ask (self, request, &text, cancellable, error))
    return FALSE;
  parse_facts (text, before, g_get_real_time (), &own);
  if (!settle_clock (self, &own, cancellable, error) || !prove_fresh (self, &own, machine_id, error))
    return FALSE;
  if (facts != NULL)
    steal_facts (facts, &own);
  return TRUE;
}

/* What a machine needs to know that time has passed. */
static BjGuestRequest *
begin_again (BjMachine *self, const char *mount_point)
{
  BjGuestRequest *request = bj_guest_request_new ();
  g_autofree char *resolv = build_resolv_conf (self->spec->resolvers);
  g_autofree char *entropy = make_entropy ();

  bj_guest_request_add_number (request, "clock", (guint64) g_get_real_time ());
  bj_guest_request_add (request, "entropy", entropy);
  if (*resolv != '\0')
    bj_guest_request_add (request, "resolv", resolv);
  if (self->spec->network)
    bj_guest_request_add_number (request, "nic", 1);
  if (mount_point != NULL)
    add_mount (request, mount_point);
  return request;
}

gboolean
bj_machine_setup_again (BjMachine *self, const char *mount_point, BjMachineFacts *facts, GCancellable *cancellable,
                        GError **error)
{
  gint64 before = g_get_real_time ();
  g_autoptr(BjGuestRequest) request = begin_again (self, self->unmounted ? mount_point : NULL);
  g_autofree char *text = NULL;
  g_auto(BjMachineFacts) own = { 0 };

  if (!ask (self, request, &text, cancellable, error))
    return FALSE;
  self->unmounted = FALSE;
  parse_facts (text, before, g_get_real_time (), &own);
  if (!settle_clock (self, &own, cancellable, error))
    return FALSE;
  if (own.clock_us > CLOCK_BAD_US)
    return bj_error_set (error, BJ_ERROR_FAILED, "The clock of the machine %s cannot be set", self->spec->id);
  if (!are_own_numbers (&own))
    return bj_error_set (error, BJ_ERROR_FAILED, "The machine %s has the random numbers it had before", self->spec->id);
  steal_facts (facts, &own);
  return TRUE;
}

gboolean
bj_machine_unmount_share (BjMachine *self, const char *mount_point, guint *users, GCancellable *cancellable,
                          GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autofree char *text = NULL;
  g_autofree char *number = NULL;

  bj_guest_request_add (request, "unmount", mount_point);
  if (!ask (self, request, &text, cancellable, error))
    return FALSE;
  number = take_fact (text, "users");
  *users = (guint) MIN (g_ascii_strtoull (number, NULL, 10), G_MAXUINT16);
  return TRUE;
}

gboolean
bj_machine_mount_share (BjMachine *self, const char *mount_point, GCancellable *cancellable, GError **error)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autofree char *text = NULL;

  add_mount (request, mount_point);
  return ask (self, request, &text, cancellable, error);
}
