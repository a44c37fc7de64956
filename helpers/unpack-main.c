/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-unpack.h"

#include "bj-fd.h"
#include "bj-harden.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

static gboolean
run (BjUnpackFacts *facts, GError **error)
{
  g_auto(BjFd) folder = open (".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (folder < 0)
    return bj_fd_set_io_error (error, errno, "Opening the folder to unpack into");
  return bj_unpack_confine (folder, error) && bj_unpack (STDIN_FILENO, facts, error);
}

/* On standard output: how many were left out, how many links lead out, and the name of the first that was left out. */
int
main (int argc, char **argv)
{
  g_auto(BjUnpackFacts) facts = { 0 };
  g_autoptr(GError) error = NULL;

  /* libarchive asks the locale for nothing but other encodings of a name; names of entries without any stay the bytes they are. */
  setlocale (LC_ALL, "C.UTF-8");
  bj_harden ();
  if (!run (&facts, &error))
    {
      fprintf (stderr, "%s\n", error->message);
      fflush (stderr);
      _exit (1); /* nothing of libarchive's is still to be done: the folder is void */
    }
  printf ("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s", facts.skipped, facts.outward,
          facts.first_skipped != NULL ? facts.first_skipped : "");
  return 0;
}
