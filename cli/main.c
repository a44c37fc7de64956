/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-cli-verbs.h"

#include "bj-config-build.h"

#include <glib/gi18n.h>
#include <locale.h>

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "");
  bindtextdomain (GETTEXT_PACKAGE, BJ_LOCALEDIR);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);
  return bj_verbs_main (argv + 1);
}
