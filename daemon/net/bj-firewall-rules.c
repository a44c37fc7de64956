/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-firewall-rules.h"

#include "bj-engine.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static const char *const net4[] = {
  "0.0.0.0/8",       /* this host */
  "10.0.0.0/8",      /* private */
  "100.64.0.0/10",   /* carrier-grade NAT */
  "127.0.0.0/8",     /* loopback */
  "169.254.0.0/16",  /* link-local, cloud metadata */
  "172.16.0.0/12",   /* private */
  "192.0.0.0/24",    /* protocol assignments */
  "192.88.99.0/24",  /* 6to4 relays */
  "192.168.0.0/16",  /* private */
  "198.18.0.0/15",   /* benchmarks: often used inside */
  "224.0.0.0/4",     /* multicast */
  "240.0.0.0/4",     /* reserved, broadcast */
};

static const char *const net6[] = {
  "::/96",           /* unspecified, loopback, old IPv4-compatible */
  "::ffff:0:0/96",   /* IPv4-mapped */
  "64:ff9b::/96",    /* NAT64 */
  "64:ff9b:1::/48",  /* NAT64, local */
  "100::/64",        /* discard */
  "2001::/32",       /* Teredo */
  "2002::/16",       /* 6to4 */
  "fc00::/7",        /* unique local */
  "fe80::/10",       /* link-local */
  "fec0::/10",       /* old site-local; slirp's aliases */
  "ff00::/8",        /* multicast */
};

static guint
prefix_length (const guint8 *mask, gsize size)
{
  guint bits = 0;

  while (bits < size * 8 && (mask[bits / 8] & (0x80 >> (bits % 8))) != 0)
    bits++;
  return bits;
}

/* The network that @address stands in; nothing for a mask that would mean everything. */
static void
add_network (GPtrArray *networks, int family, const guint8 *address, guint bits)
{
  guint8 network[16] = { 0 };
  char text[INET6_ADDRSTRLEN];

  if (bits == 0)
    return;
  memcpy (network, address, family == AF_INET ? 4 : 16);
  for (guint i = bits; i < (family == AF_INET ? 32 : 128); i++)
    network[i / 8] &= (guint8) ~(0x80 >> (i % 8));
  if (inet_ntop (family, network, text, sizeof text) != NULL)
    g_ptr_array_add (networks, g_strdup_printf ("%s/%u", text, bits));
}

static const guint8 *
address_bytes (const struct sockaddr *address)
{
  if (address->sa_family == AF_INET)
    return (const guint8 *) &((const struct sockaddr_in *) address)->sin_addr;
  return (const guint8 *) &((const struct sockaddr_in6 *) address)->sin6_addr;
}

/* What is on the wires of the host: each interface's network, and the other end of a point-to-point link. */
static GPtrArray *
on_link_networks (const struct ifaddrs *interfaces, int family)
{
  GPtrArray *networks = g_ptr_array_new_with_free_func (g_free);
  gsize size = family == AF_INET ? 4 : 16;

  for (const struct ifaddrs *i = interfaces; i != NULL; i = i->ifa_next)
    {
      if (i->ifa_addr == NULL || i->ifa_addr->sa_family != family || (i->ifa_flags & IFF_LOOPBACK) != 0)
        continue;
      add_network (networks, family, address_bytes (i->ifa_addr),
                   i->ifa_netmask != NULL ? prefix_length (address_bytes (i->ifa_netmask), size) : (guint) size * 8);
      if ((i->ifa_flags & IFF_POINTOPOINT) != 0 && i->ifa_dstaddr != NULL && i->ifa_dstaddr->sa_family == family)
        add_network (networks, family, address_bytes (i->ifa_dstaddr), (guint) size * 8);
    }
  return networks;
}

static void
add_set (GString *out, const char *name, const char *type, const char *const *elements, gsize count)
{
  g_string_append_printf (out, "  set %s { type %s; flags interval; auto-merge;", name, type);
  for (gsize i = 0; i < count; i++)
    g_string_append_printf (out, "%s %s", i == 0 ? " elements = {" : ",", elements[i]);
  g_string_append (out, count > 0 ? " }; }\n" : " }\n");
}

static void
add_on_link_set (GString *out, const char *name, const char *type, const struct ifaddrs *interfaces, int family)
{
  g_autoptr(GPtrArray) networks = on_link_networks (interfaces, family);

  add_set (out, name, type, (const char *const *) networks->pdata, networks->len);
}

/* Twice in the packet's way: before an address is translated by somebody's rules, and after. */
static void
add_hook (GString *out, const char *name, const char *priority)
{
  g_string_append_printf (out,
                          "  chain %s {\n"
                          "    type filter hook output priority %s; policy accept;\n"
                          "    meta skuid %u-%u jump machines\n"
                          "  }\n",
                          name, priority, BJ_MACHINE_UID_BASE, BJ_MACHINE_UID_BASE + BJ_MACHINE_SLOTS - 1);
}

char *
bj_firewall_format_rules (const struct ifaddrs *interfaces, gboolean with_fib)
{
  g_autoptr(GString) out = g_string_new ("table inet belljar\n"
                                         "delete table inet belljar\n"
                                         "table inet belljar {\n"
                                         "  counter blocked { }\n");

  add_set (out, "net4", "ipv4_addr", net4, G_N_ELEMENTS (net4));
  add_set (out, "net6", "ipv6_addr", net6, G_N_ELEMENTS (net6));
  add_on_link_set (out, "onlink4", "ipv4_addr", interfaces, AF_INET);
  add_on_link_set (out, "onlink6", "ipv6_addr", interfaces, AF_INET6);
  g_string_append (out, "  chain machines {\n"
                        "    ip daddr @net4 counter name blocked drop\n"
                        "    ip6 daddr @net6 counter name blocked drop\n"
                        "    ip daddr @onlink4 counter name blocked drop\n"
                        "    ip6 daddr @onlink6 counter name blocked drop\n");
  if (with_fib)
    g_string_append (out, "    fib daddr type { local, broadcast, anycast, multicast } counter name blocked drop\n");
  g_string_append (out, "  }\n");
  add_hook (out, "before_translation", "raw");
  add_hook (out, "after_translation", "filter");
  g_string_append (out, "}\n");
  return g_string_free (g_steal_pointer (&out), FALSE);
}
