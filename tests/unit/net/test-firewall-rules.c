/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-firewall-rules.h"

#include "bj-engine.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

typedef union
{
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} Address;

static void
set_address (Address *address, int family, const char *text)
{
  address->any.sa_family = (sa_family_t) family;
  g_assert_cmpint (inet_pton (family, text, family == AF_INET ? (void *) &address->v4.sin_addr : &address->v6.sin6_addr), ==, 1);
}

static const struct
{
  int family;
  const char *address, *mask, *peer; /* mask and peer may be missing */
  guint flags;
  const char *set; /* the on-link set's elements, or NULL when it stays empty */
} cases[] = {
  { AF_INET, "203.0.113.77", "255.255.255.0", NULL, 0, "{ 203.0.113.0/24 }" },
  { AF_INET, "203.0.113.77", "255.255.255.240", NULL, 0, "{ 203.0.113.64/28 }" },
  { AF_INET, "203.0.113.77", "255.255.255.255", "198.51.100.1", IFF_POINTOPOINT, "{ 203.0.113.77/32, 198.51.100.1/32 }" },
  { AF_INET, "203.0.113.77", "255.255.255.0", "203.0.113.255", IFF_BROADCAST, "{ 203.0.113.0/24 }" },
  { AF_INET, "203.0.113.77", NULL, NULL, 0, "{ 203.0.113.77/32 }" },
  { AF_INET, "203.0.113.77", "0.0.0.0", NULL, 0, NULL },
  { AF_INET, "127.0.0.1", "255.0.0.0", NULL, IFF_LOOPBACK, NULL },
  { AF_INET6, "2001:db8:1:2:3::9", "ffff:ffff:ffff:ffff::", NULL, 0, "{ 2001:db8:1:2::/64 }" },
  { AF_INET6, "2001:db8::9", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL, 0, "{ 2001:db8::9/128 }" },
  { AF_INET6, "2001:db8:ffff::9", "ffff:ffff:e000::", NULL, 0, "{ 2001:db8:e000::/35 }" },
};

static void
test_on_link (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      Address address = { 0 }, mask = { 0 }, peer = { 0 };
      struct ifaddrs packet = { .ifa_name = (char *) "eth0" }; /* has no address at all */
      struct ifaddrs interface = { .ifa_next = &packet, .ifa_name = (char *) "eth0", .ifa_flags = cases[i].flags,
                                   .ifa_addr = &address.any };
      const char *type = cases[i].family == AF_INET ? "ipv4_addr" : "ipv6_addr";
      const char *name = cases[i].family == AF_INET ? "onlink4" : "onlink6";
      g_autofree char *rules = NULL;
      g_autofree char *expected = NULL;

      set_address (&address, cases[i].family, cases[i].address);
      if (cases[i].mask != NULL)
        {
          set_address (&mask, cases[i].family, cases[i].mask);
          interface.ifa_netmask = &mask.any;
        }
      if (cases[i].peer != NULL)
        {
          set_address (&peer, cases[i].family, cases[i].peer);
          interface.ifa_dstaddr = &peer.any;
        }
      rules = bj_firewall_format_rules (&interface, TRUE);
      expected = g_strdup_printf ("  set %s { type %s; flags interval; auto-merge;%s%s%s", name, type,
                                  cases[i].set != NULL ? " elements = " : "", cases[i].set != NULL ? cases[i].set : "",
                                  cases[i].set != NULL ? "; }\n" : " }\n");
      g_test_message ("%s", expected);
      g_assert_nonnull (strstr (rules, expected));
    }
}

static void
test_shape (void)
{
  static const char *const needed[] = {
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "0.0.0.0/8",
    "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4", "fc00::/7", "fe80::/10", "ff00::/8", "::ffff:0:0/96", "64:ff9b::/96",
    "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10", "meta skuid 1900000000-1900001023 jump machines",
  };
  g_autofree char *with = bj_firewall_format_rules (NULL, TRUE);
  g_autofree char *without = bj_firewall_format_rules (NULL, FALSE);

  g_assert_true (g_str_has_prefix (with, "table inet belljar\ndelete table inet belljar\ntable inet belljar {\n"));
  for (guint i = 0; i < G_N_ELEMENTS (needed); i++)
    g_assert_nonnull (strstr (with, needed[i]));
  g_assert_nonnull (strstr (with, "fib daddr"));
  g_assert_null (strstr (without, "fib"));
  g_assert_null (strstr (with, "accept\n")); /* nothing is let through here: only drops */
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/firewall-rules/on-link", test_on_link);
  g_test_add_func ("/firewall-rules/shape", test_shape);
  return g_test_run ();
}
