/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-accelerator.h"
#include "bj-domain-xml.h"
#include "bj-engine-boot.h"
#include "bj-error.h"
#include "bj-guest-request.h"
#include "bj-libvirt.h"
#include "bj-overlay.h"
#include "bj-ram.h"
#include "bj-remove.h"
#include "bj-run-dir.h"
#include "bj-slots.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const BjMachineSpec plain = {
  .id = (char *) "abcd2345",
  .slot = 300,
  .run_dir = (char *) "/s/sessions/abcd2345/run",
  .base = (char *) "/s/images/debian/1/disk.qcow2",
  .kernel = (char *) "/s/images/debian/1/vmlinuz",
  .initrd = (char *) "/s/images/debian/1/initrd",
  .cmdline = (char *) "root=/dev/vda rw quiet",
  .memory_mib = 1024,
  .cpus = 2,
  .network = TRUE,
  .share = TRUE,
};

static void
assert_stored (const char *name, const char *xml)
{
  g_autofree char *path = g_build_filename (g_getenv ("BJ_TEST_DATA"), name, NULL);
  g_autofree char *expected = NULL;

  if (g_getenv ("BJ_TEST_STORE") != NULL)
    g_assert_true (g_file_set_contents (path, xml, -1, NULL));
  g_assert_true (g_file_get_contents (path, &expected, NULL, NULL));
  g_assert_cmpstr (xml, ==, expected);
}

#define OVERLAY "/s/sessions/abcd2345/run/overlay.qcow2"
#define TEMPLATE_DISK "/s/templates/0123/disk.qcow2"

static void
test_xml (void)
{
  const char *over_base[] = { "/s/images/debian/1/disk.qcow2", NULL };
  const char *over_template[] = { TEMPLATE_DISK, "/s/images/debian/1/disk.qcow2", NULL };
  BjMachineSpec verify = plain;
  BjMachineSpec build = plain;
  BjMachineSpec network = plain;
  BjMachineSpec desktop = plain;

  verify.share = FALSE;
  build.writable_base = TRUE;
  build.kernel = build.initrd = build.cmdline = NULL;
  network.network = FALSE;
  desktop.tablet = TRUE;
  {
    const BjDomainFiles cold = { .disk = OVERLAY, .chain = over_base };
    const BjDomainFiles base = { .disk = build.base };
    const BjDomainFiles template = { .disk = OVERLAY, .chain = over_base, .ram = "/proc/7/fd/3" };
    const BjDomainFiles clone = { .disk = OVERLAY, .chain = over_template, .kernel = "/s/templates/0123/kernel",
                                  .ram = "/proc/7/fd/3", .ram_private = TRUE, .incoming = TRUE };
    g_autofree char *tcg = bj_domain_xml_build (&plain, &cold, BJ_ACCELERATOR_TCG);
    g_autofree char *without_network = bj_domain_xml_build (&network, &cold, BJ_ACCELERATOR_TCG);
    g_autofree char *with_tablet = bj_domain_xml_build (&desktop, &cold, BJ_ACCELERATOR_TCG);
    g_autofree char *kvm = bj_domain_xml_build (&verify, &cold, BJ_ACCELERATOR_KVM);
    g_autofree char *smoke = bj_domain_xml_build (&build, &base, BJ_ACCELERATOR_TCG);
    g_autofree char *made = bj_domain_xml_build (&verify, &template, BJ_ACCELERATOR_TCG);
    g_autofree char *cloned = bj_domain_xml_build (&verify, &clone, BJ_ACCELERATOR_TCG);

    assert_stored ("session-tcg.xml", tcg);
    /* The card is plugged later: a template serves both. */
    g_assert_cmpstr (without_network, ==, tcg);
    assert_stored ("desktop.xml", with_tablet);
    assert_stored ("verification-kvm.xml", kvm);
    assert_stored ("writable-base.xml", smoke);
    assert_stored ("template.xml", made);
    assert_stored ("clone.xml", cloned);
  }
}

static void
test_xml_parts (void)
{
  const BjDomainFiles files = { .disk = "/d" };
  BjMachineSpec hostile = plain;
  g_autofree char *share = bj_domain_xml_build_share ("/s/sessions/abcd2345/run/virtiofsd.sock");
  g_autofree char *channel = bj_domain_xml_build_channel (plain.run_dir, BJ_DOMAIN_CHANNEL_AGENT);
  g_autofree char *disk = bj_domain_xml_build_data_disk ("/s/sessions/abcd2345/tree.tar");
  g_autofree char *escaped = NULL;

  assert_stored ("share.xml", share);
  assert_stored ("channel.xml", channel);
  assert_stored ("data-disk.xml", disk);
  hostile.cmdline = (char *) "'/><evil a=\"&\"/>";
  escaped = bj_domain_xml_build (&hostile, &files, BJ_ACCELERATOR_TCG);
  g_assert_null (strstr (escaped, "<evil"));
  g_assert_nonnull (strstr (escaped, "&lt;evil"));
}

/* What a guest's memory must do: keep its content over a file, have no zeros, and be nobody's to change once sealed. */
static void
test_ram (void)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("bj-ram-XXXXXX", &error);
  g_autofree char *path = g_build_filename (dir, "ram", NULL);
  g_autofree char *digest = NULL;
  g_autoptr(BjRam) ram = bj_ram_new (8, &error);
  g_autoptr(BjRam) copy = NULL;
  g_autoptr(BjRam) loaded = NULL;
  g_autoptr(BjRamLoan) loan = NULL;
  char byte = 0;
  int fd;

  g_assert_no_error (error);
  loan = bj_ram_lend (ram, geteuid (), &error);
  g_assert_no_error (error);
  fd = open (bj_ram_loan_get_path (loan), O_RDWR | O_CLOEXEC);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (pwrite (fd, "x", 1, 5 << 20), ==, 1);
  g_assert_cmpint (pwrite (fd, "\0", 1, 2 << 20), ==, 1);
  g_clear_pointer (&loan, bj_ram_loan_free);
  g_assert_cmpuint (bj_ram_get_used (ram), ==, 2 * 4096);

  digest = bj_ram_save (ram, path, NULL, &error);
  g_assert_no_error (error);
  copy = bj_ram_copy (ram, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (bj_ram_get_used (copy), ==, 4096);
  loaded = bj_ram_load (path, 8, digest, NULL, &error);
  g_assert_no_error (error);
  loan = bj_ram_lend (loaded, geteuid (), &error);
  close (fd);
  fd = open (bj_ram_loan_get_path (loan), O_RDWR | O_CLOEXEC);
  g_assert_cmpint (pread (fd, &byte, 1, 5 << 20), ==, 1);
  g_assert_cmpint (byte, ==, 'x');
  g_assert_cmpint (pwrite (fd, "y", 1, 0), ==, -1);
  g_assert_cmpint (ftruncate (fd, 0), ==, -1);
  close (fd);

  g_assert_null (bj_ram_load (path, 4, digest, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_clear_error (&error);
  fd = open (path, O_WRONLY | O_CLOEXEC);
  g_assert_cmpint (pwrite (fd, "z", 1, 5 << 20), ==, 1);
  close (fd);
  g_assert_null (bj_ram_load (path, 8, digest, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_INVALID);
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

static void
test_slots (void)
{
  BjSlots *slots = bj_slots_new ();

  g_assert_true (bj_slots_reserve (slots, 1));
  g_assert_false (bj_slots_reserve (slots, 1));
  g_assert_false (bj_slots_reserve (slots, BJ_MACHINE_SLOTS));
  g_assert_cmpint (bj_slots_take (slots), ==, 0);
  g_assert_cmpint (bj_slots_take (slots), ==, 2);
  bj_slots_release (slots, 0);
  /* Not again at once. */
  g_assert_cmpint (bj_slots_take (slots), ==, 3);
  for (guint i = 4; i < BJ_MACHINE_SLOTS; i++)
    g_assert_cmpint (bj_slots_take (slots), ==, (int) i);
  g_assert_cmpint (bj_slots_take (slots), ==, 0);
  g_assert_cmpint (bj_slots_take (slots), ==, -1);
  bj_slots_free (slots);
}

static void
test_run_dir (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-XXXXXX", NULL);
  g_autofree char *run = g_build_filename (dir, "run", NULL);
  g_autofree char *outside = g_build_filename (dir, "precious", NULL);
  g_autofree char *inside = g_build_filename (outside, "file", NULL);
  g_autofree char *link = g_build_filename (run, "link", NULL);
  g_autofree char *deep = g_build_filename (run, "a", "b", "c", NULL);
  g_autoptr(GError) error = NULL;

  g_assert_true (bj_run_dir_remove (run, &error));
  g_assert_true (bj_run_dir_create (run, BJ_MACHINE_UID_BASE, &error));
  g_assert_false (bj_run_dir_create (run, BJ_MACHINE_UID_BASE, &error));
  g_clear_error (&error);
  g_assert_cmpint (g_mkdir (outside, 0700), ==, 0);
  g_assert_true (g_file_set_contents (inside, "x", 1, NULL));
  g_assert_cmpint (symlink (outside, link), ==, 0);
  g_assert_cmpint (g_mkdir_with_parents (deep, 0700), ==, 0);
  bj_run_dir_remove (run, &error);
  g_assert_no_error (error);
  g_assert_false (g_file_test (run, G_FILE_TEST_EXISTS));
  g_assert_true (g_file_test (inside, G_FILE_TEST_EXISTS));
  /* A link in the folder's own place is removed, not followed. */
  g_assert_cmpint (symlink (outside, run), ==, 0);
  bj_run_dir_remove (run, NULL);
  g_assert_true (g_file_test (inside, G_FILE_TEST_EXISTS));
  g_unlink (run);
  g_unlink (inside);
  g_rmdir (outside);
  g_rmdir (dir);
}

static void
test_request (void)
{
  const char *argv[] = { "a", "b=c", NULL };
  const char *bad[] = { "NOEQUALS", NULL };
  const char *none[] = { NULL };
  g_autofree char *long_text = g_strnfill (5u << 20, 'x');
  const char *long_argv[] = { "a", long_text, NULL };
  const struct
  {
    BjExec exec;
    int code; /* -1: valid */
  } cases[] = {
    { { .argv = argv }, -1 },
    { { .argv = none }, BJ_ERROR_INVALID },
    { { .argv = NULL }, BJ_ERROR_INVALID },
    { { .argv = argv, .environ = bad }, BJ_ERROR_INVALID },
    { { .argv = long_argv }, BJ_ERROR_INVALID },
  };
  g_autoptr(BjGuestRequest) whole = bj_guest_request_new ();
  g_autoptr(GBytes) input = g_bytes_new_static ("IN", 2);
  g_autoptr(GBytes) bytes = NULL;
  static const char expected[] = "BJRQ0001\x41\0\0\0argv=a\0argv=b=c\0user=root\0timeout=86400\0cap=262144\0nnp=0\0input=0\0IN";

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
      g_autoptr(GError) error = NULL;

      g_assert_cmpint (bj_guest_request_add_exec (request, &cases[i].exec, &error), ==, cases[i].code < 0);
      if (cases[i].code >= 0)
        g_assert_error (error, BJ_ERROR, cases[i].code);
    }
  g_assert_true (bj_guest_request_add_exec (whole, &cases[0].exec, NULL));
  bytes = bj_guest_request_finish (whole, input);
  g_assert_cmpmem (g_bytes_get_data (bytes, NULL), (int) g_bytes_get_size (bytes), expected, (int) sizeof expected - 1);
}

static void
test_text (void)
{
  g_autofree char *long_text = g_strnfill (100000, 'x');
  g_autofree char *cut = bj_libvirt_clean_text (long_text);
  g_autofree char *clean = bj_libvirt_clean_text ("a\nb\033[1m\377");
  g_autofree char *none = bj_libvirt_clean_text (NULL);

  g_assert_cmpuint (strlen (cut), <, 400);
  g_assert_cmpstr (clean, ==, "a b [1m ");
  g_assert_cmpstr (none, ==, "");
}

static void
test_overlay (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "o.qcow2", NULL);
  g_autofree char *base = g_build_filename (dir, "none.qcow2", NULL);
  g_autoptr(GError) error = NULL;

  g_assert_false (bj_overlay_create (path, base, 0, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_false (bj_overlay_create (path, "relative.qcow2", 0, NULL, &error));
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NOT_FOUND);
  g_rmdir (dir);
}

static void
test_accelerator (void)
{
  g_autofree char *dir = g_dir_make_tmp ("bj-XXXXXX", NULL);
  g_autofree char *cache = g_build_filename (dir, "accelerator", NULL);
  g_autofree char *boot = NULL;
  g_autofree char *text = NULL;
  g_autofree char *first = NULL;
  g_autofree char *second = NULL;
  g_autofree char *third = NULL;
  g_autoptr(GError) error = NULL;

  g_assert_cmpint (bj_accelerator_choose (BJ_ACCELERATOR_TCG, cache, &first, NULL, &error), ==, BJ_ACCELERATOR_TCG);
  g_assert_false (g_file_test (cache, G_FILE_TEST_EXISTS));
  /* What was probed in this boot is believed. */
  g_assert_true (g_file_get_contents ("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL));
  text = g_strdup_printf ("[accelerator]\nboot=%s\nkvm=false\nreason=because\n", g_strstrip (boot));
  g_assert_true (g_file_set_contents (cache, text, -1, NULL));
  g_assert_cmpint (bj_accelerator_choose (BJ_ACCELERATOR_AUTO, cache, &second, NULL, &error), ==, BJ_ACCELERATOR_TCG);
  g_assert_cmpstr (second, ==, "because");
  g_assert_cmpint (bj_accelerator_choose (BJ_ACCELERATOR_KVM, cache, &third, NULL, &error), ==, BJ_ACCELERATOR_AUTO);
  g_assert_error (error, BJ_ERROR, BJ_ERROR_NO_ACCELERATOR);
  g_unlink (cache);
  g_rmdir (dir);
}

/* Which machines ran is believed only in the boot and in the folder in which it was written. */
static void
test_engine_boot (void)
{
  static const char *const others[] = { "", "x", "00000000-0000-0000-0000-000000000000 1 2\n" };
  g_autofree char *top = g_dir_make_tmp ("bj-engine-XXXXXX", NULL);
  g_autofree char *root = g_build_filename (top, "engine", NULL);
  g_autofree char *copy = g_build_filename (top, "copy", NULL);
  g_autofree char *run = g_build_filename (root, "run", NULL);
  g_autofree char *mark = g_build_filename (root, "boot", NULL);
  g_autofree char *copied_run = g_build_filename (copy, "run", NULL);
  g_autofree char *copied_mark = g_build_filename (copy, "boot", NULL);
  g_autofree char *text = NULL;
  g_autoptr(GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (root, 0700), ==, 0);
  g_assert_true (bj_engine_forget_dead (root, &error));
  g_assert_cmpint (g_mkdir (run, 0700), ==, 0);
  g_assert_true (bj_engine_forget_dead (root, &error));
  g_assert_true (g_file_test (run, G_FILE_TEST_IS_DIR));
  g_assert_true (g_file_get_contents (mark, &text, NULL, NULL));
  g_assert_cmpint (g_mkdir_with_parents (copied_run, 0700), ==, 0);
  g_assert_true (g_file_set_contents (copied_mark, text, -1, NULL));
  g_assert_true (bj_engine_forget_dead (copy, &error));
  g_assert_false (g_file_test (copied_run, G_FILE_TEST_EXISTS));
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    {
      g_assert_cmpint (g_mkdir_with_parents (run, 0700), ==, 0);
      g_assert_true (g_file_set_contents (mark, others[i], -1, NULL));
      g_assert_true (bj_engine_forget_dead (root, &error));
      g_assert_false (g_file_test (run, G_FILE_TEST_EXISTS));
    }
  g_assert_true (bj_remove_tree (top, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/vm/xml", test_xml);
  g_test_add_func ("/vm/xml-parts", test_xml_parts);
  g_test_add_func ("/vm/ram", test_ram);
  g_test_add_func ("/vm/slots", test_slots);
  g_test_add_func ("/vm/run-dir", test_run_dir);
  g_test_add_func ("/vm/request", test_request);
  g_test_add_func ("/vm/text", test_text);
  g_test_add_func ("/vm/overlay", test_overlay);
  g_test_add_func ("/vm/accelerator", test_accelerator);
  g_test_add_func ("/vm/engine-boot", test_engine_boot);
  return g_test_run ();
}
