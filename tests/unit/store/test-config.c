/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-config.h"
#include "bj-error.h"
#include "bj-remove.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static char *folder;

static BjConfig *
load (const char *text, gssize length, GError **error)
{
  g_autofree char *path = g_build_filename (folder, "belljar.conf", NULL);

  g_assert_true (g_file_set_contents (path, text, length, NULL));
  return bj_config_load (path, TRUE, error);
}

#define NO_SECRETS ":2: [model] url: must not hold a user name, a password, a query (“?…”) or a fragment (“#…”)"

static const struct
{
  const char *text;
  const char *message; /* after the path */
} bad[] = {
  { "[model]\nurl=ftp://x\n", ":2: [model] url: “ftp://x” is no address: write for example http://127.0.0.1:11434" },
  { "[model]\nurl=http://\n", ":2: [model] url: “http://” is no address: write for example http://127.0.0.1:11434" },
  { "[model]\nurl=http://me:pw@h/\n", NO_SECRETS },
  { "[model]\nurl=htp://me:pw@h/\n", NO_SECRETS },
  { "[model]\nurl=http://h:1/?key=S3CRET\n", NO_SECRETS },
  { "[model]\nurl=http://h:1/#S3CRET\n", NO_SECRETS },
  { "[images]\nmirror=http://h/debian?key=S3CRET\n",
    ":2: [images] mirror: must not hold a user name, a password, a query (“?…”) or a fragment (“#…”)" },
  { "[publish]\ntoken-file=/no/such/token\n", ":2: [publish] token-file: “/no/such/token” cannot be opened: No such file or directory" },
  { "[publish]\ntoken-file=/etc\n", ":2: [publish] token-file: “/etc” is not a regular file" },
  { "[model]\n\n# x\nname=\n", ":4: [model] name: is empty: give a value or leave the key out" },
  { "[model]\nallow= ; ;\n", ":2: [model] allow: is empty: give values separated by “;” or leave the key out" },
  { "[model]\nvision=yes\n", ":2: [model] vision: “yes” is none of true, false and auto" },
  { "[engine]\naccelerator=hvf\n", ":2: [engine] accelerator: “hvf” is none of auto, kvm and tcg" },
  { "[engine]\nuri=system\n", ":2: [engine] uri: “system” is no libvirt URI: write for example qemu:///system" },
  { "[limits]\nsessions=0\n", ":2: [limits] sessions: must be between 1 and 256, not 0" },
  { "[limits]\nsessions=-1\n", ":2: [limits] sessions: “-1” is no number" },
  { "[limits]\nsessions=4x\n", ":2: [limits] sessions: “4x” is no number" },
  { "[limits]\nsessions=99999999999999999999\n", ":2: [limits] sessions: “99999999999999999999” is no number" },
  { "[limits]\nwall-clock=20 m\n",
    ":2: [limits] wall-clock: “20 m” is not a duration; write for example 90s, 20m, 2h or 1d" },
  { "[limits]\nwall-clock=5\n", ":2: [limits] wall-clock: must be between 10 and 604800, not 5" },
  { "[limits]\noutput-bytes=2G\n", ":2: [limits] output-bytes: must be between 1024 and 1048576, not 2147483648" },
  { "[limits]\nsessions-per-user=0\n", ":2: [limits] sessions-per-user: must be between 1 and 256, not 0" },
  { "[limits]\nscreenshots=0\n", ":2: [limits] screenshots: must be between 1 and 100000, not 0" },
  { "[limits]\nscreenshot-bytes=1\n", ":2: [limits] screenshot-bytes: must be between 1024 and 1099511627776, not 1" },
  { "[network]\nresolvers=9.9.9.9;example.org\n", ":2: [network] resolvers: “example.org” is no IP address" },
  { "[images]\ndefault=../etc\n",
    ":2: [images] default: “../etc” is no name: lower-case letters, digits, “.”, “_” and “-”" },
  { "[projects]\nbackend=zfs\n", ":2: [projects] backend: “zfs” is not known: this version has only “none”" },
  { "[projects]\nquota=64MB\n", ":2: [projects] quota: “64MB” is not a size; write for example 64M or 2G" },
  { "[publish]\ntoken-file=token\n", ":2: [publish] token-file: “token” is not an absolute path" },
  { "[sessions]\non-stop=maybe\n", ":2: [sessions] on-stop: “maybe” is neither end nor keep" },
  { "\n\n[limits]\nstep=3\n", ":4: [limits] step: there is no such key" },
  { "[limit]\n", ":1: [limit]: there is no such group" },
  { "[limits\n", ":1: “[limits” opens a group but has no “]” at its end" },
  { "[\n", ":1: “[” opens a group but has no “]” at its end" },
  { "steps=3\n", ":1: steps: stands before the first [group]" },
  { "[limits]\nsteps\n", ":2: “steps” is neither a group, a comment nor key=value" },
  { "[limits]\nsteps=3\n[model]\n[limits]\nsteps = 4\n", ":5: [limits] steps: is given twice" },
  { "[limits]\n\xff=3\n", ":2: is not UTF-8" },
};

static void
test_bad (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autofree char *message = g_strdup_printf ("%s/belljar.conf%s", folder, bad[i].message);

      g_assert_null (load (bad[i].text, -1, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==, message);
    }
}

static void
test_nul (void)
{
  g_autoptr(GError) error = NULL;

  g_assert_null (load ("[limits]\0steps=3\n", 18, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
}

static void
test_defaults (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *missing = g_build_filename (folder, "missing.conf", NULL);
  g_autoptr(BjConfig) config = bj_config_load (missing, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (config->model_url, ==, "http://127.0.0.1:11434");
  g_assert_cmpstr (config->model_name, ==, "");
  g_assert_cmpuint (g_strv_length (config->model_allow), ==, 0);
  g_assert_cmpint (config->model_vision, ==, -1);
  g_assert_cmpuint (config->wall_clock_s, ==, 1200);
  g_assert_cmpuint (config->output_bytes, ==, 65536);
  g_assert_cmpuint (config->sessions_per_user, ==, config->sessions);
  g_assert_cmpuint (config->idle_s, ==, 600);
  g_assert_cmpuint (config->screenshots, ==, 500);
  g_assert_cmpuint (config->screenshot_bytes, ==, 256 << 20);
  g_assert_cmpstr (config->resolvers[1], ==, "149.112.112.112");
  g_assert_false (config->keep_sessions);
  g_assert_null (bj_config_load (missing, TRUE, &error));
  g_assert_nonnull (strstr (error->message, missing));
}

/* A token that others may read, or put another in the place of, is none. */
static void
test_token_file (void)
{
  static const mode_t modes[] = { 0644, 0640, 0604, 0620, 0610 };
  g_autofree char *token = g_build_filename (folder, "token", NULL);
  g_autofree char *link_path = g_build_filename (folder, "token-link", NULL);
  g_autofree char *text = g_strdup_printf ("[publish]\ntoken-file=%s\n", token);
  g_autofree char *link_text = g_strdup_printf ("[publish]\ntoken-file=%s\n", link_path);
  g_autoptr(GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_assert_true (g_file_set_contents_full (token, "secret", -1, 0, 0600, NULL));
      g_assert_cmpint (g_chmod (token, modes[i]), ==, 0);
      g_assert_null (load (text, -1, &error));
      g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, "must be readable by the user of belljard alone"));
      g_clear_error (&error);
    }
  g_assert_cmpint (g_chmod (token, 0600), ==, 0);
  g_assert_cmpint (symlink (token, link_path), ==, 0);
  g_assert_null (load (link_text, -1, &error));
  g_assert_nonnull (strstr (error->message, "is not a regular file"));
  g_clear_error (&error);
  if (geteuid () == 0)
    {
      g_assert_cmpint (chown (token, 1000, 0), ==, 0);
      g_assert_null (load (text, -1, &error));
      g_assert_nonnull (strstr (error->message, "belongs to uid 1000"));
    }
  g_assert_cmpint (g_unlink (token), ==, 0);
}

static void
test_all (void)
{
  g_autofree char *token = g_build_filename (folder, "token", NULL);
  g_autofree char *text = g_strdup_printf (
      "# whole\n[model]\nurl = https://gpu.example:8080/x\nname=qwen3:8b\nallow=qwen3:8b; llama3 ;\nvision=true\n"
      "[engine]\nuri=qemu:///system\naccelerator=tcg\n[limits]\nsessions=7\nmemory-mib=2048\ncpus=3\nsteps=10\n"
      "wall-clock=1h\noutput-bytes=128K\nidle=90\npark-after=1d\n[pool]\nsize=2\n[network]\nresolvers=1.1.1.1;2606::1\n"
      "[images]\ndefault=debian\nmirror=http://deb.example/debian\n[projects]\nbackend=none\nquota=2G\n"
      "[publish]\nremote=git@host:x\ntoken-file=%s\n[sessions]\non-stop=keep\n", token);
  g_autoptr(GError) error = NULL;
  g_autoptr(BjConfig) config = NULL;

  g_assert_true (g_file_set_contents_full (token, "secret", -1, 0, 0600, NULL));
  config = load (text, -1, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (config->model_url, ==, "https://gpu.example:8080/x");
  g_assert_cmpstr (config->model_allow[1], ==, "llama3");
  g_assert_null (config->model_allow[2]);
  g_assert_cmpint (config->model_vision, ==, 1);
  g_assert_cmpint (config->accelerator, ==, BJ_ACCELERATOR_TCG);
  g_assert_cmpuint (config->sessions, ==, 7);
  g_assert_cmpuint (config->wall_clock_s, ==, 3600);
  g_assert_cmpuint (config->output_bytes, ==, 131072);
  g_assert_cmpuint (config->idle_s, ==, 90);
  g_assert_cmpuint (config->park_after_s, ==, 86400);
  g_assert_cmpuint (config->pool_size, ==, 2);
  g_assert_cmpstr (config->resolvers[1], ==, "2606::1");
  g_assert_cmpstr (config->image_default, ==, "debian");
  g_assert_cmpuint (config->project_quota, ==, G_GUINT64_CONSTANT (2) << 30);
  g_assert_cmpstr (config->publish_token_file, ==, token);
  g_assert_true (config->keep_sessions);
}

static void
test_allow_follows_name (void)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(BjConfig) config = load ("[model]\nname=m", -1, &error);

  g_assert_no_error (error);
  g_assert_cmpstr (config->model_allow[0], ==, "m");
  g_assert_null (config->model_allow[1]);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("bj-config-XXXXXX", NULL);
  g_test_add_func ("/config/bad", test_bad);
  g_test_add_func ("/config/nul", test_nul);
  g_test_add_func ("/config/defaults", test_defaults);
  g_test_add_func ("/config/all", test_all);
  g_test_add_func ("/config/token-file", test_token_file);
  g_test_add_func ("/config/allow-follows-name", test_allow_follows_name);
  result = g_test_run ();
  bj_remove_tree (folder, NULL);
  g_free (folder);
  return result;
}
