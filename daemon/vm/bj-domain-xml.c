/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-domain-xml.h"

/* Free PCIe ports, for the share and whatever is plugged later. Plugging works only into such a port. */
#define ROOT_PORTS 8

static void
add (GString *xml, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Every argument is escaped, so that no path can change the structure. */
static void
add (GString *xml, const char *format, ...)
{
  va_list args;
  g_autofree char *text = NULL;

  va_start (args, format);
  text = g_markup_vprintf_escaped (format, args);
  va_end (args);
  g_string_append (xml, text);
}

/*
 * Emulated, what the guest does against speculation protects nothing: its careful jumps become other jumps of the
 * host's CPU. It only makes system calls and indirect jumps slower. With KVM all of it stays on.
 */
#define EMULATED_CMDLINE " mitigations=off"

static void
add_boot (GString *xml, const BjMachineSpec *spec, BjAccelerator accelerator)
{
  add (xml, "  <os>\n    <type arch='x86_64' machine='q35'>hvm</type>\n");
  if (spec->kernel != NULL)
    add (xml, "    <kernel>%s</kernel>\n", spec->kernel);
  if (spec->initrd != NULL)
    add (xml, "    <initrd>%s</initrd>\n", spec->initrd);
  if (spec->cmdline != NULL)
    add (xml, "    <cmdline>%s%s</cmdline>\n", spec->cmdline,
         accelerator == BJ_ACCELERATOR_KVM ? "" : EMULATED_CMDLINE);
  add (xml, "  </os>\n");
}

static void
add_head (GString *xml, const BjMachineSpec *spec, BjAccelerator accelerator)
{
  gboolean kvm = accelerator == BJ_ACCELERATOR_KVM;

  add (xml, "<domain type='%s' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n", kvm ? "kvm" : "qemu");
  add (xml, "  <name>" BJ_DOMAIN_PREFIX "%s</name>\n  <genid/>\n", spec->id);
  add (xml, "  <memory unit='MiB'>%u</memory>\n  <vcpu>%u</vcpu>\n", spec->memory_mib, spec->cpus);
  if (spec->share)
    add (xml, "  <memoryBacking>\n    <source type='memfd'/>\n    <access mode='shared'/>\n  </memoryBacking>\n");
  add_boot (xml, spec, accelerator);
  add (xml, "  <features>\n    <acpi/>\n  </features>\n");
  add (xml, "  <cpu mode='%s'/>\n  <clock offset='utc'/>\n", kvm ? "host-passthrough" : "maximum");
  add (xml, "  <on_poweroff>destroy</on_poweroff>\n  <on_reboot>destroy</on_reboot>\n"
            "  <on_crash>destroy</on_crash>\n");
}

static void
add_disks (GString *xml, const BjMachineSpec *spec, const char *disk)
{
  add (xml, "    <disk type='file' device='disk'>\n"
            "      <driver name='qemu' type='qcow2' cache='unsafe' discard='unmap'/>\n"
            "      <source file='%s'/>\n", disk);
  if (spec->writable_base)
    add (xml, "      <backingStore/>\n");
  else
    add (xml, "      <backingStore type='file'>\n        <format type='qcow2'/>\n        <source file='%s'/>\n"
              "        <backingStore/>\n      </backingStore>\n", spec->base);
  add (xml, "      <target dev='vda' bus='virtio'/>\n    </disk>\n");
  if (spec->data_disk != NULL)
    add (xml, "    <disk type='file' device='disk'>\n      <driver name='qemu' type='raw'/>\n"
              "      <source file='%s'/>\n      <target dev='vdb' bus='virtio'/>\n      <readonly/>\n    </disk>\n",
         spec->data_disk);
}

static void
add_agent_channel (GString *xml, const char *run_dir, const char *indent)
{
  add (xml, "%s<channel type='unix'>\n%s  <source mode='bind' path='%s/agent.sock'/>\n"
            "%s  <target type='virtio' name='org.qemu.guest_agent.0'/>\n%s</channel>\n",
       indent, indent, run_dir, indent, indent);
}

static void
add_devices (GString *xml, const BjMachineSpec *spec, const char *disk)
{
  add (xml, "  <devices>\n    <emulator>" BJ_DOMAIN_EMULATOR "</emulator>\n");
  add_disks (xml, spec, disk);
  add (xml, "    <controller type='pci' index='0' model='pcie-root'/>\n");
  for (guint i = 1; i <= ROOT_PORTS; i++)
    add (xml, "    <controller type='pci' index='%u' model='pcie-root-port'/>\n", i);
  add (xml, "    <controller type='usb' model='none'/>\n");
  add_agent_channel (xml, spec->run_dir, "    ");
  add (xml, "    <serial type='file'>\n      <source path='%s/console.log'/>\n      <target port='0'/>\n"
            "    </serial>\n", spec->run_dir);
  add (xml, "    <rng model='virtio'>\n      <backend model='random'>/dev/urandom</backend>\n    </rng>\n"
            "    <video>\n      <model type='vga' vram='16384'/>\n    </video>\n"
            "    <graphics type='dbus' p2p='yes'/>\n    <memballoon model='none'/>\n  </devices>\n");
}

/* libvirt cannot say ipv6=off, and with IPv6 slirp opens the host's loopback a second time, at fec0::2. */
static void
add_network (GString *xml, const BjMachineSpec *spec)
{
  add (xml, "  <qemu:commandline>\n    <qemu:arg value='-netdev'/>\n"
            "    <qemu:arg value='user,id=net0,ipv6=off'/>\n    <qemu:arg value='-device'/>\n"
            "    <qemu:arg value='virtio-net-pci,id=" BJ_DOMAIN_NIC ",netdev=net0,romfile=,bus=pcie.0,addr=0x10,"
            "mac=52:54:00:be:%02x:%02x'/>\n  </qemu:commandline>\n",
       spec->slot >> 8 & 0xff, spec->slot & 0xff);
}

char *
bj_domain_xml_build (const BjMachineSpec *spec, const char *disk, BjAccelerator accelerator)
{
  GString *xml = g_string_new (NULL);
  guint uid = BJ_MACHINE_UID_BASE + spec->slot;

  add_head (xml, spec, accelerator);
  add_devices (xml, spec, disk);
  add (xml, "  <seclabel type='static' model='dac' relabel='no'>\n    <label>+%u:+%u</label>\n  </seclabel>\n", uid,
       uid);
  if (spec->network)
    add_network (xml, spec);
  add (xml, "</domain>\n");
  return g_string_free (xml, FALSE);
}

char *
bj_domain_xml_build_agent_channel (const char *run_dir)
{
  GString *xml = g_string_new (NULL);

  add_agent_channel (xml, run_dir, "");
  return g_string_free (xml, FALSE);
}

char *
bj_domain_xml_build_share (const char *socket)
{
  GString *xml = g_string_new (NULL);

  add (xml, "<filesystem type='mount'>\n  <driver type='virtiofs' queue='1024'/>\n  <source socket='%s'/>\n"
            "  <target dir='" BJ_DOMAIN_SHARE_TAG "'/>\n  <alias name='" BJ_DOMAIN_SHARE_ALIAS "'/>\n</filesystem>\n",
       socket);
  return g_string_free (xml, FALSE);
}
