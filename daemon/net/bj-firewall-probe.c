/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-firewall-probe.h"

#include "bj-error.h"
#include "bj-fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define DISCARD_PORT 9

typedef struct
{
  guint32  uid;
  int      family;
  gboolean became; /* whether the thread could take that file-system uid */
  int      sent_errno;
} Probe;

/* As seen by `meta skuid`: the file-system uid that the socket was made with. */
static int
make_socket_as (Probe *probe)
{
  int dumpable = prctl (PR_GET_DUMPABLE);
  uid_t old = (uid_t) setfsuid (probe->uid);
  int fd = -1;

  probe->became = (uid_t) setfsuid ((uid_t) -1) == probe->uid;
  if (probe->became)
    fd = socket (probe->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  probe->sent_errno = fd < 0 ? errno : 0;
  setfsuid (old);
  if (dumpable == 1)
    prctl (PR_SET_DUMPABLE, 1);
  return fd;
}

static gpointer
probe_thread (gpointer data)
{
  Probe *probe = data;
  const struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons (DISCARD_PORT),
                                   .sin_addr.s_addr = htonl (INADDR_LOOPBACK) };
  const struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = htons (DISCARD_PORT),
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
  g_auto(BjFd) fd = make_socket_as (probe);
  gssize n;

  if (fd < 0)
    return NULL;
  if (probe->family == AF_INET)
    n = sendto (fd, "", 1, MSG_NOSIGNAL, (const struct sockaddr *) &to4, sizeof to4);
  else
    n = sendto (fd, "", 1, MSG_NOSIGNAL, (const struct sockaddr *) &to6, sizeof to6);
  probe->sent_errno = n < 0 ? errno : 0;
  return NULL;
}

gboolean
bj_firewall_probe (guint32 uid, int family, int *sent_errno, GError **error)
{
  Probe probe = { .uid = uid, .family = family };
  g_autoptr(GError) local_error = NULL;
  GThread *thread = g_thread_try_new ("firewall-probe", probe_thread, &probe, &local_error);

  if (thread == NULL)
    return bj_error_set (error, BJ_ERROR_FAILED, "The firewall cannot be tested: %s", local_error->message);
  g_thread_join (thread);
  if (!probe.became)
    return bj_error_set (error, BJ_ERROR_DENIED, "The firewall cannot be tested: a socket of uid %u cannot be made; "
                         "belljard must be root and this uid must exist in its user namespace", uid);
  *sent_errno = probe.sent_errno;
  return TRUE;
}
