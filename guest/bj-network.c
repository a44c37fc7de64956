/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CARD "eth0"

static void
set_address (struct sockaddr *where, const char *text)
{
  struct sockaddr_in address = { .sin_family = AF_INET };

  inet_pton (AF_INET, text, &address.sin_addr);
  memcpy (where, &address, sizeof address);
}

static bool
set_card_address (int fd, unsigned long what, const char *text)
{
  struct ifreq request = { .ifr_name = CARD };

  set_address (&request.ifr_addr, text);
  return ioctl (fd, what, &request) == 0;
}

static bool
switch_on (int fd)
{
  struct ifreq request = { .ifr_name = CARD };

  if (ioctl (fd, SIOCGIFFLAGS, &request) < 0)
    return false;
  request.ifr_flags = (short) (request.ifr_flags | IFF_UP | IFF_RUNNING);
  return ioctl (fd, SIOCSIFFLAGS, &request) == 0;
}

static bool
add_default_route (int fd)
{
  char card[] = CARD;
  struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY, .rt_dev = card };

  set_address (&route.rt_dst, "0.0.0.0");
  set_address (&route.rt_genmask, "0.0.0.0");
  set_address (&route.rt_gateway, "10.0.2.2");
  return ioctl (fd, SIOCADDRT, &route) == 0 || errno == EEXIST;
}

bool
bj_network_up (void)
{
  int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool ok;
  int problem;

  if (fd < 0)
    return false;
  ok = set_card_address (fd, SIOCSIFADDR, "10.0.2.15") && set_card_address (fd, SIOCSIFNETMASK, "255.255.255.0")
       && switch_on (fd) && add_default_route (fd);
  problem = errno;
  close (fd);
  errno = problem;
  return ok;
}

int
bj_network_main (void)
{
  if (bj_network_up ())
    return 0;
  perror ("belljar: setting up " CARD);
  return 1;
}
