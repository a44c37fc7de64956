/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-vmlinuz.h"

#include "bj-error.h"
#include "bj-spawn.h"

#include <elf.h>
#include <string.h>

#define UNPACK_TIMEOUT 120
#define MAX_UNPACKED (256 * 1024 * 1024)

/* The boot protocol's header: offsets in the file. */
#define SETUP_SECTORS 0x1f1
#define MAGIC 0x202
#define LOAD_FLAGS 0x211
#define PAYLOAD_OFFSET 0x248
#define PAYLOAD_LENGTH 0x24c
#define INIT_SIZE 0x260
#define HEADER_END 0x264
#define FLAG_KASLR 0x02

/* Where the boot loader puts what follows the real-mode part, where the kernel was linked to be, and its addresses. */
#define LOADED_AT 0x100000
#define KERNEL_AT 0x1000000
#define KERNEL_ALIGN 0x200000
#define KERNEL_SPACE 0x40000000
#define KERNEL_MAP G_GUINT64_CONSTANT (0xffffffff80000000)

/* What lies at LOADED_AT: the code below, a table of segments, and page tables that map 4 GiB to themselves. */
#define GDT_POINTER 0x80
#define GDT 0x90
#define PML4 0x1000
#define PDPT 0x2000
#define PAGE_DIRS 0x3000
#define PAGE_BITS 0x3      /* present, writable */
#define LARGE_PAGE 0x80

/* From 32 bits, where the real-mode part ends, to 64 bits, where the kernel begins. esi: the boot parameters. */
static const guint8 entry[] = {
  0xfa,                                     /* cli */
  0xfc,                                     /* cld */
  0x0f, 0x01, 0x15, 0x80, 0x00, 0x10, 0x00, /* lgdt LOADED_AT + GDT_POINTER */
  0x0f, 0x20, 0xe0,                         /* mov %cr4, %eax */
  0x83, 0xc8, 0x20,                         /* or $PAE, %eax */
  0x0f, 0x22, 0xe0,                         /* mov %eax, %cr4 */
  0xb8, 0x00, 0x10, 0x10, 0x00,             /* mov $LOADED_AT + PML4, %eax */
  0x0f, 0x22, 0xd8,                         /* mov %eax, %cr3 */
  0xb9, 0x80, 0x00, 0x00, 0xc0,             /* mov $EFER, %ecx */
  0x0f, 0x32,                               /* rdmsr */
  0x0d, 0x00, 0x01, 0x00, 0x00,             /* or $LME, %eax */
  0x0f, 0x30,                               /* wrmsr */
  0xb8, 0x01, 0x00, 0x00, 0x80,             /* mov $PG | PE, %eax */
  0x0f, 0x22, 0xc0,                         /* mov %eax, %cr0 */
  0xea, 0x37, 0x00, 0x10, 0x00, 0x10, 0x00, /* ljmp $0x10, $LOADED_AT + 0x37 */
  0xb8, 0x18, 0x00, 0x00, 0x00,             /* 0x37: mov $0x18, %eax */
  0x8e, 0xd8,                               /* mov %eax, %ds */
  0x8e, 0xc0,                               /* mov %eax, %es */
  0x8e, 0xd0,                               /* mov %eax, %ss */
  0x89, 0xf6,                               /* mov %esi, %esi: the upper half becomes zero */
  0xb8, 0x00, 0x00, 0x00, 0x01,             /* mov $KERNEL_AT, %eax */
  0xff, 0xe0,                               /* jmp *%rax */
};

static guint32
get32 (const guint8 *bytes)
{
  guint32 value;

  memcpy (&value, bytes, sizeof value);
  return GUINT32_FROM_LE (value);
}

static void
put32 (guint8 *bytes, guint32 value)
{
  value = GUINT32_TO_LE (value);
  memcpy (bytes, &value, sizeof value);
}

static guint64
get64 (const guint8 *bytes)
{
  guint64 value;

  memcpy (&value, bytes, sizeof value);
  return GUINT64_FROM_LE (value);
}

static void
put64 (guint8 *bytes, guint64 value)
{
  value = GUINT64_TO_LE (value);
  memcpy (bytes, &value, sizeof value);
}

static gboolean
get_setup_size (GBytes *kernel, gsize *setup, GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (kernel, &size);

  if (size < HEADER_END || memcmp (data + MAGIC, "HdrS", 4) != 0)
    return bj_error_set (error, BJ_ERROR_FAILED, "The kernel is no x86 bzImage");
  *setup = ((data[SETUP_SECTORS] != 0 ? data[SETUP_SECTORS] : 4u) + 1u) * 512u;
  return *setup <= size || bj_error_set (error, BJ_ERROR_FAILED, "The kernel's file is cut off");
}

static void
put_entry (guint8 *image)
{
  memcpy (image, entry, sizeof entry);
  image[GDT_POINTER] = 4 * 8 - 1;
  put32 (image + GDT_POINTER + 2, LOADED_AT + GDT);
  put64 (image + GDT + 0x10, G_GUINT64_CONSTANT (0x00af9a000000ffff)); /* 64-bit code */
  put64 (image + GDT + 0x18, G_GUINT64_CONSTANT (0x00cf92000000ffff)); /* data */
  put64 (image + PML4, (LOADED_AT + PDPT) | PAGE_BITS);
  for (guint32 i = 0; i < 4; i++)
    put64 (image + PDPT + 8 * i, (LOADED_AT + PAGE_DIRS + 0x1000 * i) | PAGE_BITS);
  for (guint64 i = 0; i < 2048; i++)
    put64 (image + PAGE_DIRS + 8 * i, i * KERNEL_ALIGN | LARGE_PAGE | PAGE_BITS);
}

static void
grow (GByteArray *memory, guint size)
{
  guint before = memory->len;

  if (size <= before)
    return;
  g_byte_array_set_size (memory, size);
  memset (memory->data + before, 0, size - before);
}

/* @memory: begins at LOADED_AT. @rest gets where what follows the ELF file begins. */
static gboolean
load_elf (GByteArray *memory, const guint8 *elf, gsize size, gsize *rest, GError **error)
{
  Elf64_Ehdr head;

  if (size < sizeof head)
    return bj_error_set (error, BJ_ERROR_FAILED, "The kernel's payload is cut off");
  memcpy (&head, elf, sizeof head);
  if (memcmp (head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_machine != EM_X86_64 || head.e_entry != KERNEL_AT
      || head.e_phentsize != sizeof (Elf64_Phdr) || head.e_phoff > size
      || head.e_phnum * sizeof (Elf64_Phdr) > size - head.e_phoff || head.e_shoff > size
      || (gsize) head.e_shnum * head.e_shentsize > size - head.e_shoff)
    return bj_error_set (error, BJ_ERROR_FAILED, "The kernel's payload is no x86-64 kernel");
  *rest = head.e_shoff + (gsize) head.e_shnum * head.e_shentsize;
  for (guint i = 0; i < head.e_phnum; i++)
    {
      Elf64_Phdr part;

      memcpy (&part, elf + head.e_phoff + i * sizeof part, sizeof part);
      if (part.p_type != PT_LOAD)
        continue;
      if (part.p_offset > size || part.p_filesz > size - part.p_offset || part.p_paddr < KERNEL_AT
          || part.p_paddr > MAX_UNPACKED || part.p_filesz > MAX_UNPACKED)
        return bj_error_set (error, BJ_ERROR_FAILED, "The kernel's payload has a part that lies outside");
      grow (memory, (guint) (part.p_paddr - LOADED_AT + part.p_filesz));
      memcpy (memory->data + (part.p_paddr - LOADED_AT), elf + part.p_offset, part.p_filesz);
      *rest = MAX (*rest, part.p_offset + part.p_filesz);
    }
  return TRUE;
}

/*
 * Relocations are addresses of 32 bits, three lists that begin with zero. Read from the end they are: numbers of 32 bits
 * that move with the kernel, such that move against it, numbers of 64 bits.
 */
static gboolean
relocate (GByteArray *memory, const guint8 *list, gsize size, guint32 delta, GError **error)
{
  gsize at = size;

  for (guint kind = 0; kind < 3; kind++)
    for (;;)
      {
        guint64 where;

        if (at < 4)
          return bj_error_set (error, BJ_ERROR_FAILED, "The kernel cannot be relocated");
        at -= 4;
        if (get32 (list + at) == 0)
          break;
        where = (guint32) (get32 (list + at) - (guint32) KERNEL_MAP);
        if (where < KERNEL_AT || where - LOADED_AT + 8 > memory->len)
          return bj_error_set (error, BJ_ERROR_FAILED, "The kernel has a relocation outside");
        where -= LOADED_AT;
        if (kind == 2)
          put64 (memory->data + where, get64 (memory->data + where) + delta);
        else
          put32 (memory->data + where, get32 (memory->data + where) + (kind == 0 ? delta : 0u - delta));
      }
  return TRUE;
}

static guint32
choose_delta (const guint8 *setup, guint32 slot)
{
  guint32 size = get32 (setup + INIT_SIZE);
  guint32 slots = size < KERNEL_SPACE - KERNEL_AT ? (KERNEL_SPACE - KERNEL_AT - size) / KERNEL_ALIGN + 1 : 1;

  return slot % slots * KERNEL_ALIGN;
}

/* What is zero at the end is zero in a new machine's memory, too. */
static void
cut_zeros (GByteArray *memory)
{
  guint length = memory->len;

  while (length > 0 && memory->data[length - 1] == 0)
    length--;
  g_byte_array_set_size (memory, length);
}

GBytes *
bj_vmlinuz_wrap (GBytes *kernel, GBytes *elf, guint32 slot, GError **error)
{
  g_autoptr(GByteArray) memory = g_byte_array_new ();
  g_autoptr(GByteArray) file = g_byte_array_new ();
  gsize setup, size, rest = 0;
  const guint8 *data = g_bytes_get_data (elf, &size);

  if (!get_setup_size (kernel, &setup, error))
    return NULL;
  g_byte_array_append (file, g_bytes_get_data (kernel, NULL), (guint) setup);
  grow (memory, KERNEL_AT - LOADED_AT);
  if (!load_elf (memory, data, size, &rest, error)
      || !relocate (memory, data + rest, size - rest, choose_delta (file->data, slot), error))
    return NULL;
  put_entry (memory->data);
  file->data[LOAD_FLAGS] |= FLAG_KASLR;
  cut_zeros (memory);
  g_byte_array_append (file, memory->data, memory->len);
  return g_byte_array_free_to_bytes (g_steal_pointer (&file));
}

GBytes *
bj_vmlinuz_unpack (GBytes *kernel, guint32 slot, GCancellable *cancellable, GError **error)
{
  static const char *const argv[] = { "xz", "--decompress", "--stdout", "--single-stream", NULL };
  static const guint8 magic[] = { 0xfd, '7', 'z', 'X', 'Z', 0 };
  gsize setup, size, offset, length;
  const guint8 *data = g_bytes_get_data (kernel, &size);
  g_autoptr(GBytes) input = NULL;
  g_autoptr(GBytes) elf = NULL;
  BjSpawn spawn = { .argv = argv, .timeout_s = UNPACK_TIMEOUT, .max_output = MAX_UNPACKED };

  if (!get_setup_size (kernel, &setup, error))
    return NULL;
  offset = setup + get32 (data + PAYLOAD_OFFSET);
  length = get32 (data + PAYLOAD_LENGTH);
  /* The last four bytes of the payload are its length unpacked. */
  if (offset > size || length > size - offset || length < sizeof magic + 4
      || memcmp (data + offset, magic, sizeof magic) != 0)
    {
      bj_error_set (error, BJ_ERROR_FAILED, "The kernel is not packed with xz");
      return NULL;
    }
  input = g_bytes_new_from_bytes (kernel, offset, length - 4);
  spawn.input = input;
  if (!bj_spawn_run (&spawn, &elf, cancellable, error))
    {
      g_prefix_error (error, "Unpacking the kernel: ");
      return NULL;
    }
  return bj_vmlinuz_wrap (kernel, elf, slot, error);
}
