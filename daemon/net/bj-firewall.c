/* SPDX-License-Identifier: GPL-3.0-or-later */
#define G_LOG_DOMAIN "bj-firewall"

#include "bj-firewall.h"

#include "bj-engine.h"
#include "bj-error.h"
#include "bj-fd.h"
#include "bj-firewall-probe.h"
#include "bj-firewall-rules.h"

#include <errno.h>
#include <fcntl.h>
#include <json-glib/json-glib.h>
#include <nftables/libnftables.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define TABLE "inet belljar"
#define MESSAGE_MAX 300
#define USERS_TRIES 100
#define USERS_STEP_US 50000
#define LOOK_US (1 * G_USEC_PER_SEC) /* a look is for all machines that ask within this time */

struct _BjFirewall
{
  GObject parent_instance;
  GMutex work;      /* one transaction or proof at a time */
  gint64 proved_from_us; /* (lock: work): monotonic, when the newest proof began, if it held */
  gboolean no_fib;  /* (lock: work): the kernel has no fib expression */
  BjFd users;       /* (lock: work): locked shared while this daemon needs the table, -1 before */
  char *table;      /* (lock: work) (nullable): the table as the kernel listed it after it was installed */
  gint64 looked;    /* (lock: work): monotonic, when it was last seen to be as it was */
  GMutex state;     /* what follows; never held while blocking */
  gboolean active;
  gboolean proven;
  char *reason;
  guint losses;     /* how often somebody else removed or changed the table */
};

G_DEFINE_FINAL_TYPE (BjFirewall, bj_firewall, G_TYPE_OBJECT)

typedef struct nft_ctx NftContext;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (NftContext, nft_ctx_free)

static void
set_state (BjFirewall *self, gboolean active, gboolean proven, const char *reason)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->state);

  self->active = active;
  self->proven = proven;
  g_free (self->reason);
  self->reason = g_strdup (reason);
}

/* The first line of what libnftables says, as one sentence. */
static char *
first_line (const char *text)
{
  g_autofree char *cut = g_strndup (text != NULL ? text : "", MESSAGE_MAX);
  g_autofree char *valid = g_utf8_make_valid (cut, -1);

  valid[strcspn (valid, "\n")] = '\0';
  return g_strdup (*valid != '\0' ? valid : "no reason was given");
}

/* @output: (out) (optional) (transfer full): in the form that @flags ask for */
static gboolean
run_nft_as (const char *commands, unsigned flags, char **output, GError **error)
{
  g_autoptr(NftContext) nft = nft_ctx_new (NFT_CTX_DEFAULT);
  g_autofree char *message = NULL;
  int saved_errno;

  if (nft == NULL || nft_ctx_buffer_error (nft) != 0 || nft_ctx_buffer_output (nft) != 0)
    return bj_error_set (error, BJ_ERROR_FAILED, "libnftables cannot be started");
  nft_ctx_output_set_flags (nft, flags);
  errno = 0;
  if (nft_run_cmd_from_buffer (nft, commands) == 0)
    {
      if (output != NULL)
        *output = g_strdup (nft_ctx_get_output_buffer (nft));
      return TRUE;
    }
  saved_errno = errno;
  message = first_line (nft_ctx_get_error_buffer (nft));
  if (saved_errno == EPERM || strstr (message, "Operation not permitted") != NULL)
    return bj_error_set (error, BJ_ERROR_DENIED, "The firewall's table can only be handled by root with CAP_NET_ADMIN: %s",
                         message);
  return bj_error_set (error, BJ_ERROR_FAILED, "nftables: %s", message);
}

static gboolean
run_nft (const char *commands, char **output, GError **error)
{
  return run_nft_as (commands, NFT_CTX_OUTPUT_JSON, output, error);
}

/* Without what counts and without handles: the same rules give the same text, whoever installed them.
 * Returns: (transfer full) (nullable): %NULL when there is none */
static char *
list_table (void)
{
  char *text = NULL;

  return run_nft_as ("list table " TABLE, NFT_CTX_OUTPUT_STATELESS, &text, NULL) ? text : NULL;
}

static gboolean
load_rules (const struct ifaddrs *interfaces, gboolean with_fib, GError **error)
{
  g_autofree char *rules = bj_firewall_format_rules (interfaces, with_fib);

  return run_nft (rules, NULL, error);
}

static gboolean
replace_table (BjFirewall *self, GError **error)
{
  struct ifaddrs *interfaces = NULL;
  g_autoptr(GError) local_error = NULL;
  gboolean ok;

  if (getifaddrs (&interfaces) < 0)
    return bj_fd_set_io_error (error, errno, "Asking for the host's addresses");
  ok = load_rules (interfaces, !self->no_fib, &local_error);
  if (!ok && !self->no_fib && !g_error_matches (local_error, BJ_ERROR, BJ_ERROR_DENIED)
      && load_rules (interfaces, FALSE, NULL))
    {
      self->no_fib = ok = TRUE;
      g_warning ("The kernel's nftables has no fib expression (%s): addresses that the host gets later are blocked only from the "
                 "next session on", local_error->message);
    }
  freeifaddrs (interfaces);
  if (!ok)
    g_propagate_error (error, g_steal_pointer (&local_error));
  return ok;
}

static void
note_loss (BjFirewall *self, const char *before)
{
  if (before == NULL)
    g_warning ("Somebody removed the firewall's table; it is installed again");
  else
    g_warning ("Somebody changed the firewall's table; it is installed again");
  g_mutex_lock (&self->state);
  self->losses++;
  g_mutex_unlock (&self->state);
}

/* Another daemon may have replaced the table by one for the networks that the host is on now: that is no loss. */
static gboolean
install_locked (BjFirewall *self, GError **error)
{
  g_autofree char *before = self->table != NULL ? list_table () : NULL;
  g_autofree char *known = g_steal_pointer (&self->table);
  gboolean ok = replace_table (self, error);

  self->table = ok ? list_table () : NULL;
  self->looked = g_get_monotonic_time ();
  if (known != NULL && g_strcmp0 (before, known) != 0 && (before == NULL || g_strcmp0 (before, self->table) != 0))
    note_loss (self, before);
  return ok;
}

gboolean
bj_firewall_is_intact (BjFirewall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->work);
  g_autofree char *now = NULL;

  if (self->table == NULL)
    return FALSE;
  if (g_get_monotonic_time () < self->looked + LOOK_US)
    return TRUE;
  now = list_table ();
  if (g_strcmp0 (now, self->table) != 0)
    return FALSE;
  self->looked = g_get_monotonic_time ();
  return TRUE;
}

guint
bj_firewall_get_losses (BjFirewall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->state);

  return self->losses;
}

gboolean
bj_firewall_install (BjFirewall *self, GError **error)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->work);
  g_autoptr(GError) local_error = NULL;

  if (install_locked (self, &local_error))
    {
      set_state (self, TRUE, FALSE, "The firewall's table is installed; it was not tested yet");
      return TRUE;
    }
  set_state (self, FALSE, FALSE, local_error->message);
  g_propagate_error (error, g_steal_pointer (&local_error));
  return FALSE;
}

/* Packets that the table dropped so far. */
static gboolean
read_counter (gint64 *packets, GError **error)
{
  g_autofree char *text = NULL;
  g_autoptr(JsonNode) root = NULL;
  g_autoptr(JsonPath) path = json_path_new ();
  g_autoptr(JsonNode) found = NULL;
  JsonArray *values;

  if (!run_nft ("list counters table " TABLE, &text, error))
    return FALSE;
  root = json_from_string (text, error);
  if (root == NULL || !json_path_compile (path, "$.nftables[*].counter.packets", error))
    return FALSE;
  found = json_path_match (path, root);
  values = json_node_get_array (found);
  if (json_array_get_length (values) != 1)
    return bj_error_set (error, BJ_ERROR_FAILED, "The firewall's table has no counter any more; somebody changes it");
  *packets = json_array_get_int_element (values, 0);
  return TRUE;
}

static gboolean
has_no_family (int family, int code)
{
  return family == AF_INET6
         && (code == EAFNOSUPPORT || code == EADDRNOTAVAIL || code == ENETUNREACH || code == EPROTONOSUPPORT);
}

/* The first and the last machine must be refused, those beside them and ourselves must not. */
static gboolean
prove_family (int family, gint64 *refused, GError **error)
{
  const struct { guint32 uid; gboolean machine; } probes[] = {
    { geteuid (), FALSE },
    { BJ_MACHINE_UID_BASE - 1, FALSE },
    { BJ_MACHINE_UID_BASE, TRUE },
    { BJ_MACHINE_UID_BASE + BJ_MACHINE_SLOTS - 1, TRUE },
    { BJ_MACHINE_UID_BASE + BJ_MACHINE_SLOTS, FALSE },
  };
  const char *version = family == AF_INET ? "IPv4" : "IPv6";

  for (guint i = 0; i < G_N_ELEMENTS (probes); i++)
    {
      int code = 0;

      if (!bj_firewall_probe (probes[i].uid, family, &code, error))
        return FALSE;
      if (i == 0 && has_no_family (family, code))
        return TRUE;
      if (probes[i].machine && code == 0)
        return bj_error_set (error, BJ_ERROR_FAILED, "The firewall has no effect: a machine (uid %u) can reach this host (%s)",
                             probes[i].uid, version);
      if (code != 0 && (!probes[i].machine || code != EPERM))
        return bj_error_set (error, BJ_ERROR_FAILED, "The firewall's test says nothing: a datagram to this host (%s) as uid %u "
                             "fails in another way: %s", version, probes[i].uid, g_strerror (code));
      *refused += probes[i].machine;
    }
  return TRUE;
}

static gboolean
prove_locked (BjFirewall *self, GError **error)
{
  gint64 before = 0, after = 0, refused = 0;

  if (!read_counter (&before, error) || !prove_family (AF_INET, &refused, error)
      || !prove_family (AF_INET6, &refused, error) || !read_counter (&after, error))
    return FALSE;
  if (after - before < refused)
    return bj_error_set (error, BJ_ERROR_FAILED, "Somebody else refused the test's datagrams: the table's own counter did not rise");
  return TRUE;
}

/* The table belongs to all daemons of this network; who holds the lock needs it. Without the file a daemon counts as alone. */
static void
join_users_locked (BjFirewall *self)
{
  g_autofree char *path = NULL;
  struct stat network;

  if (self->users >= 0 || stat ("/proc/self/ns/net", &network) != 0)
    return;
  path = g_strdup_printf ("/run/belljar-firewall-%" G_GUINT64_FORMAT ".lock", (guint64) network.st_ino);
  self->users = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  for (guint i = 0; self->users >= 0 && flock (self->users, LOCK_SH | LOCK_NB) != 0 && i < USERS_TRIES; i++)
    g_usleep (USERS_STEP_US); /* another one removes the table just now */
}

gboolean
bj_firewall_prove (BjFirewall *self, GError **error)
{
  gint64 asked_us = g_get_monotonic_time ();
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->work);
  g_autoptr(GError) local_error = NULL;
  gboolean installed = FALSE;
  gint64 begun_us = g_get_monotonic_time ();

  if (self->proved_from_us >= asked_us) /* begun and finished while this caller waited its turn */
    return TRUE;
  join_users_locked (self);
  installed = install_locked (self, &local_error);
  if (installed && prove_locked (self, &local_error))
    {
      set_state (self, TRUE, TRUE, self->no_fib
                 ? "A machine's datagram to this host was refused and counted, another user's was not; addresses that the host "
                   "gets later are blocked only from the next session on, because the kernel has no fib expression"
                 : "A machine's datagram to this host was refused and counted, another user's was not");
      self->proved_from_us = begun_us;
      return TRUE;
    }
  self->proved_from_us = 0;
  set_state (self, installed, FALSE, local_error->message);
  g_propagate_error (error, g_steal_pointer (&local_error));
  return FALSE;
}

void
bj_firewall_remove (BjFirewall *self)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->work);
  g_autoptr(GError) error = NULL;

  if (self->users >= 0 && flock (self->users, LOCK_EX | LOCK_NB) != 0)
    g_message ("The firewall's table stays: another belljard on this host needs it");
  else if (!run_nft ("table " TABLE "\ndelete table " TABLE "\n", NULL, &error))
    g_message ("The firewall's table stays: %s", error->message);
  bj_fd_clear (&self->users);
  g_clear_pointer (&self->table, g_free);
  set_state (self, FALSE, FALSE, "The firewall's table was removed");
}

void
bj_firewall_get_status (BjFirewall *self, gboolean *active, gboolean *proven, char **reason)
{
  g_autoptr(GMutexLocker) locker G_GNUC_UNUSED = g_mutex_locker_new (&self->state);

  if (active != NULL)
    *active = self->active;
  if (proven != NULL)
    *proven = self->proven;
  if (reason != NULL)
    *reason = g_strdup (self->reason);
}

static void
bj_firewall_finalize (GObject *object)
{
  BjFirewall *self = BJ_FIREWALL (object);

  bj_fd_clear (&self->users);
  g_mutex_clear (&self->work);
  g_mutex_clear (&self->state);
  g_free (self->reason);
  g_free (self->table);
  G_OBJECT_CLASS (bj_firewall_parent_class)->finalize (object);
}

static void
bj_firewall_class_init (BjFirewallClass *class)
{
  G_OBJECT_CLASS (class)->finalize = bj_firewall_finalize;
}

static void
bj_firewall_init (BjFirewall *self)
{
  self->users = -1;
  g_mutex_init (&self->work);
  g_mutex_init (&self->state);
  self->reason = g_strdup ("The firewall's table is not installed yet");
}

BjFirewall *
bj_firewall_new (void)
{
  return g_object_new (BJ_TYPE_FIREWALL, NULL);
}
