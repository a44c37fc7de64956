# SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall layer in a kernel: two network namespaces, one the host with its firewall, the other everything else.

Nothing here leaves these namespaces. The other side takes every address there is for its own (a local route for everything), so that a
datagram that gets out arrives and is told.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BELLJAR_BUILD", os.path.join(ROOT, "build"))
TOOL = os.path.join(BUILD, "tests", "unit", "net", "firewall-tool")
PYTHON = sys.executable
DEADLINE = 60
PORT = 7777

FIRST = 1900000000
LAST = FIRST + 1023
OTHERS = (0, 1000, FIRST - 1, LAST + 1)

# One address of each range at least, its edges where it is not aligned to bytes; whether the other side can say that it came.
BLOCKED = {
    "0.1.2.3": True, "10.0.0.1": True, "10.255.255.254": True, "100.64.0.1": True, "100.127.255.254": True,
    "127.0.0.1": False, "127.9.9.9": False, "169.254.0.1": True, "169.254.169.254": True, "172.16.0.1": True,
    "172.31.255.254": True, "192.0.0.1": True, "192.88.99.1": True, "192.168.0.1": True, "192.168.255.254": True,
    "198.18.0.1": True, "198.19.255.254": True, "224.0.0.1": False, "239.255.255.250": False, "240.0.0.1": True,
    "254.1.1.1": True,
    "203.0.113.2": False,       # the host itself
    "198.51.100.200": False,    # another address of its own
    "203.0.113.1": True,        # its neighbours on the wire
    "203.0.113.99": True,
    "203.0.113.255": True,      # their broadcast
    "::1": False, "::2": True, "::ffff:10.0.0.1": True, "::ffff:127.0.0.1": False, "64:ff9b::a00:1": True,
    "64:ff9b:1::1": True, "100::1": True, "2001::1": True, "2002:a00:1::1": True, "fc00::1": True, "fd77::1": True,
    "fdff:ffff::1": True, "fec0::2": True, "fe80::1%h0": False, "febf::1%h0": False, "ff02::1%h0": True, "ff0e::1": False,
    "2001:db8:1::2": False,     # the host itself
    "2001:db8:1::77": True,     # a neighbour
}
# Beside the ranges, and ordinary.
OPEN = ("1.2.3.4", "9.255.255.255", "11.0.0.1", "100.63.255.254", "100.128.0.1", "172.15.255.254", "172.32.0.1", "192.0.1.1",
        "192.167.255.254", "192.169.0.1", "198.17.255.254", "198.20.0.1", "198.51.100.9", "223.255.255.254", "2000::1",
        "2001:1::1", "2001:db8:ffff::1", "2003::1", "2606:4700::1111", "fbff::1", "::ffff:198.51.100.9")

SENDER = """
import errno, json, os, socket, sys
uid, port, tag = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
result = {}
for target in sys.argv[4:]:
    info = socket.getaddrinfo(target, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)[0]
    with socket.socket(info[0], socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            s.sendto(f"{tag} {target}".encode(), info[4])
            result[target] = ""
        except OSError as error:
            result[target] = errno.errorcode[error.errno]
print(json.dumps(result))
"""

RECEIVER = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
s.bind(('::', int(sys.argv[1])))
print('ready', flush=True)
while True:
    print(s.recv(200).decode(), flush=True)
"""


class Namespace:
    """A network namespace that lasts as long as a process of ours in it."""

    def __init__(self):
        self.keeper = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        assert self.keeper.stdout.readline() == b"ready\n"

    def argv(self, *argv):
        return ["nsenter", "-t", str(self.keeper.pid), "-n", *argv]

    def run(self, *argv, **more):
        return subprocess.run(self.argv(*argv), check=True, capture_output=True, text=True, timeout=DEADLINE, **more).stdout

    def ip(self, commands):
        for command in commands.strip().splitlines():
            self.run("ip", *command.split())

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait(DEADLINE)
        self.keeper.stdout.close()


class Tool:
    """The firewall object of the daemon, in a process of its own."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        readable, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        assert readable, f"no answer to {command}"
        return json.loads(self.process.stdout.readline())

    def close(self):
        _, errors = self.process.communicate(timeout=DEADLINE)
        return errors


@unittest.skipUnless(os.geteuid() == 0, "needs root for network namespaces")
@unittest.skipUnless(shutil.which("nft") and shutil.which("ip"), "needs nft and ip")
class FirewallTest(unittest.TestCase):
    def setUp(self):
        self.host, self.world = Namespace(), Namespace()
        self.addCleanup(self.host.close)
        self.addCleanup(self.world.close)
        self.host.run("ip", "link", "add", "h0", "type", "veth", "peer", "name", "w0", "netns", str(self.world.keeper.pid))
        self.host.run("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/h0/accept_dad")
        self.world.ip("""link set lo up
                         addr add 203.0.113.1/24 dev w0
                         -6 addr add 2001:db8:1::1/64 dev w0 nodad
                         link set w0 up
                         route add local 0.0.0.0/0 dev lo
                         route add local 203.0.113.99/32 dev lo
                         -6 route add local ::/0 dev lo""")
        self.host.ip("""link set lo up
                        addr add 203.0.113.2/24 broadcast 203.0.113.255 dev h0
                        addr add 198.51.100.200/32 dev lo
                        -6 addr add 2001:db8:1::2/64 dev h0 nodad
                        link set h0 up
                        route add default via 203.0.113.1
                        -6 route add default via 2001:db8:1::1""")
        # Everything answers for everything here, but slowly: say where it is.
        mac = json.loads(self.world.run("ip", "-j", "link", "show", "w0"))[0]["address"]
        for neighbour in ("203.0.113.1", "203.0.113.99", "2001:db8:1::1", "2001:db8:1::77", "fe80::1", "febf::1"):
            self.host.run("ip", "neigh", "replace", neighbour, "lladdr", mac, "dev", "h0", "nud", "permanent")
        self.receiver = subprocess.Popen(self.world.argv(PYTHON, "-c", RECEIVER, str(PORT)), stdout=subprocess.PIPE)
        self.addCleanup(self.end_receiver)
        self.assertEqual(self.read_line(), "ready")
        self.firewall = Tool(self.host.argv(TOOL))
        self.addCleanup(self.firewall.close)

    def end_receiver(self):
        self.receiver.kill()
        self.receiver.wait(DEADLINE)
        self.receiver.stdout.close()

    def read_line(self):
        line = b""
        deadline = time.monotonic() + DEADLINE
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([self.receiver.stdout], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(readable, "nothing arrives")
            line += os.read(self.receiver.stdout.fileno(), 1)
        return line.decode().strip()

    def send(self, uid, targets):
        """What sending gave, and which datagrams arrived: all before a last one that certainly does."""
        tag = f"u{uid}"
        result = json.loads(self.host.run(PYTHON, "-c", SENDER, str(uid), str(PORT), tag, *targets))
        self.host.run(PYTHON, "-c", SENDER, "0", str(PORT), "last", "203.0.113.1")
        arrived = set()
        while (line := self.read_line()) != "last 203.0.113.1":
            self.assertTrue(line.startswith(tag + " "), line)
            arrived.add(line.split()[1])
        return result, arrived

    def blocked_packets(self):
        text = self.host.run("nft", "-j", "list", "counter", "inet", "belljar", "blocked")
        return next(o["counter"]["packets"] for o in json.loads(text)["nftables"] if "counter" in o)

    def tables(self):
        return self.host.run("nft", "list", "tables").split("\n")

    def test_open_without_it(self):
        """Without the table everything arrives: otherwise the tests below would prove nothing."""
        result, arrived = self.send(FIRST, [*BLOCKED, *OPEN])
        self.assertEqual({t: e for t, e in result.items() if e}, {})
        self.assertEqual(arrived, {t for t, told in BLOCKED.items() if told} | set(OPEN))

    def test_every_range(self):
        self.assertTrue(self.firewall("install")["ok"])
        for count, uid in enumerate((FIRST, FIRST + 500, LAST), start=1):
            with self.subTest(uid=uid):
                result, arrived = self.send(uid, [*BLOCKED, *OPEN])
                self.assertEqual({t for t, e in result.items() if e == "EPERM"}, set(BLOCKED))
                self.assertEqual({t for t, e in result.items() if e == ""}, set(OPEN))
                self.assertEqual(arrived, set(OPEN))
                self.assertEqual(self.blocked_packets(), count * len(BLOCKED))

    def test_other_users(self):
        self.assertTrue(self.firewall("install")["ok"])
        for uid in OTHERS:
            with self.subTest(uid=uid):
                result, arrived = self.send(uid, [*BLOCKED, *OPEN])
                self.assertEqual({t: e for t, e in result.items() if e}, {})
                self.assertEqual(arrived, {t for t, told in BLOCKED.items() if told} | set(OPEN))
        self.assertEqual(self.blocked_packets(), 0)

    def test_prove(self):
        self.assertFalse(self.firewall("status")["active"])
        answer = self.firewall("prove")
        self.assertTrue(answer["ok"], answer)
        self.assertTrue(answer["active"] and answer["proven"])
        self.assertEqual(self.blocked_packets(), 4)
        self.assertTrue(self.firewall("status")["proven"])

    def test_prove_without_ipv6(self):
        self.host.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        answer = self.firewall("prove")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(self.blocked_packets(), 2)

    def test_removed_behind_our_back(self):
        damages = ("delete table inet belljar", "flush table inet belljar", "flush chain inet belljar machines",
                   "flush set inet belljar net4", "flush chain inet belljar after_translation")
        self.assertTrue(self.firewall("prove")["ok"])
        for damage in damages:
            with self.subTest(damage=damage):
                self.host.run("nft", damage)
                answer = self.firewall("prove")
                self.assertTrue(answer["ok"], answer)
                result, arrived = self.send(FIRST, ["10.0.0.1", "203.0.113.2", "1.2.3.4"])
                self.assertEqual(result, {"10.0.0.1": "EPERM", "203.0.113.2": "EPERM", "1.2.3.4": ""})
                self.assertEqual(arrived, {"1.2.3.4"})
        self.assertIn("Somebody removed the firewall's table", self.firewall.close())

    def look(self):
        """Not what was seen within the last second."""
        time.sleep(1.1)
        return self.firewall("look")["ok"]

    def test_look(self):
        """Whatever somebody does to the table is seen without a datagram being sent, and counted once it is put back."""
        damages = ("flush ruleset", "delete table inet belljar", "flush table inet belljar", "flush chain inet belljar machines",
                   "flush set inet belljar net4", "delete element inet belljar net4 { 10.0.0.0/8 }",
                   "insert rule inet belljar machines accept", "add table inet belljar { flags dormant; }")
        self.assertFalse(self.firewall("look")["ok"])
        self.assertTrue(self.firewall("prove")["ok"])
        self.assertTrue(self.look())
        for count, damage in enumerate(damages, start=1):
            with self.subTest(damage=damage):
                self.host.run("nft", damage)
                self.assertFalse(self.look())
                answer = self.firewall("prove")
                self.assertTrue(answer["ok"], answer)
                self.assertEqual(answer["losses"], count)
                self.assertTrue(self.look())
        self.send(FIRST, ["10.0.0.1"])
        self.assertTrue(self.look(), "a counter that counts is no change")

    def test_look_beside_another_daemon(self):
        """It replaces the table by the same one, or by one for the networks that have come since: nobody lost anything."""
        self.assertTrue(self.firewall("prove")["ok"])
        other = Tool(self.host.argv(TOOL))
        self.addCleanup(other.close)
        self.assertTrue(other("prove")["ok"])
        self.assertTrue(self.look())
        self.host.ip("addr add 192.0.2.2/24 dev h0")
        self.assertTrue(other("prove")["ok"])
        self.assertFalse(self.look())
        answer = self.firewall("prove")
        self.assertTrue(answer["ok"], answer)
        self.assertEqual(answer["losses"], 0)
        self.assertTrue(self.look())

    def test_left_by_a_crash(self):
        self.assertTrue(self.firewall("install")["ok"])
        self.firewall.process.kill()
        self.firewall.process.wait(DEADLINE)
        self.assertIn("table inet belljar", self.tables())
        again = Tool(self.host.argv(TOOL))
        self.addCleanup(again.close)
        self.assertTrue(again("prove")["ok"])

    def test_networks_that_come_later(self):
        self.assertTrue(self.firewall("prove")["ok"])
        self.host.ip("addr add 192.0.2.2/24 dev h0")
        mac = json.loads(self.world.run("ip", "-j", "link", "show", "w0"))[0]["address"]
        self.host.run("ip", "neigh", "replace", "192.0.2.7", "lladdr", mac, "dev", "h0", "nud", "permanent")
        result, _ = self.send(FIRST, ["192.0.2.2", "192.0.2.7"])
        self.assertEqual(result, {"192.0.2.2": "EPERM", "192.0.2.7": ""})  # itself at once, its neighbours with the next proof
        self.assertTrue(self.firewall("prove")["ok"])
        result, arrived = self.send(FIRST, ["192.0.2.2", "192.0.2.7", "1.2.3.4"])
        self.assertEqual(result, {"192.0.2.2": "EPERM", "192.0.2.7": "EPERM", "1.2.3.4": ""})
        self.assertEqual(arrived, {"1.2.3.4"})

    def test_translated_addresses(self):
        """Somebody else's rules send a public address inside, or an inside one out: neither helps."""
        self.host.run("nft", "-f", "-", input="""table ip other { chain output { type nat hook output priority -100;
            ip daddr 198.51.100.9 dnat to 10.1.1.1
            ip daddr 10.2.2.2 dnat to 198.51.100.10
            }
            }""")
        self.assertTrue(self.firewall("prove")["ok"])
        result, arrived = self.send(FIRST, ["198.51.100.9", "10.2.2.2", "198.51.100.11"])
        self.assertEqual(result, {"198.51.100.9": "EPERM", "10.2.2.2": "EPERM", "198.51.100.11": ""})
        self.assertEqual(arrived, {"198.51.100.11"})

    def test_nothing_proven(self):
        """A refusal that is not ours is no proof."""
        self.host.run("nft", "-f", "-", input="""table inet other { chain output { type filter hook output priority -400;
            meta skuid 1900000000-1900001023 ip daddr 127.0.0.1 drop
            }
            }""")
        answer = self.firewall("prove")
        self.assertFalse(answer["ok"] or answer["proven"])
        self.assertIn("counter did not rise", answer["error"])
        self.assertEqual(answer["reason"], answer["error"])
        self.host.run("nft", "-f", "-", input="""delete table inet other
            table inet other { chain output { type filter hook output priority -400
            ip daddr 127.0.0.1 drop
            }
            }""")
        answer = self.firewall("prove")
        self.assertFalse(answer["ok"] or answer["proven"])
        self.assertIn("says nothing", answer["error"])
        self.host.run("nft", "delete", "table", "inet", "other")
        self.assertTrue(self.firewall("prove")["proven"])

    def test_no_way_to_try(self):
        bare = Namespace()
        self.addCleanup(bare.close)
        tool = Tool(bare.argv(TOOL))
        self.addCleanup(tool.close)
        answer = tool("prove")
        self.assertTrue(answer["active"])
        self.assertFalse(answer["ok"] or answer["proven"])
        self.assertIn("unreachable", answer["error"])

    def test_remove(self):
        self.host.run("nft", "add table inet other")
        self.assertTrue(self.firewall("install")["ok"])
        for _ in range(2):
            answer = self.firewall("remove")
            self.assertFalse(answer["active"] or answer["proven"])
            self.assertEqual([t for t in self.tables() if t], ["table inet other"])

    def test_without_rights(self):
        tool = Tool(self.host.argv("setpriv", "--reuid", "5001", "--regid", "5001", "--clear-groups", "--bounding-set=-all",
                                   "--inh-caps=-all", self.copy_of_tool()))
        self.addCleanup(tool.close)
        for command in ("install", "prove"):
            answer = tool(command)
            self.assertFalse(answer["ok"] or answer["active"] or answer["proven"])
            self.assertIn("root", answer["error"])

    def copy_of_tool(self):
        """Where somebody else may run it too."""
        path = f"/tmp/belljar-firewall-tool-{os.getpid()}"
        shutil.copy(TOOL, path)
        os.chmod(path, 0o755)
        self.addCleanup(os.unlink, path)
        return path


if __name__ == "__main__":
    unittest.main()
