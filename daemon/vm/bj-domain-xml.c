/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-domain-xml.h"

#include "bj-lane-protocol.h"

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
add_boot (GString *xml, const BjMachineSpec *spec, const BjDomainFiles *files, BjAccelerator accelerator)
{
  const char *kernel = files->kernel != NULL ? files->kernel : spec->kernel;

  add (xml, "  <os>\n    <type arch='x86_64' machine='%s'>hvm</type>\n", files->machine != NULL ? files->machine : "q35");
  if (kernel != NULL)
    add (xml, "    <kernel>%s</kernel>\n", kernel);
  if (spec->initrd != NULL)
    add (xml, "    <initrd>%s</initrd>\n", spec->initrd);
  if (spec->cmdline != NULL)
    add (xml, "    <cmdline>%s%s</cmdline>\n", spec->cmdline,
         accelerator == BJ_ACCELERATOR_KVM ? "" : EMULATED_CMDLINE);
  add (xml, "  </os>\n");
}

static void
add_head (GString *xml, const BjMachineSpec *spec, const BjDomainFiles *files, BjAccelerator accelerator)
{
  gboolean kvm = accelerator == BJ_ACCELERATOR_KVM;

  add (xml, "<domain type='%s' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n", kvm ? "kvm" : "qemu");
  add (xml, "  <name>" BJ_DOMAIN_PREFIX "%s</name>\n  <genid/>\n", spec->id);
  add (xml, "  <memory unit='MiB'>%u</memory>\n  <vcpu>%u</vcpu>\n", spec->memory_mib, spec->cpus);
  /* With a file of its own QEMU does not use what libvirt asks for here, but libvirt wants to see it before it plugs a share. */
  if (spec->share || files->ram != NULL)
    add (xml, "  <memoryBacking>\n    <source type='memfd'/>\n    <access mode='shared'/>\n  </memoryBacking>\n");
  add_boot (xml, spec, files, accelerator);
  add (xml, "  <features>\n    <acpi/>\n  </features>\n");
  add (xml, "  <cpu mode='%s'/>\n  <clock offset='utc'/>\n", kvm ? "host-passthrough" : "maximum");
  add (xml, "  <on_poweroff>destroy</on_poweroff>\n  <on_reboot>destroy</on_reboot>\n"
            "  <on_crash>destroy</on_crash>\n");
}

/* libvirt is told the whole chain, or it would read names from the files. */
static void
add_chain (GString *xml, const char *const *chain)
{
  guint depth = chain != NULL ? g_strv_length ((GStrv) chain) : 0;

  for (guint i = 0; i < depth; i++)
    add (xml, "      <backingStore type='file'>\n        <format type='qcow2'/>\n        <source file='%s'/>\n", chain[i]);
  add (xml, "        <backingStore/>\n");
  for (guint i = 0; i < depth; i++)
    add (xml, "      </backingStore>\n");
}

static void
add_disk (GString *xml, const BjDomainFiles *files)
{
  add (xml, "    <disk type='file' device='disk'>\n"
            "      <driver name='qemu' type='qcow2' cache='unsafe' discard='unmap'/>\n"
            "      <source file='%s'/>\n", files->disk);
  add_chain (xml, files->chain);
  add (xml, "      <target dev='vda' bus='virtio'/>\n    </disk>\n");
}

/* In the order of BjDomainChannel. */
static const struct
{
  const char *socket;
  const char *port;
} channels[BJ_DOMAIN_CHANNELS] = {
  { "agent.sock", "org.qemu.guest_agent.0" },
  { "control.sock", BJ_LANE_CONTROL },
  { "bulk.sock", BJ_LANE_BULK },
};

static void
add_channel (GString *xml, const char *run_dir, BjDomainChannel channel, const char *indent)
{
  add (xml, "%s<channel type='unix'>\n%s  <source mode='bind' path='%s/%s'/>\n"
            "%s  <target type='virtio' name='%s'/>\n%s</channel>\n",
       indent, indent, run_dir, channels[channel].socket, indent, channels[channel].port, indent);
}

static void
add_devices (GString *xml, const BjMachineSpec *spec, const BjDomainFiles *files)
{
  add (xml, "  <devices>\n    <emulator>" BJ_DOMAIN_EMULATOR "</emulator>\n");
  add_disk (xml, files);
  add (xml, "    <controller type='pci' index='0' model='pcie-root'/>\n");
  for (guint i = 1; i <= ROOT_PORTS; i++)
    add (xml, "    <controller type='pci' index='%u' model='pcie-root-port'/>\n", i);
  add (xml, "    <controller type='usb' model='none'/>\n");
  for (int channel = 0; channel < BJ_DOMAIN_CHANNELS; channel++)
    add_channel (xml, spec->run_dir, (BjDomainChannel) channel, "    ");
  add (xml, "    <serial type='file'>\n      <source path='%s/console.log'/>\n      <target port='0'/>\n"
            "    </serial>\n", spec->run_dir);
  if (spec->tablet)
    add (xml, "    <input type='tablet' bus='virtio'/>\n");
  add (xml, "    <rng model='virtio'>\n      <backend model='random'>/dev/urandom</backend>\n    </rng>\n"
            "    <video>\n      <model type='vga' vram='16384'/>\n    </video>\n"
            "    <graphics type='dbus' p2p='yes'/>\n    <memballoon model='none'/>\n  </devices>\n");
}

/* libvirt knows no memory that is a file of our choice. The later -machine wins over libvirt's own. */
static void
add_ram (GString *xml, const BjMachineSpec *spec, const BjDomainFiles *files)
{
  add (xml, "  <qemu:commandline>\n");
  if (files->incoming)
    add (xml, "    <qemu:arg value='-incoming'/>\n    <qemu:arg value='defer'/>\n");
  add (xml, "    <qemu:arg value='-object'/>\n"
            "    <qemu:arg value='memory-backend-file,id=ram0,mem-path=%s,share=%s,size=%uM,"
            "x-use-canonical-path-for-ramblock-id=off'/>\n"
            "    <qemu:arg value='-machine'/>\n    <qemu:arg value='memory-backend=ram0'/>\n  </qemu:commandline>\n",
       files->ram, files->ram_private ? "off" : "on", spec->memory_mib);
}

char *
bj_domain_xml_build (const BjMachineSpec *spec, const BjDomainFiles *files, BjAccelerator accelerator)
{
  GString *xml = g_string_new (NULL);
  guint uid = BJ_MACHINE_UID_BASE + spec->slot;

  add_head (xml, spec, files, accelerator);
  add_devices (xml, spec, files);
  add (xml, "  <seclabel type='static' model='dac' relabel='no'>\n    <label>+%u:+%u</label>\n  </seclabel>\n", uid,
       uid);
  if (files->ram != NULL)
    add_ram (xml, spec, files);
  add (xml, "</domain>\n");
  return g_string_free (xml, FALSE);
}

char *
bj_domain_xml_build_channel (const char *run_dir, BjDomainChannel channel)
{
  GString *xml = g_string_new (NULL);

  add_channel (xml, run_dir, channel, "");
  return g_string_free (xml, FALSE);
}

char *
bj_domain_xml_dup_socket (const char *run_dir, BjDomainChannel channel)
{
  return g_build_filename (run_dir, channels[channel].socket, NULL);
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

char *
bj_domain_xml_build_data_disk (const char *path)
{
  GString *xml = g_string_new (NULL);

  add (xml, "<disk type='file' device='disk'>\n  <driver name='qemu' type='raw'/>\n  <source file='%s'/>\n"
            "  <target dev='vdb' bus='virtio'/>\n  <readonly/>\n</disk>\n", path);
  return g_string_free (xml, FALSE);
}
