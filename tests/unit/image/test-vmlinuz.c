/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-error.h"
#include "bj-vmlinuz.h"

#include <elf.h>
#include <string.h>

#define SETUP_SIZE 1024
#define HEADER_SIZE 0x264
#define IMAGE_OFFSET (SETUP_SIZE + 0x1000000 - 0x100000)
#define PART_OFFSET 0x1000
#define PART_SIZE 0x100
#define ELF_SIZE (PART_OFFSET + PART_SIZE)

static GBytes *
make_kernel (const char *magic, guint size)
{
  guint8 *data = g_malloc0 (size);
  guint32 init_size = 0x2000000;

  if (size >= HEADER_SIZE)
    {
      data[0x1f1] = 1;
      memcpy (data + 0x202, magic, 4);
      memcpy (data + 0x260, &init_size, sizeof init_size);
    }
  return g_bytes_new_take (data, size);
}

/* One part at 16 MiB: a number of 64 bits, one of 32 that goes with the kernel and one that goes against it. */
static guint8 *
make_elf (void)
{
  guint8 *data = g_malloc0 (ELF_SIZE);
  Elf64_Ehdr head = { .e_ident = ELFMAG, .e_machine = EM_X86_64, .e_entry = 0x1000000, .e_phoff = sizeof head,
                      .e_phentsize = sizeof (Elf64_Phdr), .e_phnum = 1 };
  Elf64_Phdr part = { .p_type = PT_LOAD, .p_offset = PART_OFFSET, .p_paddr = 0x1000000, .p_filesz = PART_SIZE,
                      .p_memsz = PART_SIZE };
  const guint64 wide = G_GUINT64_CONSTANT (0xffffffff81000000);
  const guint32 narrow = 0x81000000, against = 0x7f000000;

  memcpy (data, &head, sizeof head);
  memcpy (data + sizeof head, &part, sizeof part);
  memcpy (data + PART_OFFSET, &wide, sizeof wide);
  memcpy (data + PART_OFFSET + 8, &narrow, sizeof narrow);
  memcpy (data + PART_OFFSET + 12, &against, sizeof against);
  data[PART_OFFSET + 16] = 1;
  return data;
}

static GBytes *
wrap (const guint8 *elf, gsize size, const guint32 *list, gsize list_size, guint32 slot, GError **error)
{
  g_autoptr(GBytes) kernel = make_kernel ("HdrS", 4096);
  g_autoptr(GByteArray) payload = g_byte_array_new ();
  g_autoptr(GBytes) bytes = NULL;

  g_byte_array_append (payload, elf, (guint) size);
  g_byte_array_append (payload, (const guint8 *) list, (guint) list_size);
  bytes = g_byte_array_free_to_bytes (g_steal_pointer (&payload));
  return bj_vmlinuz_wrap (kernel, bytes, slot, error);
}

static const guint32 good_list[] = { 0, 0x81000000, 0, 0x8100000c, 0, 0x81000008 };

static void
test_wrap (void)
{
  g_autofree guint8 *elf = make_elf ();
  g_autoptr(GError) error = NULL;
  g_autoptr(GBytes) file = wrap (elf, ELF_SIZE, good_list, sizeof good_list, 3, &error);
  const guint8 *data;
  gsize size;
  guint64 wide;
  guint32 narrow, against;

  g_assert_no_error (error);
  data = g_bytes_get_data (file, &size);
  g_assert_cmpuint (size, ==, IMAGE_OFFSET + 17);
  g_assert_cmpint (memcmp (data + 0x202, "HdrS", 4), ==, 0);
  g_assert_cmpuint (data[0x211] & 2, ==, 2);
  g_assert_cmpuint (data[SETUP_SIZE], ==, 0xfa);
  memcpy (&wide, data + IMAGE_OFFSET, sizeof wide);
  memcpy (&narrow, data + IMAGE_OFFSET + 8, sizeof narrow);
  memcpy (&against, data + IMAGE_OFFSET + 12, sizeof against);
  g_assert_cmphex (wide, ==, G_GUINT64_CONSTANT (0xffffffff81600000));
  g_assert_cmphex (narrow, ==, 0x81600000);
  g_assert_cmphex (against, ==, 0x7ea00000);
}

/* The kernel and what it needs at start end below the last address it may have, whatever the slot. */
static void
test_slots (void)
{
  static const guint32 slots[] = { 0, 1, 487, 488, 489, G_MAXUINT32 };
  g_autofree guint8 *elf = make_elf ();

  for (guint i = 0; i < G_N_ELEMENTS (slots); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(GBytes) file = wrap (elf, ELF_SIZE, good_list, sizeof good_list, slots[i], &error);
      guint64 wide;

      g_assert_no_error (error);
      memcpy (&wide, (const guint8 *) g_bytes_get_data (file, NULL) + IMAGE_OFFSET, sizeof wide);
      g_assert_cmphex (wide, >=, G_GUINT64_CONSTANT (0xffffffff81000000));
      g_assert_cmphex (wide, <=, G_GUINT64_CONSTANT (0xffffffffc0000000) - 0x2000000);
      g_assert_cmphex (wide & 0x1fffff, ==, 0);
    }
}

static void
test_bad_lists (void)
{
  static const guint32 none[] = { 0 };
  static const guint32 below[] = { 0, 0, 0, 0x80fffff8 };
  static const guint32 above[] = { 0, 0, 0, 0x810000fc };
  static const guint32 not_kernel[] = { 0, 0, 0, 0x1000 };
  static const struct { const guint32 *list; gsize size; } cases[] = {
    { none, 0 }, { none, sizeof none }, { good_list + 2, 4 * 4 }, { below, sizeof below }, { above, sizeof above },
    { not_kernel, sizeof not_kernel },
  };
  g_autofree guint8 *elf = make_elf ();

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GError) error = NULL;
      g_autoptr(GBytes) file = wrap (elf, ELF_SIZE, cases[i].list, cases[i].size, 0, &error);

      g_assert_null (file);
      g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
    }
}

static void
test_bad_elf (void)
{
  const gsize part = sizeof (Elf64_Ehdr);
  const struct { gsize at; guint64 value; } cases[] = {
    { 0, 0 },
    { offsetof (Elf64_Ehdr, e_entry), 0x2000000 },
    { offsetof (Elf64_Ehdr, e_phoff), ELF_SIZE },
    { offsetof (Elf64_Ehdr, e_shoff), G_MAXUINT64 },
    { part + offsetof (Elf64_Phdr, p_offset), G_MAXUINT64 },
    { part + offsetof (Elf64_Phdr, p_filesz), G_MAXUINT64 },
    { part + offsetof (Elf64_Phdr, p_paddr), 0x1000 },
    { part + offsetof (Elf64_Phdr, p_paddr), G_MAXUINT64 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree guint8 *elf = make_elf ();
      g_autoptr(GError) error = NULL;
      g_autoptr(GBytes) file = NULL;

      memcpy (elf + cases[i].at, &cases[i].value, sizeof cases[i].value);
      file = wrap (elf, ELF_SIZE, good_list, sizeof good_list, 0, &error);
      g_assert_null (file);
      g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
    }
}

static void
test_bad_kernel (void)
{
  static const struct { const char *magic; guint size; } cases[] = {
    { "HdrS", 16 }, { "none", 4096 }, { "HdrS", HEADER_SIZE }, { "HdrS", 4096 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr(GBytes) kernel = make_kernel (cases[i].magic, cases[i].size);
      g_autoptr(GError) error = NULL;
      g_autoptr(GBytes) file = bj_vmlinuz_unpack (kernel, 0, NULL, &error);

      g_assert_null (file);
      g_assert_error (error, BJ_ERROR, BJ_ERROR_FAILED);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/vmlinuz/wrap", test_wrap);
  g_test_add_func ("/vmlinuz/slots", test_slots);
  g_test_add_func ("/vmlinuz/bad-lists", test_bad_lists);
  g_test_add_func ("/vmlinuz/bad-elf", test_bad_elf);
  g_test_add_func ("/vmlinuz/bad-kernel", test_bad_kernel);
  return g_test_run ();
}
