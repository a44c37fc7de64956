# SPDX-License-Identifier: GPL-3.0-or-later
"""belljard's start and end on a private bus: what it refuses, what it says, and how it exits."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BELLJAR_BUILD", os.path.join(ROOT, "build"))
BELLJARD = os.path.join(BUILD, "daemon", "belljard")
DEADLINE = 120


class Bus:
    """A session bus of its own."""

    def __init__(self, folder):
        self.address = f"unix:path={folder}/bus"
        self.process = subprocess.Popen(["dbus-daemon", "--session", "--nofork", f"--address={self.address}",
                                         "--print-address=1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdout.readline()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class TestStart(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bj-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = os.path.join(self.folder, "s")
        self.bus = Bus(self.folder)
        self.addCleanup(self.bus.close)

    def options(self, **changes):
        options = {"bus": self.bus.address, "state-dir": self.state, "auth": "owner"}
        options.update({key.replace("_", "-"): value for key, value in changes.items()})
        return [f"--{key}={value}" for key, value in options.items() if value is not None]

    def run_once(self, *extra, env=None, **changes):
        return subprocess.run([BELLJARD, *self.options(**changes), *extra], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=DEADLINE, check=False, env=env)

    def start(self, **changes):
        log = open(os.path.join(self.folder, "log"), "w+b")
        self.addCleanup(log.close)
        daemon = subprocess.Popen([BELLJARD, *self.options(**changes)], stderr=log)
        self.addCleanup(lambda: daemon.poll() is None and (daemon.kill(), daemon.wait()))
        self.wait_for(lambda: b"is ready" in self.read(log) or daemon.poll() is not None, "the daemon")
        self.assertIsNone(daemon.poll(), self.read(log))
        return daemon

    @staticmethod
    def read(log):
        log.seek(0)
        return log.read()

    def wait_for(self, condition, what):
        deadline = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f"waited {DEADLINE} s for {what}")
            time.sleep(0.05)

    def refused(self, code, *parts, **changes):
        done = self.run_once(**changes)
        self.assertEqual(done.returncode, code, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_version_and_usage(self):
        self.assertRegex(self.run_once("--version").stdout, r"^belljard \d+\.\d+\.\d+\n$")
        self.assertEqual(self.run_once("--no-such-option").returncode, 2)
        self.assertEqual(self.run_once("argument").returncode, 2)
        self.refused(2, "--log-level is", log_level="loud")
        self.refused(2, "--auth is polkit or owner", auth="nobody")
        self.refused(2, "refused on the system bus", bus="system")
        self.refused(2, "needs --bus=system", auth="polkit")

    def test_owner_is_refused_on_the_system_bus_by_its_address_too(self):
        env = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.bus.address}
        done = self.run_once(env=env)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("refused on the system bus", done.stderr)

    def test_bad_configuration(self):
        path = os.path.join(self.folder, "belljar.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[limits]\nsessions=0\n")
        self.refused(1, f"{path}:2: [limits] sessions: must be between 1 and 256, not 0", config=path)
        self.refused(1, os.path.join(self.folder, "none.conf"), config=os.path.join(self.folder, "none.conf"))

    def test_no_bus(self):
        self.refused(1, "Connecting to the bus", bus=f"unix:path={self.folder}/none")

    def test_state_folder(self):
        file = os.path.join(self.folder, "file")
        with open(file, "w", encoding="utf-8"):
            pass
        self.refused(1, f"{file} is not a folder", state_dir=file)
        self.refused(1, "unix sockets below it allow at most", state_dir=os.path.join(self.folder, "x" * 100))
        self.refused(1, "/proc/none", state_dir="/proc/none")

    def test_damaged_database(self):
        os.makedirs(self.state)
        with open(os.path.join(self.state, "belljar.db"), "wb") as file:
            file.write(b"x" * 8192)
        self.refused(1, f"{self.state}/belljar.db is damaged", "move it away")

    def test_cut_and_newer_database(self):
        """Made by a real daemon; the state folder is not touched by the refusal."""
        path = os.path.join(self.state, "belljar.db")
        daemon = self.start()
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(DEADLINE), 0)
        with open(path, "rb") as file:
            whole = file.read()
        for left in (len(whole) // 2, 4096, 100):
            with open(path, "wb") as file:
                file.write(whole[:left])
            self.refused(1, f"{path} is damaged", "Restore it from a backup")
        newer = bytearray(whole)
        newer[60:64] = (999).to_bytes(4, "big")  # PRAGMA user_version
        with open(path, "wb") as file:
            file.write(newer)
        self.refused(1, f"{path} has schema 999", "Install that version again")
        with open(path, "rb") as file:
            self.assertEqual(file.read(), newer)
        with open(path, "wb") as file:
            file.write(whole)
        self.start()

    def test_second_daemon(self):
        daemon = self.start()
        self.refused(1, "The name org.belljar1 is taken", state_dir=os.path.join(self.folder, "t"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "t")), "nothing was touched")
        other = tempfile.mkdtemp(prefix="bj-", dir="/tmp")
        self.addCleanup(shutil.rmtree, other)
        other_bus = Bus(other)
        self.addCleanup(other_bus.close)
        self.refused(1, f"Another belljard (pid {daemon.pid}) uses {self.state}", bus=other_bus.address)

    def test_orderly_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.start()
            daemon.send_signal(number)
            self.assertEqual(daemon.wait(DEADLINE), 0)
        for name in ("keys/report.key", "keys/report.key.pub", "belljar.db"):
            self.assertTrue(os.path.exists(os.path.join(self.state, name)), name)

    def test_end_while_starting(self):
        for _ in range(3):
            daemon = subprocess.Popen([BELLJARD, *self.options()], stderr=subprocess.PIPE)
            self.wait_for(lambda: os.path.exists(os.path.join(self.state, "keys/report.key.pub")), "the key")
            daemon.send_signal(signal.SIGTERM)
            _out, text = daemon.communicate(timeout=DEADLINE)
            self.assertIn(daemon.returncode, (0, -signal.SIGTERM), text)  # before or after it caught signals

    def test_the_bus_goes_away(self):
        daemon = self.start()
        self.bus.process.kill()
        self.assertEqual(daemon.wait(DEADLINE), 1)

    def test_kill_and_start_again(self):
        daemon = self.start()
        daemon.kill()
        daemon.wait(DEADLINE)
        daemon = self.start()
        with open(f"/proc/{daemon.pid}/status", encoding="ascii") as file:
            rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
        self.assertLess(rss, 40 * 1024, "resident KiB when idle; 30 MiB is the goal, libraries differ")
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(DEADLINE), 0)


if __name__ == "__main__":
    unittest.main()
